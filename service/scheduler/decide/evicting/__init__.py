"""Decides which pods are evicted, and which placed pods violate a rule."""
