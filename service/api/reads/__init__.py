"""Reads of stored objects, computed objects, events, and earlier revisions."""
