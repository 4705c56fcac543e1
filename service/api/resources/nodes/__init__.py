"""Leases of nodes, and heartbeats of many nodes at once."""
