"""Rebalancing: objectives, the search for better nodes, moves in waves, and progress."""
