"""Quotas, limit ranges, runtime classes, and priority classes: what limits or changes pods of a namespace."""
