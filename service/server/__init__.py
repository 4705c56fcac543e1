"""Runs a whole server: PostgreSQL, workers, their signals, ports and limits, until it is told to stop."""
