"""Connections to PostgreSQL: hosts, settings, pools, outages, and the meaning of failures."""
