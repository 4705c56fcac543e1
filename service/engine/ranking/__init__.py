"""Finds the best node for a pod, from cached ranks instead of a pass over all nodes."""
