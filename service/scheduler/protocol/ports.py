"""What the scheduler needs of the world: a store, a clock and identifiers.

Everything that could differ between two runs comes in here, so several schedulers, one store and
one clock make a simulation that can be repeated exactly. Shapes are `service.model.log`'s.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from service.model.audit import AuditedCaller
from service.model.events import Event
from service.model.log import (
    Behind,
    ClusterRow,
    CommitRequest,
    CommitResult,
    Committed,
    Diverged,
    Head,
    IdempotencyKey,
    IdempotencyRecord,
    Lease,
    LogPage,
    Lost,
    ObjectKey,
    ObjectPage,
    ReplicaState,
)

DecideLocked = Callable[[LogPage], CommitRequest | None]
"""Decides on the log's end while the head is locked; None: there is nothing to commit after all.

It is called in the event loop, must not wait, and should take at most 50 ms (P6).
"""


class Store(Protocol):
    """The truth: a log of commits for each cluster, and the objects that it adds up to.

    Every call raises StorageUnavailable when the database cannot be asked (nothing was
    committed), and NotFound when the cluster is gone.
    """

    async def get_cluster(self, name: str) -> ClusterRow:
        """The cluster that has this name now."""
        ...

    async def find_cluster(self, name: str) -> int:
        """The number of the cluster that has this name now."""
        ...

    async def create_cluster(self, name: str, config: bytes, caller: AuditedCaller) -> ClusterRow:
        """A new cluster; if the name is taken meanwhile, Conflict is raised."""
        ...

    async def delete_cluster(self, cluster_id: int, caller: AuditedCaller) -> bool:
        """Delete a cluster with everything in it; False if it was gone already."""
        ...

    async def head(self, cluster_id: int) -> Head:
        """Where the log ends, read after this call began (P8)."""
        ...

    async def heads(self, cluster_ids: Sequence[int]) -> dict[int, Head]:
        """Where several logs end; clusters that are gone are absent."""
        ...

    async def read_objects(
        self, cluster_id: int, after: ObjectKey | None, limit: int
    ) -> ObjectPage:
        """At most `limit` objects of all kinds by their keys, those beyond the key `after` (P13).

        The page's head is of the same instant; fewer than `limit` objects: there are no more.
        """
        ...

    async def read_log(
        self, cluster_id: int, after: int, tip: UUID | None, limit: int
    ) -> LogPage | Diverged:
        """Whole commits after a revision whose last commit was `tip` (P3, P12)."""
        ...

    async def commit(self, cluster_id: int, request: CommitRequest) -> CommitResult:
        """Extend the log if it still ends where the request expects it to (P1).

        Raises:
            OutcomeUnknown: it cannot be said whether it was extended; ask `settle_unknown`.
            ReplicaMismatch: the objects stored are not those that the request changes.
        """
        ...

    async def commit_locked(
        self, cluster_id: int, after: int, tip: UUID, decide: DecideLocked
    ) -> CommitResult | Behind | Diverged | None:
        """Lock the head, hand the log since `after` to `decide`, commit what it returns (P6).

        Raises what `commit` raises.
        """
        ...

    async def settle_unknown(self, cluster_id: int, request: CommitRequest) -> Committed | Lost:
        """Find out what became of an attempt, and make sure that it stays so (P4).

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
        """The records that these keys have."""
        ...

    def notify(self, cluster_id: int) -> None:
        """Let other processes know, soon, that a log has grown: a hint, which may get lost (P14)."""
        ...

    def listen(self) -> AsyncGenerator[frozenset[int], None]:
        """Clusters whose logs are said to have grown; an empty set: perhaps any of them has.

        It never ends, and raises nothing.
        """
        ...

    async def cluster_ids(self) -> list[int]:
        """All clusters there are."""
        ...

    async def list_clusters(self) -> list[ClusterRow]:
        """All clusters with what they count."""
        ...

    async def expired_leases(self, name: str) -> list[str]:
        """The clusters of which nobody prolonged the lease of this name, and nobody gave it back."""
        ...

    async def unattended(self, name: str, mention: bytes) -> list[str]:
        """The clusters of which nobody has the lease of this name, and a pod's body has these bytes."""
        ...

    async def acquire_lease(
        self, cluster_id: int, name: str, holder: str, seconds: float
    ) -> Lease | None:
        """Take or prolong a lease; None while another holds it, or if the cluster is gone."""
        ...

    async def claim_lease(
        self, cluster_id: int, name: str, holder: str, seconds: float
    ) -> Lease | None:
        """Take or prolong a lease, or tell who holds it; None if the cluster is gone."""
        ...

    async def release_lease(self, cluster_id: int, name: str, holder: str) -> None:
        """Give a lease back, if the holder still has it."""
        ...

    async def compact(
        self, cluster_id: int, *, keep_changes: int, keep_seconds: float
    ) -> tuple[int, bool]:
        """One step of compaction: the log's floor, and whether it rose (then ask again) (P12)."""
        ...

    async def sweep_answers(self, cluster_id: int, *, keep_seconds: float) -> int:
        """Delete idempotency records that are older; how many (ask again if any) (P11)."""
        ...

    async def add_events(self, cluster_id: int, events: Sequence[Event]) -> None:
        """Add events, or count them where there are equal ones; none if the cluster is gone."""
        ...

    async def sweep_events(self, cluster_id: int, *, keep_seconds: float, keep_rows: int) -> int:
        """Delete events that are older, or beyond so many of a reason; how many (ask again)."""
        ...

    async def sweep_audit(self, *, keep_seconds: float) -> int:
        """Delete rows of the audit that are older; how many (ask again if any)."""
        ...


class ReplicaReports(Protocol):
    """Where processes say what their replicas hold."""

    async def report_replicas(self, process: str, states: Mapping[int, ReplicaState]) -> None:
        """Say so of all replicas of one process, by cluster; raises StorageUnavailable."""
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
        """Let others run for so long; 0: just once."""
        ...


class Ids(Protocol):
    """Identifiers that nobody else has."""

    def uid(self) -> str:
        """A new object's `metadata.uid`."""
        ...

    def commit_id(self) -> UUID:
        """A new attempt's id."""
        ...
