"""Devices and claims to them (dynamic resource allocation)."""
