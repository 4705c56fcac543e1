"""Owners of pods, disruption budgets, and pod groups."""
