"""Placing one pod: the best node, what it binds there, what is reserved for others, and refusals with reasons."""
