"""Decides requests that change nothing: explanations, topology, violations, and confirmations."""
