"""Queries about required rules: which are broken, which pods are to blame, and what would help."""
