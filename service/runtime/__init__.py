"""Basics of a server's processes: clock, identifiers, tasks, signals, and connections."""
