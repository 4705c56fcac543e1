"""Columns of node data, compiled node selectors and taints, and pod counts per topology domain."""
