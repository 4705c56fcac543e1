"""Connect the engine to the store: replicas, batched decisions, the commit protocol, and controllers."""
