"""What kube-scheduler and its extenders send each other, as it is on the wire.

The types are those of Kubernetes' package k8s.io/kube-scheduler/extender/v1. Its fields have no JSON
tags, so that their names on the wire are those in Go; the objects within are as elsewhere.
"""

from typing import Annotated, Any

import msgspec

EXTENDER_SCORE_MAX = 10
"""The best score that an extender can give (MaxExtenderPriority)."""


class ExtenderValue(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """Base of the messages: as Go's decoder does, unknown fields are passed over."""


class ExtenderNodes(msgspec.Struct, frozen=True, kw_only=True):
    """A NodeList: whole nodes, as kube-scheduler knows them."""

    items: list[dict[str, Any]] | None = None
    """The nodes; only their names are read, since Moorage judges its own nodes."""


class ExtenderArgs(ExtenderValue, frozen=True, kw_only=True):
    """The pod that kube-scheduler places, and its candidates."""

    pod: dict[str, Any]
    """The whole pod; its `status` is not read."""
    nodes: ExtenderNodes | None = None
    """The candidates, if the extender is configured without `nodeCacheCapable`."""
    node_names: list[str] | None = None
    """The names of the candidates, if it is configured with `nodeCacheCapable`."""


class ExtenderFilterResult(ExtenderValue, frozen=True, kw_only=True):
    """Which candidates are left, and why the others are not."""

    nodes: ExtenderNodes | None = None
    """The nodes that are left, as they were sent; null if names were sent."""
    node_names: list[str] | None = None
    """The names of the nodes that are left; null if whole nodes were sent."""
    failed_nodes: dict[str, str]
    """The reasons against each node on which preemption could help."""
    failed_and_unresolvable_nodes: dict[str, str]
    """The reasons against each node on which it could not."""
    error: str = ""
    """Why the pod cannot be judged; empty if it was."""


class HostPriority(ExtenderValue, frozen=True, kw_only=True):
    """The score of one node."""

    host: str
    """Name of the node."""
    score: Annotated[int, msgspec.Meta(ge=0, le=EXTENDER_SCORE_MAX)]
    """A score from 0 to 10; the best node has 10."""


class ExtenderBindingArgs(ExtenderValue, frozen=True, kw_only=True):
    """Which pod goes to which node."""

    pod_name: str
    """Name of the pod."""
    pod_namespace: str
    """Namespace of the pod."""
    pod_uid: str = msgspec.field(name="PodUID")
    """The pod's `metadata.uid`."""
    node: str
    """Name of the node."""


class ExtenderBindingResult(ExtenderValue, frozen=True, kw_only=True):
    """Whether the pod is bound."""

    error: str = ""
    """Why the pod is not bound; empty if it is."""


class Victims(ExtenderValue, frozen=True, kw_only=True):
    """The pods that kube-scheduler would have leave one node, as it knows them."""

    pods: list[dict[str, Any]] | None = None
    """The pods; they are not read, since Moorage chooses among its own."""
    num_pdb_violations: int = msgspec.field(name="NumPDBViolations", default=0)
    """How many of them leave against their disruption budgets; not read."""


class MetaPod(ExtenderValue, frozen=True, kw_only=True):
    """A pod, by its uid alone."""

    uid: str = msgspec.field(name="UID")
    """The pod's `metadata.uid`."""


class MetaVictims(ExtenderValue, frozen=True, kw_only=True):
    """The pods that would have to leave one node, by their uids."""

    pods: list[MetaPod] | None = None
    """The victims, the most important first."""
    num_pdb_violations: int = msgspec.field(name="NumPDBViolations", default=0)
    """How many of them leave although their disruption budgets allow no more of that."""


class ExtenderPreemptionArgs(ExtenderValue, frozen=True, kw_only=True):
    """The pod for which kube-scheduler makes room, and the nodes where it could."""

    pod: dict[str, Any]
    """The whole pod; its `status` is not read."""
    node_name_to_victims: dict[str, Victims | None] | None = None
    """The nodes with their victims, if the extender is configured without `nodeCacheCapable`."""
    node_name_to_meta_victims: dict[str, MetaVictims | None] | None = None
    """The nodes with their victims, if it is configured with `nodeCacheCapable`."""


class ExtenderPreemptionResult(ExtenderValue, frozen=True, kw_only=True):
    """The nodes that are left, each with the pods that would have to leave it."""

    node_name_to_meta_victims: dict[str, MetaVictims]
    """The victims by node; nodes where nothing is gained are left out."""
