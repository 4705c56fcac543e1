"""Answers to placements, and the options of placement requests."""

from typing import Any, Literal

import msgspec

from service.model.cluster.comparison import ClusterComparison
from service.scheduler.protocol.answers import Answer, WriteAnswer
from service.scheduler.protocol.choices import ChoiceDifference

Outcome = Literal["Placed", "AlreadyPlaced", "Queued", "Unschedulable", "Denied", "GroupRefused"]
Policy = Literal["BestEffort", "AllOrNothing"]
Explain = Literal["None", "Summary", "Full"]
Preemption = Literal["Never", "Propose", "Evict"]
Strategy = Literal["LeastAllocated", "AsListed"]
"""Which of several clusters is tried first, of those that the rules of a pod allow."""


class PodRef(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names a stored pod."""

    namespace: str = "default"
    """Namespace of the pod."""
    name: str
    """Name of the pod."""


class ProposedVictims(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The pods that would have to leave one node so that another pod fits there."""

    victims: list[PodRef]
    """The pods that the caller may see, the most important first."""
    other_victims: int | msgspec.UnsetType = msgspec.UNSET
    """How many more there are, of namespaces that the caller may not read; absent if there are none."""
    budget_violations: int
    """How many of them leave although their disruption budgets allow no more of that."""


class Proposal(ProposedVictims, frozen=True, kw_only=True, rename="camel"):
    """Where room can be made for a pod that fits nowhere, at the least cost."""

    node_name: str
    """The node that costs least, as Kubernetes compares them."""
    candidates: dict[str, ProposedVictims] | msgspec.UnsetType = msgspec.UNSET
    """All nodes on which room can be made; only with Full explanations."""


class PlacementResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of one pod."""

    namespace: str
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    uid: str | None
    """None if the pod is not stored."""
    outcome: Outcome
    """What became of the pod."""
    node_name: str | None = None
    """The node; null if there is none."""
    score: int | None = None
    """The node's weighted score among those that the pod could choose from. A node that was nominated for the pod, or
    that a lost race left it, is the only one."""
    planned_revision: int
    """The revision of the state that `score` and `explanation` belong to."""
    reason: str | None = None
    """If the pod is Denied: the rule that denies it, in CamelCase. GroupSearchEnded: the search for
    its group ended at `groupSearchSteps`, so there may be a placement."""
    message: str | None = None
    """A sentence for people that says the same; null if there is nothing to say."""
    explanation: Any = None
    """The explanation that was asked for with `explain`; null for None."""
    preemption: Proposal | msgspec.UnsetType | None = msgspec.UNSET
    """With `Propose` and `Evict`, of a pod that fits nowhere: where room can be made, or is made; null
    if it cannot be made, and `message` then says why, as Kubernetes words it."""
    comparison: ClusterComparison | msgspec.UnsetType = msgspec.UNSET
    """With `compare`: the state of this cluster before the pods were placed."""
    difference: ChoiceDifference | msgspec.UnsetType = msgspec.UNSET
    """In simulations with `compareTo`: the node that the other Kubernetes version's kube-scheduler chooses; absent
    if it is the same."""


class GroupFailure(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Why a group was refused: the members that failed in the best attempt, and on which rule."""

    failed: list[PodRef]
    """The members that failed in the best attempt."""
    plugin: str | None
    """The rule on which they failed."""
    reason: str | None = None
    """GroupSearchEnded: the search ended at `groupSearchSteps`, so there may be a placement."""
    message: str
    """A sentence for people that says the same; null if there is nothing to say."""


class PlacementAnswer(WriteAnswer, frozen=True, kw_only=True):
    """What became of the pods, in the order asked."""

    committed: bool
    """Whether this call wrote something."""
    attempts: int
    """How often the request was decided; more than once if races were lost."""
    kubernetes: str
    """The Kubernetes version whose kube-scheduler was followed."""
    results: list[PlacementResult]
    """What became of each pod."""
    group: GroupFailure | None = None
    """Why a group was refused; null otherwise."""


class ClusterRefusal(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Why one cluster did not take a pod."""

    cluster: str
    """Name of the cluster."""
    reason: str | None = None
    """ClusterTopology: a rule over clusters; or the rule by which the cluster denies the pod, in
    CamelCase; null if it fits on no node."""
    message: str
    """A sentence for people that says the same."""


class OverClustersResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of one pod that was to be placed in one of several clusters."""

    namespace: str
    """Namespace of the pod."""
    name: str
    """Name of the pod."""
    outcome: Outcome
    """What became of the pod."""
    cluster: str | None = None
    """The cluster that has the pod now; null if none has."""
    uid: str | None = None
    """The uid of the pod there."""
    node_name: str | None = None
    """The node; null if there is none."""
    score: int | None = None
    """The node's weighted score."""
    refusals: list[ClusterRefusal]
    """Why clusters that come before it did not take the pod, or, if none did, why each did not."""


class OverClustersAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of the pods, in the order asked."""

    committed: bool
    """Whether this call wrote something in any cluster."""
    revisions: dict[str, int]
    """The revision at which each cluster that was asked has answered last."""
    kubernetes: dict[str, str]
    """The Kubernetes version whose kube-scheduler each of them followed."""
    results: list[OverClustersResult]
    """What became of each pod."""


class ExplanationAnswer(Answer, frozen=True, kw_only=True):
    """A full explanation at `revision`; for a placed pod, as if the pod itself were not there."""

    explanation: Any


class NodeVictims(msgspec.Struct, frozen=True, kw_only=True):
    """The pods that would have to leave one node, the most important first."""

    uids: tuple[str, ...]
    namespaces: frozenset[str]
    """The namespaces in which they are."""
    budget_violations: int


class VictimsAnswer(Answer, frozen=True, kw_only=True):
    """The nodes on which room could be made for a pod; empty if it may not be placed at all."""

    nodes: dict[str, NodeVictims]
