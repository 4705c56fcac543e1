"""What is sent to an extender and what it answers: k8s.io/kube-scheduler/extender/v1.

The Go structs have no JSON tags, so that their names on the wire are those in Go.
"""

from collections.abc import Sequence

import msgspec


class ExtenderArgs(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """The pod and its candidates: whole nodes, or their names for an extender that knows them."""

    pod: msgspec.Raw
    nodes: dict[str, list[msgspec.Raw]] | None
    node_names: Sequence[str] | None


class SentMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """What is read of the metadata of a node that comes back."""

    name: str


class SentNode(msgspec.Struct, frozen=True, kw_only=True):
    """What is read of a node that comes back."""

    metadata: SentMetadata


class SentNodes(msgspec.Struct, frozen=True, kw_only=True):
    """A NodeList."""

    items: list[SentNode] | None = None


class FilterResult(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """Which candidates are left, and the reasons against others."""

    nodes: SentNodes | None = None
    node_names: list[str] | None = None
    failed_nodes: dict[str, str] | None = None
    failed_and_unresolvable_nodes: dict[str, str] | None = None
    error: str = ""


class HostPriority(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """The score of one node."""

    host: str
    score: int
