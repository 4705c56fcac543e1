"""Preemption: which pods to evict from which node for a pod that otherwise fits nowhere."""
