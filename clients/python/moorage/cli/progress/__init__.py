"""Follows changes, and waits for objects and plans."""
