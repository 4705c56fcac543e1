"""Replicas: clusters in the memory of a worker, which follow the log, with their quotas and groups."""
