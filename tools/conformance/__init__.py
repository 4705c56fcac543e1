"""A server's answers beside those of kube-scheduler's own code, for cases and traces."""
