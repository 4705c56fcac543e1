"""Replicas: in-memory clusters that follow the log, with their quotas and groups."""
