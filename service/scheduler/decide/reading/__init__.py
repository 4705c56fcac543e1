"""Decides what callers are told who change nothing."""
