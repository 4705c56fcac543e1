"""kube-scheduler's own code as an oracle: random cases, its answers, and the engine's beside them."""
