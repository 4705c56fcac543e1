"""Moving placed pods to better nodes: objectives, search, moves in waves, and progress."""
