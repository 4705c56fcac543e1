"""The scheduler's interface: intents, answers, limits, and the ports to the store and the clock."""
