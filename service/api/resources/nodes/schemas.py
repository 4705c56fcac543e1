"""Schemas of node heartbeats: leases in Kubernetes' form, and names of nodes."""

from typing import Literal

from service.model.core.primitives import Strict, Value


class LeaseMeta(Value, frozen=True, kw_only=True):
    """Identity of a node's lease."""

    name: str | None = None
    """Name of the node."""
    namespace: str | None = None
    """Namespace that Kubernetes keeps leases of nodes in, `kube-node-lease`."""


class LeaseSpec(Value, frozen=True, kw_only=True):
    """What a node's lease says; of one that is sent, nothing is read."""

    holder_identity: str | None = None
    """Name of the node."""
    lease_duration_seconds: int | None = None
    """After how long without another report the node counts as silent."""
    renew_time: str | None = None
    """When the node last reported, RFC 3339, on the clock of the database."""


class Lease(Value, frozen=True, kw_only=True):
    """The lease of a node, as a coordination.k8s.io/v1 Lease."""

    api_version: Literal["coordination.k8s.io/v1"] | None = None
    """Version of the kind."""
    kind: Literal["Lease"] | None = None
    """Kind of the object."""
    metadata: LeaseMeta | None = None
    """Identity of the lease."""
    spec: LeaseSpec | None = None
    """What the lease says."""


class NodeReport(Strict, frozen=True, kw_only=True):
    """Nodes that report, by name or by their leases."""

    nodes: list[str] | None = None
    """Names of the nodes."""
    items: list[Lease] | None = None
    """Their leases, as a list of the kind LeaseList has them."""


class NodeReportResult(Value, frozen=True, kw_only=True):
    """What became of the reports of many nodes."""

    renewed: int
    """How many of the nodes are known to have reported now."""
    unknown: list[str]
    """Names that no node of the cluster has."""
