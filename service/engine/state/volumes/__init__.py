"""The volumes of a cluster, the claims to them, attach limits, and use by placed pods."""
