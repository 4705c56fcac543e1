"""The criteria by which a placement across clusters chooses a cluster."""

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


class GroupComparison(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The pod group that the pod is in, as it is in this cluster."""

    name: str
    """The group's namespace and what it is called."""
    min_member: int
    """So many members have to have nodes before any of them may have one."""
    placed: int
    """How many members have a node here."""
    may_be_split: bool
    """Whether the group is known here, and its members need not be together in one domain of nodes."""


class ReservationComparison(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Says that a node is reserved here for the pod, as part of a group that is placed in several clusters."""

    group: str
    """The id of the group."""
    home: str
    """The name of the cluster that decides whether the group is placed."""


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
    preferred: int = 0
    """What the pod's preferred affinity and anti-affinity over clusters add up to here: for each term its
    weight, negative for anti-affinity, times the pods that match."""
    group: GroupComparison | None = None
    """The pod group that the pod is in; null if it is in none."""
    reserved: ReservationComparison | None = None
    """The group for which a node is reserved for the pod; null if none is."""
