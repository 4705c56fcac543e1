"""Reads from the store, without a decision of the scheduler."""
