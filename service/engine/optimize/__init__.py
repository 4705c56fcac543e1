"""Moves and removals of placed pods, and their effects on the objectives of a cluster."""
