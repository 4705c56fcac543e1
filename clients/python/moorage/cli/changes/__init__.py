"""Writes that several commands share: batches, fields, grants, nodes, and plans."""
