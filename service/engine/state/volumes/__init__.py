"""The volumes of a cluster, the claims to them, node limits, and their use by placed pods."""
