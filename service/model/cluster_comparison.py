"""What placements over several clusters compare of each cluster."""

import msgspec


class SpreadOverClusters(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One topology spread constraint of the pod with the key `moorage.dev/cluster`, in this cluster."""

    max_skew: int
    """By how many matching pods two clusters may differ."""
    required: bool
    """Whether the constraint filters clusters; if not, it only ranks them."""
    eligible: bool
    """Whether any node of the cluster counts for the constraint; if not, the cluster is no domain."""
    pods: int
    """The matching pods on nodes of this cluster."""
    counts_itself: bool
    """Whether the pod matches its own constraint."""


class ClusterComparison(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What placements over several clusters compare, before the pod is placed."""

    stored: bool
    """Whether the pod is stored in this cluster already."""
    used_share: float
    """The share of the cluster's cpu or memory that placed pods request, whichever is greater."""
    spread: list[SpreadOverClusters]
    """The constraints over clusters, in the order of the pod."""
    affine: bool | None
    """Whether this cluster has pods for all terms of required affinity over clusters; null if there
    are no such terms."""
