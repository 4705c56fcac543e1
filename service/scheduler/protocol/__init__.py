"""What callers and the scheduler say to each other: intents, answers, and the ports through which the store is reached."""
