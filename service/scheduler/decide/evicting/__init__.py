"""Decides which pods to evict because placed pods break rules required during execution."""
