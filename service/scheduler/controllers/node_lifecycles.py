"""Monitors nodes that are silent, not ready, tainted with NoExecute, or deleted.

In clusters without NoExecute taints, newly placed pods cost nothing here.
"""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from typing_extensions import override

from service.model.core.errors import MoorageError
from service.model.core.primitives import CLUSTER_KIND
from service.model.log.lease import NodeLeases
from service.model.registry.manifests import NodeManifest, PodManifest
from service.scheduler.controllers.controller import Controllers, Spawn
from service.scheduler.controllers.leases import HeldLease
from service.scheduler.controllers.sweep_controller import SweepController
from service.scheduler.decide.node_lifecycle.taints import evicting_taints, may_have_to_leave
from service.scheduler.protocol.answers import Answer, NodesAnswer
from service.scheduler.protocol.intents import SweepNodes
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock, Store
from service.scheduler.replica.replica import Entry, Replica, Stored
from service.scheduler.replica.stored_kinds import NodeState

_GRACE_LOOKS = 4
"""The minimum number of checks for silent nodes in a grace period."""
_LOOKS_MISSED_MAX = 3
"""After this many missed checks, reports may be lost, so all nodes get a new grace period."""

_log = logging.getLogger(__name__)


class NodeLifecycleController(SweepController):
    """Monitors the nodes of one cluster while this process holds the lease.

    The work itself is a sweep, submitted as a request alongside those of clients: after a commit
    that may require one, when something is due, and when nodes stop or resume reporting. Silent
    nodes are read from the database every few seconds. No node counts as silent before this
    controller has watched for a whole grace period: while the service or its database was down, no
    node could report.
    """

    def __init__(
        self, *, store: Store, lease: HeldLease, clock: Clock, limits: Limits, spawn: Spawn
    ) -> None:
        super().__init__(lease=lease, clock=clock, limits=limits, spawn=spawn)
        self._store = store
        self._tainted: set[str] = set()
        """Nodes with NoExecute taints."""
        self._gone: set[str] = set()
        """Deleted nodes whose reports are still stored."""
        self._reports = False
        """Whether nodes are known to report."""
        self._looking = False
        self._next_look = clock.monotonic()
        self._forget_watching()

    def _forget_watching(self) -> None:
        self._silent: frozenset[str] | None = None
        self._judges = False
        self._watched_since: datetime | None = None
        self._looked_at: datetime | None = None
        self._all_down = False

    def on_reported(self) -> None:
        """Record that a node has reported."""
        self._reports = True

    # Changes of the replica

    def on_loaded(self, replica: Replica) -> None:
        """Start from a newly loaded replica, which has no tentative changes yet."""
        self._replica = replica
        nodes = [node for node in replica.cluster.nodes.nodes if node is not None]
        self._tainted = {node.name for node in nodes if evicting_taints(node.taints)}
        self.wants_new_pods = bool(self._tainted)
        unready = any(node.ready not in ("", "True") for node in nodes)
        self._changed |= unready or bool(self._tainted or replica.keys(NodeState.kind))
        self._advance()

    def on_committed(self, entries: Sequence[Entry]) -> None:
        """Process committed changes of the replica."""
        for entry in entries:
            if entry.kind == PodManifest.kind:
                if self._tainted and not self._changed:
                    self._changed = self._comes_to_leave(entry)
            elif entry.kind == NodeManifest.kind:
                self._note_node(entry)
            elif entry.kind in (CLUSTER_KIND, NodeState.kind):
                self._changed = True
        self.wants_new_pods = bool(self._tainted)
        self._advance()

    def _comes_to_leave(self, entry: Entry) -> bool:
        """Return whether a change puts a pod on a node whose taints will evict it."""
        after, replica = entry.after.manifest if entry.after else None, self._replica
        if replica is None or not isinstance(after, PodManifest):
            return False
        name = after.pod.node_name
        node = replica.cluster.node(name) if name in self._tainted and name else None
        return node is not None and may_have_to_leave(after.pod, node, replica.config)

    def _note_node(self, entry: Entry) -> None:
        name = entry.key[1]
        if _is_tainted(entry.after):
            self._tainted.add(name)
        else:
            self._tainted.discard(name)
        if entry.after is None and self._reports:
            self._gone.add(name)
        replica = self._replica
        returned = entry.before is None and replica and replica.node_state(name)
        if _needs_look(entry.before) or _needs_look(entry.after) or returned:
            self._changed = True

    # Sweeps

    @property
    @override
    def _is_to_be_done(self) -> bool:
        return self._replica is not None and (
            self._changed or self._due is not None or self._watches
        )

    @property
    def _watches(self) -> bool:
        """Whether to check for silent nodes."""
        if self._replica is None or not (self._reports or self._is_neglected):
            return False
        return self._replica.config.taints_nodes

    @override
    def _begin_anew(self) -> None:
        super()._begin_anew()
        self._next_look = self._clock.monotonic()
        self._forget_watching()

    @override
    def _advance(self) -> None:
        """Check for silent nodes and sweep, if due and if this process holds the lease."""
        if self._closed or not self._is_to_be_done:
            return
        now = self._clock.monotonic()
        if now < self._not_before or not self._may():
            return
        if self._watches and not self._looking and now >= self._next_look:
            self._looking = True
            self._spawn(self._look())
        if not self._sweeping and (self._changed or self._is_due):
            self.sweep()

    @override
    def _intent(self) -> SweepNodes:
        return SweepNodes(clock=self.lease.database_time, silent=self._silent, judges=self._judges)

    @override
    def _due_after(self, answer: Answer) -> datetime | None:
        assert isinstance(answer, NodesAnswer)
        self._note_zones(all_down=answer.all_down)
        return answer.due

    def _note_zones(self, *, all_down: bool) -> None:
        """Give all nodes a new grace period once a node reports after all were down."""
        if self._all_down and not all_down:
            self._watched_since = self.lease.database_time()
            self._judges = False
        self._all_down = all_down

    # Reports

    @property
    def _look_seconds(self) -> float:
        assert self._replica is not None
        grace = self._replica.config.node_monitor_grace_seconds
        return min(self._limits.node_look_seconds, grace / _GRACE_LOOKS)

    async def _look(self) -> None:
        """Read which nodes have stopped reporting; retry later if the database is unreachable."""
        assert self._replica is not None
        self._next_look = self._clock.monotonic() + self._look_seconds
        grace = self._replica.config.node_monitor_grace_seconds
        try:
            leases = await self._store.heartbeats.check(self.lease.cluster_id, grace)
            deleted = self._gone | {name for name in leases.silent if not self._is_there(name)}
            if deleted:
                await self._store.heartbeats.forget(self.lease.cluster_id, sorted(deleted))
                self._gone -= deleted
            self._note_look(leases, deleted, timedelta(seconds=grace))
        except MoorageError:
            _log.debug("The reports of nodes could not be read.", exc_info=True)
        finally:
            self._looking = False
        self._advance()

    def _is_there(self, name: str) -> bool:
        return self._replica is not None and self._replica.node(name) is not None

    def _note_look(self, leases: NodeLeases, deleted: set[str], grace: timedelta) -> None:
        missed = timedelta(seconds=self._look_seconds * _LOOKS_MISSED_MAX)
        since = self._watched_since
        if since is None or self._looked_at is None or leases.now - self._looked_at > missed:
            since = leases.now
        self._watched_since, self._looked_at = since, leases.now
        silent, judges = leases.silent - deleted, leases.now - since >= grace
        if (silent, judges) != (self._silent, self._judges):
            self._changed = True
        self._reports, self._silent, self._judges = leases.any, silent, judges
        self._is_neglected = False


def _is_tainted(stored: Stored | None) -> bool:
    manifest = stored.manifest if stored else None
    return isinstance(manifest, NodeManifest) and bool(evicting_taints(manifest.node.taints))


def _needs_look(stored: Stored | None) -> bool:
    """Return whether a node has NoExecute taints or is not ready."""
    manifest = stored.manifest if stored else None
    return _is_tainted(stored) or (
        isinstance(manifest, NodeManifest) and manifest.node.ready not in ("", "True")
    )


class NodeLifecycleControllers(Controllers[NodeLifecycleController]):
    """The node lifecycle controllers of all clusters that this process has in memory."""

    name = "nodes"

    def on_reported(self, cluster_id: int) -> None:
        """Record that a node of a cluster has reported."""
        controller = self._by_cluster.get(cluster_id)
        if controller is not None:
            controller.on_reported()

    @property
    @override
    def lease_seconds(self) -> float:
        return self._limits.evictions_lease_seconds

    @override
    def _controller(self, lease: HeldLease) -> NodeLifecycleController:
        return NodeLifecycleController(
            store=self._store,
            lease=lease,
            clock=self._clock,
            limits=self._limits,
            spawn=self._spawn,
        )

    @override
    async def unattended(self) -> list[str]:
        return await self._store.heartbeats.unattended(self.name)
