"""Questions about what would be: how many pods would fit, and which would get another node."""
