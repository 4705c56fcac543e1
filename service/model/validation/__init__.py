"""What each field of a manifest may hold: most follows from types, the rest is said here."""
