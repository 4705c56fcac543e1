"""Classes of pods that no rule distinguishes, compiled once for the counters."""
