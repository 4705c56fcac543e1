"""The words between the scheduler and others: intents, answers, limits, and the ports to the store."""
