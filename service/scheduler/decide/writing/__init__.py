"""Decides what becomes of objects that callers write, of bindings and of configuration."""
