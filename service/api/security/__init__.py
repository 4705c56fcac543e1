"""Who calls, what they may do, how often, and what they are shown."""
