"""Patches of decoded objects, server-side apply, and reading large JSON in steps."""
