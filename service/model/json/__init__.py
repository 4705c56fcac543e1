"""Patches of decoded objects, server-side apply, and incremental reading of large JSON."""
