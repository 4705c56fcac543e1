"""Nodes and namespaces: types, validation, and manifests."""
