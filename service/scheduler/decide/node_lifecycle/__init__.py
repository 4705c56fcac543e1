"""What becomes of nodes that are not ready, silent, tainted or deleted, and of the pods on them."""
