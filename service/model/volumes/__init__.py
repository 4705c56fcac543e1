"""The kinds of objects that are stored because rules read them; each is declared once."""
