"""Pods: types, validation, templates, warnings, and manifests."""
