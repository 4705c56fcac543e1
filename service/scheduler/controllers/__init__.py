"""Background work of a server: pending pods, evictions, node lifecycles, plans, leases, and upkeep."""
