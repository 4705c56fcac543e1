"""Cached ranks, in which the best node for a pod is found without a pass over all nodes."""
