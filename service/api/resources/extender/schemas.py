"""Schemas of what kube-scheduler sends to Moorage as its extender, and of the answers.

Messages that Moorage also exchanges with its own extenders are in
`service.model.cluster.extender_messages`; here they define what Moorage reads of them and what its
answers always have.
"""

from typing import Annotated, Any

import msgspec

from service.model.cluster.extender_messages import (
    EXTENDER_SCORE_MAX,
    ExtenderArgs as ArgsOfExtenders,
    ExtenderValue,
    FilterResult,
    HostPriority as PriorityOfHost,
    NodeList,
)


class ExtenderNodes(NodeList[dict[str, Any]], frozen=True, kw_only=True):
    """A NodeList: whole nodes, as kube-scheduler knows them."""


class ExtenderArgs(ArgsOfExtenders[dict[str, Any], ExtenderNodes], frozen=True, kw_only=True):
    """The pod that kube-scheduler places, and its candidates."""


class ExtenderFilterResult(FilterResult[ExtenderNodes], frozen=True, kw_only=True):
    """Which candidates are left, and why the others are not."""

    failed_nodes: dict[str, str]
    failed_and_unresolvable_nodes: dict[str, str]


class HostPriority(PriorityOfHost, frozen=True, kw_only=True):
    """The score of one node."""

    score: Annotated[int, msgspec.Meta(ge=0, le=EXTENDER_SCORE_MAX)]


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
