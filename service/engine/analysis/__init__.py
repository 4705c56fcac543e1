"""Questions that change nothing: why a pod is refused, which rules are broken, what a pod costs."""
