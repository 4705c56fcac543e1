"""Devices and device claims (dynamic resource allocation)."""
