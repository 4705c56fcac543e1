"""Preemption: which pods would have to leave which node, so that a pod fits there that fits nowhere."""
