"""Quotas, limit ranges, runtime classes, and priority classes."""
