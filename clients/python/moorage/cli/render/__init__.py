"""How results are printed: tables, documents, columns and explanations."""
