"""What a server does by itself: places pending pods, evicts, ends what nobody else ends, and compacts the log."""
