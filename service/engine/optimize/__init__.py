"""Moves and removals of placed pods, and their effect on the objectives of a cluster."""
