"""Node lifecycles: nodes that are not ready, silent, tainted, or deleted, and the pods on them."""
