"""The ports of the scheduler: a store, a clock, and a source of identifiers.

Everything that could differ between two runs enters here, so a simulation with several schedulers,
one store, and one clock is exactly repeatable. The types of the values are in
`service.model.log.commit`.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from service.model.core.primitives import ObjectName
from service.model.log.audit_chain import AuditedCaller
from service.model.log.commit import (
    ALL_BODIES,
    BodySelection,
    CommitRequest,
    Diverged,
    Head,
    IdempotencyKey,
    IdempotencyRecord,
    LogPage,
    ObjectKey,
    ObjectRow,
)
from service.model.log.events import Event
from service.model.log.history import PastChanges, PastIndex, PastKey, PastSelection
from service.model.log.lease import HeldLeases, Lease, NodeLeases, NodeReports, ReplicaState
from service.model.log.pages import PAGE_BYTES_MAX, ClusterRow, ObjectPage, ObjectRead
from service.model.log.results import Behind, CommitResult, Committed, Lost

DecideLocked = Callable[[LogPage], CommitRequest | None]
"""Decides on the log's end while the head is locked; returns None if there is nothing to commit.

It is called in the event loop, must not wait, and should take at most 50 ms (protocol rule P6).
"""


class Store(Protocol):
    """The source of truth: each cluster's log of commits, and the objects that result from it.

    Every call raises StorageUnavailable when the database cannot be reached (nothing was
    committed), and NotFound when the cluster has been deleted.
    """

    @property
    def epoch(self) -> int:
        """A number that increases when the database shows another history (protocol rule P3)."""
        ...

    async def get_cluster(self, name: str) -> ClusterRow:
        """Return the cluster that currently has this name."""
        ...

    async def find_cluster(self, name: str) -> int:
        """Return the number of the cluster that currently has this name."""
        ...

    async def create_cluster(self, name: str, config: bytes, caller: AuditedCaller) -> ClusterRow:
        """Create a cluster.

        Raises:
            Conflict: the name was taken meanwhile.
        """
        ...

    async def delete_cluster(
        self,
        cluster_id: int,
        caller: AuditedCaller,
        only_if: Callable[[int], None] | None = None,
        *,
        dry_run: bool = False,
    ) -> bool:
        """Delete a cluster with everything in it; return False if it was already gone.

        `only_if` is called with the revision of the configuration at that moment. If it raises,
        nothing is deleted.
        """
        ...

    async def head(self, cluster_id: int) -> Head:
        """Return where the log ends, read after this call began (protocol rule P8)."""
        ...

    async def heads(self, cluster_ids: Sequence[int]) -> dict[int, Head]:
        """Return where several logs end; deleted clusters are absent."""
        ...

    async def read_objects(
        self, cluster_id: int, after: ObjectKey | None, limit: int
    ) -> ObjectPage:
        """Read at most `limit` objects of all kinds in key order, beyond `after` (protocol rule P13).

        The page's head is read at the same instant. A page of fewer than `limit` objects is the
        last.
        """
        ...

    async def get_object(self, cluster_id: int, kind: str, namespace: str, name: str) -> ObjectRead:
        """Return one object, and the head at the same instant."""
        ...

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
        """Return at most `limit` objects of a kind after the key `after`, by namespace and name."""
        ...

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
        """Read whole commits after a revision whose last commit was `tip` (protocol rules P3 and P12).

        The page ends with the commit that reaches `limit` changes, or bodies of `bytes_max` bytes.
        """
        ...

    async def past_index(
        self,
        cluster_id: int,
        selection: PastSelection,
        revision: int,
        *,
        changes_max: int,
        after: ObjectName | None = None,
        node_name: str | None = None,
        limit: int,
    ) -> PastIndex:
        """Find the objects of a kind that existed at a revision, by their last changes in the log."""
        ...

    async def past_objects(
        self, cluster_id: int, kind: str, keys: Sequence[PastKey]
    ) -> list[ObjectRow] | None:
        """Return the first of these objects as they were, at least one; None if one is no longer known."""
        ...

    async def past_changes(
        self,
        cluster_id: int,
        revision: int,
        *,
        changes_max: int,
        limit: int,
        without: Sequence[str] = (),
    ) -> PastChanges:
        """Find objects that have changed since a revision, except those of the kinds `without`."""
        ...

    async def bound_at(
        self, cluster_id: int, namespace: str, name: str, revision: int
    ) -> int | None:
        """Return the change that bound a pod in the commit of a revision, or None."""
        ...

    async def commit(self, cluster_id: int, request: CommitRequest) -> CommitResult:
        """Extend the log if it still ends where the request expects (protocol rule P1).

        Nobody else can take its leases before it has ended.

        Raises:
            OutcomeUnknown: it is not known whether the log was extended; call `settle_unknown`.
            ReplicaMismatch: the stored objects are not those that the request changes.
        """
        ...

    async def commit_locked(
        self, cluster_id: int, after: int, tip: UUID, decide: DecideLocked
    ) -> CommitResult | Behind | Diverged | None:
        """Lock the head, pass the log since `after` to `decide`, and commit its result (protocol rule P6).

        Raises what `commit` raises.
        """
        ...

    async def settle_unknown(self, cluster_id: int, request: CommitRequest) -> Committed | Lost:
        """Determine whether an attempt was committed, and make that final (protocol rule P4).

        Raises:
            OutcomeUnknown: it cannot be determined now, or ever again.
        """
        ...

    async def record_answers(
        self, cluster_id: int, head: Head, records: Sequence[IdempotencyRecord]
    ) -> CommitResult:
        """Store answers that changed nothing, if the log still ends at this head (protocol rule P11)."""
        ...

    async def find_answers(
        self, cluster_id: int, keys: Sequence[IdempotencyKey]
    ) -> Sequence[IdempotencyRecord]:
        """Return the records of those keys that have one."""
        ...

    def notify(self, cluster_id: int) -> None:
        """Announce, soon, that a log has grown: a hint, which may get lost (protocol rule P14)."""
        ...

    def listen(self) -> AsyncGenerator[frozenset[int], None]:
        """Yield the clusters whose logs may have grown; an empty set stands for all of them.

        It never ends, and raises nothing.
        """
        ...

    async def cluster_ids(self) -> list[int]:
        """Return the numbers of all clusters."""
        ...

    async def list_clusters(self) -> list[ClusterRow]:
        """Return all clusters, with their numbers of objects."""
        ...

    async def expired_leases(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """Return expired leases of these names that were not released, each with its cluster."""
        ...

    async def unattended(self, name: str, mention: bytes, kind: str = "Pod") -> list[str]:
        """Return clusters with an unheld lease of this name and an object whose body contains `mention`."""
        ...

    async def continue_history(self, cluster_id: int, known: Head | None) -> bool:
        """Record which history the cluster's revisions belong to; skip ahead if some may be lost.

        `known` is the last head that the caller knows; its presence in the log proves that nothing
        is lost (protocol rule P3). Returns whether revisions were skipped.
        """
        ...

    async def acquire_lease(
        self, cluster_id: int, name: str, holder: str, seconds: float
    ) -> Lease | None:
        """Acquire or renew a lease; return None if another holds it, or if the cluster is gone."""
        ...

    async def claim_lease(
        self, cluster_id: int, name: str, holder: str, seconds: float
    ) -> Lease | None:
        """Acquire or renew a lease, and return it with its holder, or None if the cluster is gone."""
        ...

    async def prolong_leases(self, held: HeldLeases, seconds: float) -> bool:
        """Renew held leases; if any is no longer held, renew none and return False."""
        ...

    async def pass_lease(
        self, cluster_id: int, name: str, holder: str, to: str, seconds: float
    ) -> bool:
        """Hand a lease to another holder; return False if `holder` no longer has it."""
        ...

    async def announce_worker(
        self, servers: str, name: str, lease: str, seconds: float
    ) -> dict[str, int]:
        """Register this worker as alive; return how many leases named `lease` each worker holds."""
        ...

    async def withdraw_worker(self, servers: str, name: str) -> None:
        """Unregister a worker that is about to stop."""
        ...

    async def release_lease(self, cluster_id: int, name: str, holder: str) -> None:
        """Release a lease, if the holder still has it."""
        ...

    async def renew_node_leases(self, cluster_id: int, names: Sequence[str]) -> NodeReports:
        """Record that nodes have reported now; names of unknown nodes are ignored."""
        ...

    async def look_at_node_leases(self, cluster_id: int, grace_seconds: float) -> NodeLeases:
        """Find nodes that have reported before, but not within the grace period."""
        ...

    async def forget_node_leases(self, cluster_id: int, names: Sequence[str]) -> None:
        """Forget the reports of deleted nodes."""
        ...

    async def unattended_nodes(self, name: str) -> list[str]:
        """Return clusters with an unheld lease of this name and nodes that need monitoring."""
        ...

    async def compact(
        self, cluster_id: int, *, keep_changes: int, keep_seconds: float
    ) -> tuple[int, bool]:
        """Run one step of compaction (protocol rule P12); return the log's floor, and whether it rose.

        If it rose, there may be more to do: call this again.
        """
        ...

    async def sweep_answers(self, cluster_id: int, *, keep_seconds: float) -> int:
        """Delete some expired idempotency records; return how many, 0 if none is left (protocol rule P11)."""
        ...

    async def add_events(self, cluster_id: int, events: Sequence[Event]) -> None:
        """Add events, or count them if equal ones are stored; do nothing if the cluster is gone."""
        ...

    async def sweep_events(self, cluster_id: int, *, keep_seconds: float, keep_rows: int) -> int:
        """Delete some events that are too old or too many of a reason; return how many, 0 at the end."""
        ...

    async def sweep_audit(self, *, keep_seconds: float) -> int:
        """Delete some expired audit rows; return how many, 0 if none is left."""
        ...


class ReplicaReports(Protocol):
    """Where processes report the state of their replicas."""

    async def report_replicas(self, process: str, states: Mapping[int, ReplicaState]) -> None:
        """Report all replicas of one process, by cluster.

        Raises:
            StorageUnavailable: the database cannot be reached.
        """
        ...


class Clock(Protocol):
    """A source of time, and the only way to wait."""

    def now(self) -> datetime:
        """Return the wall-clock time with a timezone, for timestamps that people read."""
        ...

    def monotonic(self) -> float:
        """Return seconds since some fixed moment, for time limits."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let other tasks run for this many seconds; 0 runs each of them once."""
        ...


class Ids(Protocol):
    """A source of unique identifiers."""

    def uid(self) -> str:
        """Return a `metadata.uid` for a new object."""
        ...

    def suffix(self) -> str:
        """Return the end of a name made from a `generateName`; it is not necessarily unique."""
        ...

    def commit_id(self) -> UUID:
        """Return an id for a new commit attempt."""
        ...
