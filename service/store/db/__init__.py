"""Connections to PostgreSQL: to which host, with which settings, and what their failures mean."""
