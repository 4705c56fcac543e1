"""Keeps in memory when nodes last reported."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from service.model.log.commit import ObjectKey, ObjectRow
from service.model.log.lease import UNREADY, NodeLeases, NodeReports
from tests.support.memory_store.state import MemoryState


class MemoryHeartbeats:
    """When the nodes of clusters last reported."""

    def __init__(self, state: MemoryState) -> None:
        self.state = state

    async def record(self, cluster_id: int, names: Sequence[str]) -> NodeReports:
        """Note that nodes have reported now; of names that no node has nothing is noted."""
        own, now = self.state.of(cluster_id), self.state.clock()
        known = {name for name in names if ObjectKey("Node", "", name) in own.objects}
        own.node_leases |= dict.fromkeys(known, now)
        return NodeReports(frozenset(known), now, own.head.revision)

    async def last(self, cluster_id: int, name: str) -> datetime | None:
        """When a node last reported; None if it never did, or nobody remembers it."""
        return self.state.of(cluster_id).node_leases.get(name)

    async def check(self, cluster_id: int, grace_seconds: float) -> NodeLeases:
        """Find the nodes that have not reported for so long, though they did before."""
        leases, now = self.state.of(cluster_id).node_leases, self.state.clock()
        before = now - timedelta(seconds=grace_seconds)
        silent = frozenset(name for name, at in leases.items() if at < before)
        return NodeLeases(now, bool(leases), silent)

    async def forget(self, cluster_id: int, names: Sequence[str]) -> None:
        """Forget that nodes which are gone have ever reported."""
        own = self.state.states.get(cluster_id)
        if own is not None:
            for name in names:
                own.node_leases.pop(name, None)

    async def unattended(self, name: str) -> list[str]:
        """The clusters whose lease of this name nobody holds, with nodes that somebody has to look after."""
        return sorted(
            own.name
            for own in self.state.states.values()
            if name not in own.leases
            and (own.node_leases or any(map(_needs_look, own.objects.values())))
        )


def _needs_look(row: ObjectRow) -> bool:
    """Whether an object is a node with a taint that evicts, or one that may not be ready, or a node's state."""
    if row.kind == "Node":
        return b'"NoExecute"' in row.body or bool(UNREADY.search(row.body))
    return row.kind == "NodeState"
