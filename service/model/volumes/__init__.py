"""Volumes, claims to them, storage classes, and data sets."""
