"""Reads the store without a decision of the scheduler."""
