"""What a server does by itself: places pending pods, evicts, renews leases, and compacts the log."""
