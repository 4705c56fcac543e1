"""Persistent volumes, claims, storage classes, and data sets."""
