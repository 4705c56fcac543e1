"""Nodes and namespaces."""
