"""The kinds of objects, and reading a manifest of any kind."""
