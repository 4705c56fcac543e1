"""The devices of a cluster, the claims to them, and the search for allocations."""
