"""Decides where pods run: one by one, all or none, in groups, and from the pending queue."""
