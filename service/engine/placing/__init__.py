"""Placing one pod: the best node, its bindings, reserved room, and refusals with reasons."""
