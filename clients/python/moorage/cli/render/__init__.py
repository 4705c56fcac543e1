"""Prints results: tables, documents, columns, and explanations."""
