"""Draining nodes: which pods leave, in which waves, and the requests to cordon, drain, and pause."""
