"""Node columns, compiled node selectors and taints, and pod counts per topology domain."""
