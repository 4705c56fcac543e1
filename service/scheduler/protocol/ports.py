"""What the scheduler needs from outside: a store, a clock and identifiers.

Everything that could differ between two runs comes in here, so a simulation with several schedulers,
one store and one clock can be repeated exactly. The types of the values are in `service.model.log.commit`.
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
"""Decides on the log's end while the head is locked; None: there is nothing to commit after all.

It is called in the event loop, must not wait, and should take at most 50 ms (protocol rule P6).
"""


class LogStore(Protocol):
    """The logs of clusters."""

    async def head(self, cluster_id: int) -> Head:
        """Where the log ends, read after this call began (P8)."""
        ...

    async def heads(self, cluster_ids: Sequence[int]) -> dict[int, Head]:
        """Where several logs end; clusters that are gone are absent."""
        ...

    async def read(
        self,
        cluster_id: int,
        after: int,
        tip: UUID | None,
        limit: int,
        *,
        bytes_max: int = PAGE_BYTES_MAX,
        bodies: BodySelection = ALL_BODIES,
    ) -> LogPage | Diverged:
        """Read whole commits after a revision whose last commit was `tip` (P3, P12).

        The page ends with the commit that reaches `limit` changes, or bodies of `bytes_max` bytes.
        """
        ...

    async def commit(self, cluster_id: int, request: CommitRequest) -> CommitResult:
        """Extend the log if it still ends where the request expects it to (P1).

        Its leases cannot be taken by anybody else before it has ended.

        Raises:
            OutcomeUnknown: it is not known whether the log was extended; ask `settle_unknown`.
            ReplicaMismatch: the objects stored are not those that the request changes.
        """
        ...

    async def commit_locked(
        self, cluster_id: int, after: int, tip: UUID, decide: DecideLocked
    ) -> CommitResult | Behind | Diverged | None:
        """Lock the head, hand the log since `after` to `decide`, commit what it returns (protocol rule P6).

        Raises what `commit` raises.
        """
        ...

    async def settle_unknown(self, cluster_id: int, request: CommitRequest) -> Committed | Lost:
        """Find out whether an attempt was committed, and make sure that this stays so (P4).

        Raises:
            OutcomeUnknown: it cannot be found out now, or never again.
        """
        ...

    async def record_answers(
        self, cluster_id: int, head: Head, records: Sequence[IdempotencyRecord]
    ) -> CommitResult:
        """Keep answers that changed nothing, if the log still ends at this head (P11)."""
        ...

    async def find_answers(
        self, cluster_id: int, keys: Sequence[IdempotencyKey]
    ) -> Sequence[IdempotencyRecord]:
        """Return the records of those keys that have one."""
        ...


class ObjectStore(Protocol):
    """The objects of clusters."""

    async def read(self, cluster_id: int, after: ObjectKey | None, limit: int) -> ObjectPage:
        """Read at most `limit` objects of all kinds in the order of their keys, beyond `after` (P13).

        The page's head is read at the same instant. If there are fewer than `limit` objects, these
        are the last ones.
        """
        ...

    async def get(self, cluster_id: int, kind: str, namespace: str, name: str) -> ObjectRead:
        """One object, and the head of the same instant."""
        ...

    async def list(
        self,
        cluster_id: int,
        kind: str,
        *,
        namespace: str | None = None,
        node_name: str | None = None,
        after: ObjectName | None = None,
        limit: int,
    ) -> ObjectPage:
        """At most `limit` objects of a kind that follow the key `after`, ordered by namespace and name."""
        ...


class HistoryStore(Protocol):
    """The earlier revisions of clusters."""

    async def index(
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
        """Find the objects of a kind that were there at a revision, by the last changes of the log."""
        ...

    async def objects(
        self, cluster_id: int, kind: str, keys: Sequence[PastKey]
    ) -> list[ObjectRow] | None:
        """The first of these objects as they were, at least one; None: one is no longer known."""
        ...

    async def changes(
        self,
        cluster_id: int,
        revision: int,
        *,
        changes_max: int,
        limit: int,
        without: Sequence[str] = (),
    ) -> PastChanges:
        """Find objects that have changed since a revision, but those of the kinds `without`."""
        ...

    async def bound_at(
        self, cluster_id: int, namespace: str, name: str, revision: int
    ) -> int | None:
        """The change that gave a pod its node in the commit that a revision is of; None if none did."""
        ...


class ClusterStore(Protocol):
    """The clusters themselves."""

    async def get(self, name: str) -> ClusterRow:
        """The cluster that has this name now."""
        ...

    async def find(self, name: str) -> int:
        """The number of the cluster that has this name now."""
        ...

    async def ids(self) -> list[int]:
        """All clusters there are."""
        ...

    async def all(self) -> list[ClusterRow]:
        """All clusters, with the numbers of their objects."""
        ...

    async def create(self, name: str, config: bytes, caller: AuditedCaller) -> ClusterRow:
        """Create a cluster; raises Conflict if the name is taken meanwhile."""
        ...

    async def delete(
        self,
        cluster_id: int,
        caller: AuditedCaller,
        only_if: Callable[[int], None] | None = None,
        *,
        dry_run: bool = False,
    ) -> bool:
        """Delete a cluster with everything in it; False if it was gone already.

        `only_if` is called with the revision of the configuration at that moment. If it raises,
        nothing is deleted.
        """
        ...


class LeaseStore(Protocol):
    """The leases of clusters."""

    async def acquire(
        self, cluster_id: int, name: str, holder: str, seconds: float
    ) -> Lease | None:
        """Take or prolong a lease; None while another holds it, or if the cluster is gone."""
        ...

    async def claim(self, cluster_id: int, name: str, holder: str, seconds: float) -> Lease | None:
        """Take or prolong a lease, and return it with its holder; None if the cluster is gone."""
        ...

    async def prolong(self, held: HeldLeases, seconds: float) -> bool:
        """Prolong leases that are held still; False: at least one is not, and none is prolonged."""
        ...

    async def transfer(
        self, cluster_id: int, name: str, holder: str, to: str, seconds: float
    ) -> bool:
        """Give a lease to another holder; False: the holder no longer has it."""
        ...

    async def release(self, cluster_id: int, name: str, holder: str) -> None:
        """Give a lease back, if the holder still has it."""
        ...

    async def expired(self, names: Sequence[str]) -> list[tuple[str, str]]:
        """The leases of these names that have run out and were not given back, each with its cluster."""
        ...

    async def unattended(self, name: str, mention: bytes, kind: str = "Pod") -> list[str]:
        """The clusters whose lease of this name nobody holds, and where some object's body has these bytes."""
        ...


class WorkerStore(Protocol):
    """The workers of all servers."""

    async def register(self, servers: str, name: str, lease: str, seconds: float) -> dict[str, int]:
        """Say that a worker is there; how many leases of this name each worker of these servers holds."""
        ...

    async def deregister(self, servers: str, name: str) -> None:
        """Say that a worker is about to end."""
        ...


class HeartbeatStore(Protocol):
    """When the nodes of clusters last reported."""

    async def record(self, cluster_id: int, names: Sequence[str]) -> NodeReports:
        """Note that nodes have reported now; of names that no node has nothing is noted."""
        ...

    async def check(self, cluster_id: int, grace_seconds: float) -> NodeLeases:
        """Find the nodes that have not reported for so long, though they did before."""
        ...

    async def forget(self, cluster_id: int, names: Sequence[str]) -> None:
        """Forget that nodes which are gone have ever reported."""
        ...

    async def unattended(self, name: str) -> list[str]:
        """The clusters whose lease of this name nobody holds, with nodes that somebody has to look after."""
        ...


class EventStore(Protocol):
    """The events of clusters."""

    async def add(self, cluster_id: int, events: Sequence[Event]) -> None:
        """Add events, or count them if equal ones are stored; do nothing if the cluster is gone."""
        ...

    async def sweep(self, cluster_id: int, *, keep_seconds: float, keep_rows: int) -> int:
        """Delete some events that are too old, or too many of a reason; return how many, 0 at the end."""
        ...


class AuditStore(Protocol):
    """The audit, as far as it has to be bounded."""

    async def sweep(self, *, keep_seconds: float) -> int:
        """Delete some rows of the audit that are older, and return how many; 0: none is left."""
        ...


class HousekeepingStore(Protocol):
    """What bounds the logs of clusters and their idempotency records."""

    async def compact(
        self, cluster_id: int, *, keep_changes: int, keep_seconds: float
    ) -> tuple[int, bool]:
        """Do one step of compaction (P12); return the log's floor, and whether it rose.

        If it rose, there may be more to do, so call this again.
        """
        ...

    async def sweep_answers(self, cluster_id: int, *, keep_seconds: float) -> int:
        """Delete some idempotency records that are older, and return how many; 0: none is left (P11)."""
        ...


class RecoveryStore(Protocol):
    """What notices that a database was restored, or a standby promoted."""

    async def continue_history(self, cluster_id: int, known: Head | None) -> bool:
        """Note of which history the cluster's revisions are; lift them, and return True, if some may be lost.

        `known` is the last head that the caller knows; its presence in the log proves that nothing is (P3).
        """
        ...


class ReportStore(Protocol):
    """The reports of processes on their replicas."""

    async def report(self, process: str, states: Mapping[int, ReplicaState]) -> None:
        """Report all replicas of one process, by cluster; raises StorageUnavailable."""
        ...


class Store(Protocol):
    """The truth: a log of commits for each cluster, and the objects that it adds up to.

    Every call of its parts raises StorageUnavailable when the database cannot be asked (nothing was
    committed), and NotFound when the cluster is gone.
    """

    @property
    def epoch(self) -> int:
        """A number that rises when the database tells another history (P3)."""
        ...

    @property
    def log(self) -> LogStore: ...

    @property
    def objects(self) -> ObjectStore: ...

    @property
    def history(self) -> HistoryStore: ...

    @property
    def clusters(self) -> ClusterStore: ...

    @property
    def leases(self) -> LeaseStore: ...

    @property
    def workers(self) -> WorkerStore: ...

    @property
    def heartbeats(self) -> HeartbeatStore: ...

    @property
    def events(self) -> EventStore: ...

    @property
    def audit(self) -> AuditStore: ...

    @property
    def housekeeping(self) -> HousekeepingStore: ...

    @property
    def recovery(self) -> RecoveryStore: ...

    def notify(self, cluster_id: int) -> None:
        """Let other processes know, soon, that a log has grown: a hint, which may get lost (P14)."""
        ...

    def listen(self) -> AsyncGenerator[frozenset[int], None]:
        """Yield the clusters whose logs are said to have grown; an empty set: perhaps all of them.

        It never ends, and raises nothing.
        """
        ...


class Clock(Protocol):
    """Time, and the only way to let it pass."""

    def now(self) -> datetime:
        """The wall clock, with a timezone: for timestamps that people read."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment: for time limits."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let other tasks run for so long; 0: each of them once."""
        ...


class Ids(Protocol):
    """Identifiers that nobody else has."""

    def uid(self) -> str:
        """A new object's `metadata.uid`."""
        ...

    def suffix(self) -> str:
        """The end of a name that is made of a `generateName`, which others may have, too."""
        ...

    def commit_id(self) -> UUID:
        """A new attempt's id."""
        ...
