"""Preemption: the choice of pods to evict for a pod that otherwise fits nowhere."""
