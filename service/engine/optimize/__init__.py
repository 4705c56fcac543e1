"""Moves and removals of placed pods, and what the placements of all pods gain or lose by them."""
