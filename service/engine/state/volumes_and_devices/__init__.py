"""The volumes and devices of a cluster, the claims to them, and which placed pods use which."""
