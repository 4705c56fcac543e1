"""Metrics, logs, and traces of a server, and its readiness."""
