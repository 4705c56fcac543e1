"""Finding the best node for a pod from cached ranks, without a pass over all nodes."""
