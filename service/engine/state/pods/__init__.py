"""Classes of pods that rules see alike, compiled once for the counters."""
