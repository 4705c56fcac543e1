"""Wire types of the requests to extenders and their responses.

The types are those of Kubernetes' package k8s.io/kube-scheduler/extender/v1. Its fields have no
JSON tags, so they have their Go names on the wire; nested objects have the usual format. The types
of nested objects are parameters, because each side decodes different parts of them.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

EXTENDER_SCORE_MAX = 10
"""The highest score that an extender can return (MaxExtenderPriority)."""

PodT = TypeVar("PodT")
NodeT = TypeVar("NodeT")
NodesT = TypeVar("NodesT")


class ExtenderValue(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """Base class of the messages; like Go's decoder, it ignores unknown fields."""


class NodeList(msgspec.Struct, Generic[NodeT], frozen=True, kw_only=True):
    """A NodeList: whole nodes, as kube-scheduler knows them."""

    items: list[NodeT] | None = None
    """The nodes; only their names are read, since Moorage judges its own nodes."""


class ExtenderArgs(ExtenderValue, Generic[PodT, NodesT], frozen=True, kw_only=True):
    """The pod that kube-scheduler places, and its candidates."""

    pod: PodT
    """The whole pod; its `status` is not read."""
    nodes: NodesT | None = None
    """The candidates, if the extender is configured without `nodeCacheCapable`."""
    node_names: Sequence[str] | None = None
    """The names of the candidates, if it is configured with `nodeCacheCapable`."""


class FilterResult(ExtenderValue, Generic[NodesT], frozen=True, kw_only=True):
    """Which candidates are left, and why the others are not."""

    nodes: NodesT | None = None
    """The nodes that are left, as they were sent; null if names were sent."""
    node_names: list[str] | None = None
    """The names of the nodes that are left; null if whole nodes were sent."""
    failed_nodes: dict[str, str] | None = None
    """The reasons against each node on which preemption could help."""
    failed_and_unresolvable_nodes: dict[str, str] | None = None
    """The reasons against each node on which it could not."""
    error: str = ""
    """Why the pod cannot be judged; empty if it was."""


class HostPriority(ExtenderValue, frozen=True, kw_only=True):
    """The score of one node."""

    host: str
    """Name of the node."""
    score: int
    """A score from 0 to 10; the best node has 10."""
