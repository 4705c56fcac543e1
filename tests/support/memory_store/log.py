"""Extends and reads the logs of clusters in memory, as `service.store.log.commits` does."""

from collections.abc import Callable, Sequence
from uuid import UUID

from service.model.core.errors import OutcomeUnknown
from service.model.log.commit import (
    ALL_BODIES,
    LOCKED_LAG_CHANGES_MAX,
    BodySelection,
    CommitRequest,
    Diverged,
    Head,
    IdempotencyKey,
    IdempotencyRecord,
    LogPage,
    effects,
)
from service.model.log.pages import PAGE_BYTES_MAX
from service.model.log.results import (
    Behind,
    CommitResult,
    Committed,
    DuplicateKey,
    LeasesEnded,
    Lost,
    NotYet,
)
from tests.support.memory_store.state import ClusterState, MemoryState


class MemoryLog:
    """The logs of clusters."""

    def __init__(self, state: MemoryState) -> None:
        self.state = state

    async def head(self, cluster_id: int) -> Head:
        """The head, at which the log ends (P8)."""
        return self.state.of(cluster_id).head

    async def heads(self, cluster_ids: Sequence[int]) -> dict[int, Head]:
        """The heads of several logs; clusters that are gone are absent."""
        return {
            number: self.state.states[number].head
            for number in cluster_ids
            if number in self.state.states
        }

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
        """Whole commits after a revision whose last commit was `tip` (P3, P12)."""
        return self.state.of(cluster_id).page(after, tip, limit, bytes_max, bodies)

    async def commit(self, cluster_id: int, request: CommitRequest) -> CommitResult:
        """Extend the log if it still ends where the request expects it to (P1)."""
        return self.commit_to(self.state.of(cluster_id), request)

    def commit_to(self, own: ClusterState, request: CommitRequest) -> CommitResult:
        """Compare and swap the head, as `commit` and `commit_locked` do."""
        # This raises if the changes contradict one another, wherever the head is.
        acting = effects(request.changes)
        expected = (request.expected_revision, request.expected_tip)
        if (own.head.revision, own.head.tip) != expected:
            return Lost(own.head)
        at = max(self.state.clock(), own.head.at)
        if request.not_before is not None and at < request.not_before:
            return NotYet(own.head)
        if request.leases and (ended := self.state.ended(request.leases)):
            return LeasesEnded(ended)
        if request.idempotency:
            known = own.find([record.id for record in request.idempotency])
            if known:
                return DuplicateKey(known)
        own.append(request, acting, at)
        audit = () if self.state.policy.never else request.audit
        if audit and self.state.policy.applies_to([entry.caller for entry in audit]):
            self.state.chains.add(own.cluster_id, own.cluster_id, own.name, at, audit)
        return Committed(own.head)

    async def settle_unknown(self, cluster_id: int, request: CommitRequest) -> Committed | Lost:
        """Find out what became of an attempt, and make sure that it stays so (P4)."""
        own = self.state.of(cluster_id)
        expected = (request.expected_revision, request.expected_tip)
        if (own.head.revision, own.head.tip) == expected:
            at = max(self.state.clock(), own.head.at)
            own.extend(self.state.new_id(), own.head.revision, at, "Fence", own.head.revision)
            return Lost(own.head)
        for commit in own.commits:
            if commit.commit_id == request.commit_id:
                return Committed(Head(commit.last, commit.commit_id, commit.at))
        if own.floor > request.expected_revision:
            raise OutcomeUnknown("Whether the change was committed can no longer be found out.")
        return Lost(own.head)

    async def commit_locked(
        self,
        cluster_id: int,
        after: int,
        tip: UUID,
        decide: Callable[[LogPage], CommitRequest | None],
    ) -> CommitResult | Behind | Diverged | None:
        """Hand the log since (`after`, `tip`) to `decide` and commit its answer at once (P6)."""
        own = self.state.of(cluster_id)
        if own.head.revision - after > LOCKED_LAG_CHANGES_MAX:
            return Behind(own.head)
        page = own.page(after, tip, LOCKED_LAG_CHANGES_MAX, PAGE_BYTES_MAX)
        if isinstance(page, Diverged):
            return page
        if page.revision < own.head.revision:
            return Behind(own.head)
        request = decide(page)
        return None if request is None else self.commit_to(own, request)

    async def record_answers(
        self, cluster_id: int, head: Head, records: Sequence[IdempotencyRecord]
    ) -> CommitResult:
        """Record answers that changed nothing, if the log still ends at this head (P11)."""
        own = self.state.of(cluster_id)
        if (own.head.revision, own.head.tip) != (head.revision, head.tip):
            return Lost(own.head)
        known = own.find(record.id for record in records)
        if known:
            return DuplicateKey(known)
        own.record(records, self.state.clock())
        return Committed(own.head)

    async def find_answers(
        self, cluster_id: int, keys: Sequence[IdempotencyKey]
    ) -> tuple[IdempotencyRecord, ...]:
        """The recorded answers of these keys; none if the cluster is gone."""
        own = self.state.states.get(cluster_id)
        return () if own is None else own.find(keys)

    async def check_writable(self) -> None:
        """Do nothing, since commits in memory always work."""
