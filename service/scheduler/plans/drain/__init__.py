"""Emptying a node: which pods leave it, in which waves, and the requests that cordon, drain, and pause."""
