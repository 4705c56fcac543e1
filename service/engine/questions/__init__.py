"""Questions that change nothing: why a pod is refused, which rules are violated, what a pod costs others."""
