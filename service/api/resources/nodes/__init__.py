"""Leases of nodes, and reports that many nodes are alive."""
