"""Selecting and ordering objects by fields and labels, for lists, watches, and deletions."""
