"""A store in memory that keeps the promises of the one on PostgreSQL, for simulations and tests.

No call waits for anything, so no call sees another one half done.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from heapq import nsmallest
from uuid import UUID

from service.model.core.errors import Conflict, NotFound
from service.model.core.primitives import CLUSTER_KIND, CLUSTER_NAME, ObjectName
from service.model.log.audit_chain import ITSELF, SERVER_CHAIN, AuditedCaller, AuditEntry, AuditRow
from service.model.log.commit import (
    ALL_BODIES,
    COMPACTION_STEP_ROWS_MAX,
    RESTORE_LIFT_REVISIONS,
    BodySelection,
    Change,
    CommitRequest,
    Diverged,
    Head,
    LogPage,
    ObjectKey,
    ObjectRow,
    effects,
)
from service.model.log.events import Event, EventRow
from service.model.log.lease import (
    REPORT_SECONDS_MAX,
    UNREADY,
    HeldLeases,
    Lease,
    NodeLeases,
    NodeReports,
    ReplicaReport,
    ReplicaState,
)
from service.model.log.pages import (
    PAGE_BYTES_MAX,
    ClusterCounts,
    ClusterRow,
    EventPage,
    ObjectPage,
    ObjectRead,
    first_rows,
)
from service.store.connecting.connections import PoolUse
from service.store.memory.memory_commits import ROOT, ClusterState, MemoryCommits, lasts
from service.store.memory.memory_past import MemoryPast
from service.store.memory.memory_principals import MemoryPrincipals
from service.store.memory.memory_webhooks import MemoryWebhooks
from service.store.whether_audit_is_kept import Keeping


class MemoryStore(MemoryCommits, MemoryPast, MemoryPrincipals, MemoryWebhooks):
    """A store in memory that keeps the contract of `service.store.postgres.PostgresStore` call by call.

    `clock` is the database's clock, `new_id` makes the ids that PostgreSQL would make. The
    cluster `default` exists from the start.
    """

    epoch = 0
    outage: str | None = None
    """Why the database cannot be used; tests may set it."""

    def __init__(
        self,
        clock: Callable[[], datetime],
        new_id: Callable[[], UUID],
        *,
        audit: bool = False,
        may_audit: bool = False,
    ) -> None:
        MemoryCommits.__init__(self, clock, new_id, Keeping(on=audit, may_begin=may_audit))
        MemoryPast.__init__(self, self.state_of)
        MemoryPrincipals.__init__(self, clock, self._record, self.keeping)
        MemoryWebhooks.__init__(self, clock, self.state_of, lambda: self.clusters, self._record)
        self._clock = clock
        self._new_id = new_id
        self._numbers = iter(range(1, 1 << 62))
        self._predecessors: dict[str, int] = {}
        """Where the logs of deleted clusters ended, by name."""
        self._reports: dict[str, tuple[datetime, dict[int, ReplicaState]]] = {}
        self._workers: dict[tuple[str, str], datetime] = {}
        self._create("default", b"{}")

    async def close(self) -> None:
        """Do nothing, since a store in memory has nothing to close."""

    def pool_uses(self) -> dict[str, PoolUse]:
        """Nothing, since a store in memory has no connections."""
        return {}

    def incidents(self) -> dict[str, int]:
        """Nothing, since a store in memory has no database that could be lost."""
        return {}

    async def prove_commits(self) -> None:
        """Do nothing, since commits in memory always work."""

    async def now(self) -> datetime:
        """The clock by which due times and leases are judged (P16)."""
        return self._clock()

    # Clusters

    async def list_clusters(self) -> list[ClusterRow]:
        """All clusters, ordered by name."""
        return sorted((own.row() for own in self.clusters.values()), key=lambda row: row.name)

    async def cluster_ids(self) -> list[int]:
        """The numbers of all clusters, the oldest first."""
        return sorted(self.clusters)

    async def get_cluster(self, name: str) -> ClusterRow:
        """The cluster that has this name now; raises NotFound if there is none."""
        return self._named(name).row()

    async def find_cluster(self, name: str) -> int:
        """The number alone of the cluster that has this name now; raises NotFound if there is none."""
        return self._named(name).cluster_id

    async def create_cluster(
        self, name: str, config: bytes, caller: AuditedCaller = ITSELF
    ) -> ClusterRow:
        """Make a new cluster; raises Conflict if the name is taken.

        It begins at revision 1, or above the last revision of a deleted cluster of that name.
        """
        if any(own.name == name for own in self.clusters.values()):
            raise Conflict(f"There is a cluster {name!r} already.")
        own = self._create(name, config)
        made = AuditEntry(caller=caller, cluster=name, revision=own.head.revision)
        self._record(made, own.cluster_id)
        return own.row()

    async def delete_cluster(
        self,
        cluster_id: int,
        caller: AuditedCaller = ITSELF,
        only_if: Callable[[int], None] | None = None,
        *,
        dry_run: bool = False,
    ) -> bool:
        """Delete a cluster with everything that it has; returns False if it was gone already.

        `only_if` is called with the revision of the configuration; nothing is deleted if it raises.
        """
        own = self.clusters.get(cluster_id)
        if own is None:
            return False
        if only_if is not None:
            only_if(own.objects[ObjectKey(CLUSTER_KIND, "", CLUSTER_NAME)].revision)
        if dry_run:
            return True
        del self.clusters[cluster_id]
        self._predecessors[own.name] = own.head.revision
        self._record(AuditEntry(caller=caller, cluster=own.name), cluster_id)
        return True

    def _record(self, entry: AuditEntry, cluster_id: int | None = None) -> None:
        if self.keeping.of([entry.caller]):
            self.audit.add(SERVER_CHAIN, cluster_id, "", self._clock(), [entry])

    async def counts(self, cluster_id: int) -> ClusterCounts:
        """Count the nodes and pods of a cluster; raises NotFound if there is no such cluster."""
        return self.state_of(cluster_id).row().counts

    async def count_pods(self, of: Mapping[int, Iterable[str]]) -> dict[int, ClusterCounts]:
        """Count the pods in some namespaces of each of several clusters; nodes are not counted."""
        return {
            number: self._count_pods(number, set(namespaces)) for number, namespaces in of.items()
        }

    def _count_pods(self, cluster_id: int, namespaces: set[str]) -> ClusterCounts:
        own = self.clusters.get(cluster_id)
        pods = [
            row
            for key, row in (own.objects.items() if own else ())
            if key.kind == "Pod" and key.namespace in namespaces
        ]
        return ClusterCounts(
            nodes=0, pods=len(pods), pending=sum(row.node_name is None for row in pods)
        )

    def _create(self, name: str, config: bytes) -> ClusterState:
        at = self._clock()
        floor = self._predecessors.pop(name, -1) + 1
        own = ClusterState(
            cluster_id=next(self._numbers), name=name, head=Head(floor, ROOT, at), floor=floor
        )
        change = Change(
            revision=floor + 1,
            verb="Put",
            kind=CLUSTER_KIND,
            namespace="",
            name=CLUSTER_NAME,
            uid="",
            body=config,
            created=True,
        )
        request = CommitRequest(
            commit_id=self._new_id(),
            expected_revision=floor,
            expected_tip=ROOT,
            planned_at=floor,
            kind="CreateCluster",
            changes=[change],
        )
        own.append(request, effects(request.changes), at)
        self.clusters[own.cluster_id] = own
        return own

    def _named(self, name: str) -> ClusterState:
        for own in self.clusters.values():
            if own.name == name:
                return own
        raise NotFound(f"There is no cluster {name!r}.")

    # The audit

    @property
    def keeps_audit(self) -> bool:
        """Whether the audit is kept at this moment."""
        return self.keeping.on

    def begin_audit(self) -> None:
        """Keep the audit from now on, if the settings allow it, as callers can be told apart now."""
        self.keeping.begin()

    async def add_refusals(self, entries: Sequence[AuditEntry]) -> None:
        """Add rows to the chain of the server; they are refusals, which come with no commit."""
        self.audit.add(SERVER_CHAIN, None, "", self._clock(), entries)

    async def list_audit(
        self,
        *,
        after: tuple[int, int] | None = None,
        cluster: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int,
    ) -> list[AuditRow]:
        """At most `limit` rows that follow the key `after`, ordered by chain and number."""
        found = [
            row
            for row in self.audit.rows(after or (SERVER_CHAIN, 0))
            if (cluster is None or row.cluster == cluster)
            and (since is None or datetime.fromisoformat(row.at) >= since)
            and (until is None or datetime.fromisoformat(row.at) < until)
        ]
        return found[:limit]

    async def sweep_audit(self, *, keep_seconds: float) -> int:
        """Delete rows that are older, and return how many."""
        return self.audit.sweep(self._clock() - timedelta(seconds=keep_seconds))

    # Reading

    async def head(self, cluster_id: int) -> Head:
        """The head, at which the log ends (P8)."""
        return self.state_of(cluster_id).head

    async def heads(self, cluster_ids: Sequence[int]) -> dict[int, Head]:
        """The heads of several logs; clusters that are gone are absent."""
        return {
            number: self.clusters[number].head for number in cluster_ids if number in self.clusters
        }

    async def read_log(
        self,
        cluster_id: int,
        after: int,
        tip: UUID | None,
        limit: int,
        *,
        bytes_max: int = PAGE_BYTES_MAX,
        bodies: BodySelection = ALL_BODIES,
    ) -> LogPage | Diverged:
        """Whole commits after a revision whose last commit was `tip` (P3, P12)."""
        return self.state_of(cluster_id).page(after, tip, limit, bytes_max, bodies)

    async def read_objects(
        self,
        cluster_id: int,
        after: ObjectKey | None,
        limit: int,
        namespaces: Collection[str] | None = None,
    ) -> ObjectPage:
        """At most `limit` objects of all kinds that follow the key `after`, ordered by their keys (P13)."""
        own = self.state_of(cluster_id)
        keys = (
            key
            for key in own.objects
            if (after is None or key > after) and _is_within(key, namespaces)
        )
        rows = (own.objects[key] for key in nsmallest(limit, keys))
        return ObjectPage(own.head, first_rows(rows, limit))

    async def get_object(self, cluster_id: int, kind: str, namespace: str, name: str) -> ObjectRead:
        """One object, and the head of the same instant."""
        own = self.state_of(cluster_id)
        return ObjectRead(own.head, own.objects.get(ObjectKey(kind, namespace, name)))

    async def list_objects(
        self,
        cluster_id: int,
        kind: str,
        *,
        namespace: str | None = None,
        node_name: str | None = None,
        after: ObjectName | None = None,
        limit: int,
    ) -> ObjectPage:
        """At most `limit` objects that follow the key `after`, ordered by namespace and name."""
        own = self.state_of(cluster_id)
        rows = [
            row
            for row in own.objects.values()
            if row.kind == kind
            and (namespace is None or row.namespace == namespace)
            and (node_name is None or row.node_name == node_name)
            and (after is None or (row.namespace, row.name) > after)
        ]
        return ObjectPage(own.head, first_rows(sorted(rows, key=_key), limit))

    # Upkeep

    async def acquire_lease(
        self, cluster_id: int, name: str, holder: str, seconds: float
    ) -> Lease | None:
        """Take or prolong a lease; returns None if another holder has it or the cluster is gone."""
        own, now = self.clusters.get(cluster_id), self._clock()
        if own is None:
            return None
        held = own.leases.get(name)
        if held is not None and held.holder != holder and lasts(held, now):
            return None
        until = now + timedelta(seconds=seconds)
        own.leases[name] = Lease(cluster_id=cluster_id, name=name, holder=holder, until=until)
        return own.leases[name]

    async def claim_lease(
        self, cluster_id: int, name: str, holder: str, seconds: float
    ) -> Lease | None:
        """Take or prolong a lease, or return that of its holder; None if the cluster is gone."""
        taken = await self.acquire_lease(cluster_id, name, holder, seconds)
        own = self.clusters.get(cluster_id)
        return taken or (own.leases[name] if own else None)

    async def expired_leases(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """The leases of these names that have expired, so that their holders neither prolonged nor released them.

        Each comes with the name of its cluster.
        """
        now = self._clock()
        return sorted(
            (name, own.name)
            for own in self.clusters.values()
            for name, lease in own.leases.items()
            if name in names and not lasts(lease, now)
        )

    async def unattended(self, name: str, mention: bytes, kind: str = "Pod") -> list[str]:
        """The clusters whose lease of this name nobody holds, and that have an object with these bytes in its body."""
        return sorted(
            own.name
            for own in self.clusters.values()
            if name not in own.leases
            and any(row.kind == kind and mention in row.body for row in own.objects.values())
        )

    async def prolong_leases(self, held: HeldLeases, seconds: float) -> bool:
        """Prolong leases that are held still; False: at least one is not, and none is prolonged."""
        if self._ended([held]):
            return False
        for cluster_id, name in held.names:
            await self.acquire_lease(cluster_id, name, held.holder, seconds)
        return True

    async def pass_lease(
        self, cluster_id: int, name: str, holder: str, to: str, seconds: float
    ) -> bool:
        """Give a lease to another holder, if the holder still has it; return whether that was done."""
        own, now = self.clusters.get(cluster_id), self._clock()
        held = own.leases.get(name) if own else None
        if own is None or held is None or held.holder != holder or not lasts(held, now):
            return False
        until = now + timedelta(seconds=seconds)
        own.leases[name] = Lease(cluster_id=cluster_id, name=name, holder=to, until=until)
        return True

    async def announce_worker(
        self, servers: str, name: str, lease: str, seconds: float
    ) -> dict[str, int]:
        """Say that a worker is there for so long; how many leases of a name each worker holds that is there."""
        now = self._clock()
        self._workers[servers, name] = now + timedelta(seconds=seconds)
        self._workers = {each: until for each, until in self._workers.items() if until > now}
        held = [own.leases[lease] for own in self.clusters.values() if lease in own.leases]
        holders = Counter(each.holder for each in held if lasts(each, now))
        return {each: holders[each] for common, each in self._workers if common == servers}

    async def withdraw_worker(self, servers: str, name: str) -> None:
        """Say that a worker is about to end."""
        self._workers.pop((servers, name), None)

    async def release_lease(self, cluster_id: int, name: str, holder: str) -> None:
        """Give a lease back, if the holder still has it."""
        own = self.clusters.get(cluster_id)
        if own is not None and name in own.leases and own.leases[name].holder == holder:
            del own.leases[name]

    async def renew_node_leases(self, cluster_id: int, names: Sequence[str]) -> NodeReports:
        """Note that nodes have reported now; of names that no node has nothing is noted."""
        own, now = self.state_of(cluster_id), self._clock()
        known = {name for name in names if ObjectKey("Node", "", name) in own.objects}
        own.node_leases |= dict.fromkeys(known, now)
        return NodeReports(frozenset(known), now, own.head.revision)

    async def node_lease(self, cluster_id: int, name: str) -> datetime | None:
        """When a node last reported; None if it never did, or nobody remembers it."""
        return self.state_of(cluster_id).node_leases.get(name)

    async def look_at_node_leases(self, cluster_id: int, grace_seconds: float) -> NodeLeases:
        """Find the nodes that have not reported for so long, though they did before."""
        leases, now = self.state_of(cluster_id).node_leases, self._clock()
        before = now - timedelta(seconds=grace_seconds)
        silent = frozenset(name for name, at in leases.items() if at < before)
        return NodeLeases(now, bool(leases), silent)

    async def forget_node_leases(self, cluster_id: int, names: Sequence[str]) -> None:
        """Forget that nodes which are gone have ever reported."""
        own = self.clusters.get(cluster_id)
        if own is not None:
            for name in names:
                own.node_leases.pop(name, None)

    async def unattended_nodes(self, name: str) -> list[str]:
        """The clusters whose lease of this name nobody holds, with nodes that somebody has to look after."""
        return sorted(
            own.name
            for own in self.clusters.values()
            if name not in own.leases
            and (own.node_leases or any(map(_needs_look, own.objects.values())))
        )

    async def report_replicas(self, process: str, states: Mapping[int, ReplicaState]) -> None:
        """Store the state of a process's replicas, by cluster, in place of its earlier report."""
        self._reports[process] = (self._clock(), dict(states))

    async def replica_reports(self) -> list[ReplicaReport]:
        """The latest reports of running processes, ordered by cluster and process."""
        fresh = self._clock() - timedelta(seconds=REPORT_SECONDS_MAX)
        found = [
            ReplicaReport(
                process=process,
                cluster=self.clusters[cluster_id].name,
                revision=state.revision,
                hash=state.hash,
            )
            for process, (at, states) in self._reports.items()
            for cluster_id, state in states.items()
            if at > fresh and cluster_id in self.clusters
        ]
        return sorted(found, key=lambda report: (report.cluster, report.process))

    async def compact(
        self,
        cluster_id: int,
        *,
        keep_changes: int,
        keep_seconds: float,
        rows: int = COMPACTION_STEP_ROWS_MAX,
    ) -> tuple[int, bool]:
        """Make one step of compaction; returns the log's floor, and whether it rose (P12)."""
        own = self.state_of(cluster_id)
        before = self._clock() - timedelta(seconds=keep_seconds)
        reach = own.floor + rows
        old = [
            commit.last
            for commit in own.commits
            if commit.last > own.floor and commit.first <= reach and commit.at < before
        ]
        target = min(max(old, default=0), reach, own.head.revision - keep_changes)
        if target <= own.floor:
            return own.floor, False
        del own.changes[: target - own.floor]
        own.commits = [commit for commit in own.commits if commit.last > target]
        own.floor = target
        return target, True

    async def sweep_answers(self, cluster_id: int, *, keep_seconds: float) -> int:
        """Delete idempotency records that are older, and return how many (P11)."""
        own = self.clusters.get(cluster_id)
        if own is None:
            return 0
        before = self._clock() - timedelta(seconds=keep_seconds)
        old = [key for key, (at, _) in own.answers.items() if at < before]
        for key in old:
            del own.answers[key]
        return len(old)

    async def add_events(self, cluster_id: int, events: Sequence[Event]) -> None:
        """Add events, or raise the count of equal ones; nothing is added if the cluster is gone."""
        own = self.clusters.get(cluster_id)
        if own is not None:
            own.add_events(events)

    async def list_events(
        self,
        cluster_id: int,
        *,
        namespace: str | None = None,
        after: ObjectName | None = None,
        limit: int,
    ) -> EventPage:
        """At most `limit` events that follow the key `after`, ordered by namespace and name."""
        own = self.state_of(cluster_id)
        rows = [
            EventRow(name=key[1], event=event)
            for key, event in sorted(own.events.items())
            if (namespace is None or key[0] == namespace) and (after is None or key > after)
        ]
        return EventPage(own.head, rows[:limit])

    async def sweep_events(self, cluster_id: int, *, keep_seconds: float, keep_rows: int) -> int:
        """Delete events that are older, or exceed `keep_rows` of a reason; returns how many."""
        own = self.clusters.get(cluster_id)
        if own is None:
            return 0
        before = self._clock() - timedelta(seconds=keep_seconds)
        newest = sorted(own.events.items(), key=lambda each: each[1].last, reverse=True)
        places: Counter[str] = Counter()
        old = []
        for key, event in newest:
            places[event.reason] += 1
            if datetime.fromisoformat(event.last) < before or places[event.reason] > keep_rows:
                old.append(key)
        for key in old:
            del own.events[key]
        return len(old)

    async def lift_revision(self, cluster_id: int) -> None:
        """Begin a new history at a much higher revision, with an empty log (P3)."""
        own = self.state_of(cluster_id)
        lifted = own.head.revision + RESTORE_LIFT_REVISIONS
        own.head = Head(lifted, self._new_id(), max(self._clock(), own.head.at))
        own.floor = lifted
        own.changes.clear()
        own.commits.clear()

    async def continue_history(self, cluster_id: int, known: Head | None) -> bool:
        """Lift the revisions if the log lacks a head that the caller knows; return whether they were (P3)."""
        own = self.state_of(cluster_id)
        if known is None or known.tip == own.head.tip or known.revision <= own.floor:
            return False
        commits = ((commit.last, commit.commit_id) for commit in own.commits)
        if (known.revision, known.tip) in commits:
            return False
        await self.lift_revision(cluster_id)
        return True


def _needs_look(row: ObjectRow) -> bool:
    """Whether an object is a node with a taint that evicts, or one that may not be ready, or a node's state."""
    if row.kind == "Node":
        return b'"NoExecute"' in row.body or bool(UNREADY.search(row.body))
    return row.kind == "NodeState"


def _is_within(key: ObjectKey, namespaces: Collection[str] | None) -> bool:
    """Whether an object is one of these namespaces, is in one, or is another kind outside of namespaces."""
    if namespaces is None or key.namespace in namespaces:
        return True
    return not key.namespace and (key.kind != "Namespace" or key.name in namespaces)


def _key(row: ObjectRow) -> ObjectKey:
    return row.key
