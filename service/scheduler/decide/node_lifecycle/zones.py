"""The rate at which a zone's nodes get the NoExecute taint, by the share of unready nodes.

The rules are those of Kubernetes' `pkg/controller/nodelifecycle` (`ComputeZoneState`,
`handleDisruption`, `ReducedQPSFunc`), v1.35.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from service.model.cluster.cluster_config import ClusterConfig
from service.model.nodes.node import Node

EXCLUDED = "node.kubernetes.io/exclude-disruption"
"""The label of nodes that do not count toward their zone's state."""
_ZONE_LABELS = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_REGION_LABELS = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")

Zone = tuple[str, str]
"""Region and zone; "" where the node has no such label."""


class ZoneCount(NamedTuple):
    """The numbers of ready and unready nodes of a zone."""

    ready: int = 0
    unready: int = 0

    @property
    def is_down(self) -> bool:
        """Whether no node of the zone is ready."""
        return self.ready == 0 and self.unready > 0

    def rate(self, config: ClusterConfig) -> float:
        """Return how many nodes of the zone may get the NoExecute taint per second."""
        share = self.unready / (self.ready + self.unready)
        if self.is_down or self.unready <= 2 or share < config.unhealthy_zone_threshold:  # noqa: PLR2004 - Kubernetes' own number
            return config.node_eviction_rate
        is_large = self.ready + self.unready > config.large_zone_nodes
        return config.secondary_node_eviction_rate if is_large else 0.0


def zone_of(node: Node) -> Zone:
    """Return the zone of a node, as Kubernetes' `GetZoneKey` does."""
    return _first_label(node, _REGION_LABELS), _first_label(node, _ZONE_LABELS)


def count_zones(nodes: Iterable[tuple[Node, str]]) -> dict[Zone, ZoneCount]:
    """Count the nodes of each zone, given nodes with the status of their Ready condition.

    A node without the condition is not monitored, and counts as ready.
    """
    counts: dict[Zone, ZoneCount] = {}
    for node, ready in nodes:
        if EXCLUDED in node.labels:
            continue
        zone = zone_of(node)
        before = counts.get(zone, ZoneCount())
        is_ready = ready in ("", "True")
        counts[zone] = ZoneCount(before.ready + is_ready, before.unready + (not is_ready))
    return counts


def allowed_now(rate: float, last: datetime | None, now: datetime) -> tuple[int, datetime | None]:
    """Return how many nodes may be tainted now, and when the next may (None for never).

    `last` is when the zone's last node was tainted.
    """
    if rate <= 0:
        return 0, None
    pause = timedelta(seconds=max(1 / rate, 1.0))
    if last is not None and now < last + pause:
        return 0, last + pause
    return max(1, int(rate)), now + pause


def _first_label(node: Node, names: Iterable[str]) -> str:
    return next((node.labels[name] for name in names if name in node.labels), "")
