"""Nodes as columns, what selectors and taints say of them, and counts of pods in their domains."""
