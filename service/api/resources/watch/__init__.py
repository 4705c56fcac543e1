"""Writes a cluster's changes, and what becomes of bindings, as JSON lines or Server-Sent Events."""
