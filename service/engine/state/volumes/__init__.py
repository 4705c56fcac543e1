"""The volumes of a cluster, the claims to them, the limits of nodes, and which placed pods use which."""
