"""Finds out who calls, and limits what they may do, how often, and what they are shown."""
