"""Questions that change nothing: why a pod is refused, which rules are broken, what would have to change."""
