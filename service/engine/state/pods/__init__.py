"""Pods grouped into classes that no rule distinguishes, compiled once for the counters."""
