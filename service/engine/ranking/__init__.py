"""Cached ranks, which yield the best node for a pod without a pass over all nodes."""
