"""Self-checks of idle replicas, and reports of their state."""
