"""Extends the log on PostgreSQL: commits, settles unknown outcomes, commits under the lock."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from uuid import UUID

import asyncpg

from service.model.core.errors import NotFound, OutcomeUnknown, StorageUnavailable
from service.model.log.commit import (
    LOCKED_LAG_CHANGES_MAX,
    Change,
    CommitRequest,
    Diverged,
    Head,
    IdempotencyKey,
    IdempotencyRecord,
    LogPage,
    ReplicaMismatch,
    effects,
)
from service.model.log.lease import HeldLeases
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
from service.store import array_literals
from service.store.audit import AUDIT_COLUMNS, audit_columns
from service.store.connecting.connections import Connections, Driver
from service.store.connecting.failures import is_unavailable, unavailable_on_failure
from service.store.connecting.outage_log import Outages, reason_of
from service.store.events import EVENT_COLUMNS, event_columns
from service.store.log.log_reads import read_page
from service.store.upkeep import LASTS
from service.store.whether_audit_is_kept import Keeping

DecideLocked = Callable[[LogPage], CommitRequest | None]
"""Decides on the end of the log while the head is locked; None gives the lock back."""

T = TypeVar("T")

_KEY_TAKEN = "idempotency_pkey"
_OBJECT_EXISTS = "object_pkey"
_QUOTED = re.compile(rf'"((?:{_KEY_TAKEN}|{_OBJECT_EXISTS})[^"]*)"')
_MISMATCH = "MR002"
_MISTAKES = ("22", "23", "42", "MR")
"""Error classes of mistakes: bad values, broken constraints, missing tables, unequal arrays."""

_PLACES = [f"${place}" for place in range(1, 24 + EVENT_COLUMNS + AUDIT_COLUMNS)]
# All statements are put together from placeholders alone, so no SQL can be injected.
_COMMIT = f"SELECT * FROM commit_v5({', '.join(_PLACES[:23])})"  # noqa: S608
_COMMIT_WITH_EVENTS = f"SELECT * FROM commit_v5({', '.join(_PLACES[: 23 + EVENT_COLUMNS])})"  # noqa: S608
_COMMIT_WITH_AUDIT = f"SELECT * FROM commit_v5({', '.join(_PLACES)})"  # noqa: S608
_FENCE = "SELECT * FROM fence_v1($1, $2, $3, gen_random_uuid())"
_FIND_COMMIT = """
    SELECT f.revision AS floor, c.last_revision, c.at
    FROM floor AS f
    LEFT JOIN commit AS c
        ON c.cluster_id = $1 AND c.last_revision = $2 AND c.commit_id = $3
    WHERE f.cluster_id = $1
"""
LOCK_WAIT_SECONDS = 2.0
"""How long a transaction waits for the lock on a head."""
LOCK_IDLE_SECONDS = 1.0
"""How long a transaction that has the lock may be idle before PostgreSQL ends it."""
_BEGIN = """
    BEGIN;
    SET LOCAL idle_in_transaction_session_timeout = {idle:.0f};
    SET LOCAL lock_timeout = {wait:.0f};
"""
_BOUND = "SET LOCAL transaction_timeout = {whole:.0f};"
_TRANSACTION_TIMEOUT_SINCE = 17
# Whoever takes a lease that has ended waits for the lock, and then sees what was committed.
_HELD = f"""
    SELECT l.holder, l.name
    FROM lease AS l, unnest($2::text[], $3::text[]) AS f (holder, name)
    WHERE l.cluster_id = $1 AND l.name = f.name AND l.holder = f.holder
        AND {LASTS}
    FOR SHARE OF l
"""  # noqa: S608 - put together from constants
_LOCK = "SELECT revision, tip, at FROM head WHERE cluster_id = $1 FOR NO KEY UPDATE"

_RECORD = "SELECT * FROM record_answers_v1($1, $2, $3, $4, $5, $6, $7, $8)"
_FIND_RECORDS = """
    SELECT r.operation, r.key, r.chunk, r.request_hash, r.answer
    FROM unnest($2::text[], $3::text[], $4::integer[]) AS k (operation, key, chunk),
        LATERAL (SELECT * FROM idempotency AS i
            WHERE i.cluster_id = $1 AND i.operation = k.operation AND i.key = k.key
                AND i.chunk = k.chunk
            OFFSET 0) AS r
"""
PROOF_SECONDS_MAX = 3.0
"""How long the proof that commits work may take."""
# The rows do not fit into the memory that is allowed, so they are written to a temporary file,
# which a full disk has no room for. An update of no row asks for the same rights as one of some.
_PROVE = """
    BEGIN;
    SET LOCAL work_mem = '64kB';
    SELECT count(*) FROM generate_series(1, 20000);
    UPDATE head SET revision = revision WHERE false;
    SELECT pg_logical_emit_message(true, 'moorage', 'proof');
    COMMIT;
"""
_WRITE_SOMETHING = "SELECT pg_logical_emit_message(true, 'moorage', '')"


class Commits:
    """The part of the store that writes to the log."""

    def __init__(
        self, connections: Connections, keeping: Keeping, outages: Outages | None = None
    ) -> None:
        self._commits = connections
        self._audit = keeping
        self._outages = outages or Outages()
        self._running: set[asyncio.Task[Any]] = set()

    async def commit(self, cluster_id: int, request: CommitRequest) -> CommitResult:
        """Extend the log if it still ends where the request expects it to (P1).

        Once begun, this runs to its end even if the caller is cancelled.

        Raises:
            StorageUnavailable: nothing was committed.
            OutcomeUnknown: it is not known whether the commit was made; ask `settle_unknown`.
            ReplicaMismatch: the stored objects are not those that the request changes.
            NotFound: there is no such cluster.
        """
        call = self._call(cluster_id, request)
        commit = self._commit_with_leases if request.leases else self._commit
        return await self.to_its_end(commit(cluster_id, request, call))

    async def _commit(
        self, cluster_id: int, request: CommitRequest, call: tuple[str, tuple[object, ...]]
    ) -> CommitResult:
        try:
            statement, arguments = call
            row = await self._write(statement, *arguments)
        except _KeyTaken:
            return await self._duplicate(cluster_id, request.idempotency)
        return _result(cluster_id, row)

    async def _commit_with_leases(
        self, cluster_id: int, request: CommitRequest, call: tuple[str, tuple[object, ...]]
    ) -> CommitResult:
        """Commit in a transaction that keeps the leases on which the commit rests.

        The head is locked first, as by all who delete a cluster and then its leases.
        """
        try:
            async with self._locked(cluster_id) as (connection, _):
                ended = await _ended(connection, request.leases)
                if ended:
                    return LeasesEnded(ended)
                return await _commit_and_end(connection, cluster_id, call)
        except _KeyTaken:
            return await self._duplicate(cluster_id, request.idempotency)

    def _call(self, cluster_id: int, request: CommitRequest) -> tuple[str, tuple[object, ...]]:
        """The statement and its arguments; without events and audit a simpler statement is enough."""
        arguments = _arguments(cluster_id, request)
        audit = () if self._audit.never else request.audit
        if audit and self._audit.of([entry.caller for entry in audit]):
            kept = (*event_columns(request.events), *audit_columns(request.audit))
            return _COMMIT_WITH_AUDIT, (*arguments, *kept)
        if request.events:
            return _COMMIT_WITH_EVENTS, (*arguments, *event_columns(request.events))
        return _COMMIT, arguments

    async def _write(self, statement: str, *arguments: object) -> asyncpg.Record | None:
        """Run one autocommitted statement, without a time-out: the outcome is worth waiting for."""
        async with self._commits.driver() as connection:
            try:
                return await connection.fetchrow(statement, *arguments)
            except Exception as error:
                if _is_mistake(error):
                    raise
                if is_unavailable(error):
                    self._outages.failed("commit", reason_of(error))
                raise _failed_commit(error) from error

    async def settle_unknown(self, cluster_id: int, request: CommitRequest) -> Committed | Lost:
        """Find out what became of an attempt, and make sure that it stays so (P4).

        Giving the head another tip kills an attempt that is still on its way. If the head is
        elsewhere already, the log tells whether the attempt took it there.

        Raises:
            OutcomeUnknown: it cannot be found out now, or no more because the log was compacted.
            NotFound: there is no such cluster.
        """
        try:
            return await self.to_its_end(self._settle(cluster_id, request))
        except StorageUnavailable as error:
            raise OutcomeUnknown("Whether the change was committed is not known yet.") from error

    async def _settle(self, cluster_id: int, request: CommitRequest) -> Committed | Lost:
        with unavailable_on_failure():
            async with self._commits.driver() as connection:
                fence = await connection.fetchrow(
                    _FENCE, cluster_id, request.expected_revision, request.expected_tip
                )
                if fence is None or fence["outcome"] == "Gone":
                    raise _gone(cluster_id)
                head = _head(fence)
                if fence["outcome"] == "Fenced":
                    return Lost(head)
                found = await connection.fetchrow(
                    _FIND_COMMIT, cluster_id, request.last_revision, request.commit_id
                )
        return _verdict(cluster_id, request, head, found)

    async def commit_locked(
        self, cluster_id: int, after: int, tip: UUID, decide: DecideLocked
    ) -> CommitResult | Behind | Diverged | None:
        """Lock the head, hand the log since (`after`, `tip`) to `decide`, commit its answer (P6).

        `decide` runs in the event loop, must not wait, and should take at most 50 ms: all others
        who commit to the cluster wait meanwhile. What it raises is raised here, and nothing is
        committed. The answer is Behind, without asking it, if the log is too far ahead, and None
        if it returned None.

        Raises: what `commit` raises.
        """
        return await self.to_its_end(self._commit_locked(cluster_id, after, tip, decide))

    async def _commit_locked(
        self, cluster_id: int, after: int, tip: UUID, decide: DecideLocked
    ) -> CommitResult | Behind | Diverged | None:
        request: CommitRequest | None = None
        try:
            async with self._locked(cluster_id) as (connection, head):
                if head.revision - after > LOCKED_LAG_CHANGES_MAX:
                    return Behind(head)
                # This is a later statement than the one that locked, as that one could see the
                # new head without the rows that came with it (P5).
                page = await read_page(
                    *(connection, cluster_id, after, tip, LOCKED_LAG_CHANGES_MAX),
                    bytes_max=PAGE_BYTES_MAX,
                )
                if isinstance(page, Diverged):
                    return page
                if page.revision < head.revision:
                    return Behind(head)
                request = decide(page)
                if request is None:
                    return None
                ended = await _ended(connection, request.leases)
                if ended:
                    return LeasesEnded(ended)
                call = self._call(cluster_id, request)
                return await _commit_and_end(connection, cluster_id, call)
        except _KeyTaken:
            return await self._duplicate(cluster_id, request.idempotency if request else ())

    @asynccontextmanager
    async def _locked(self, cluster_id: int) -> AsyncIterator[tuple[Driver, Head]]:
        """Begin a transaction that locks the head; it is rolled back at the end if it is still open."""
        with unavailable_on_failure():
            async with self._commits.driver() as connection:
                await connection.execute(_begin(connection.get_server_version().major))
                row = await connection.fetchrow(_LOCK, cluster_id)
                if row is None:
                    raise _gone(cluster_id)
                yield connection, Head(row["revision"], row["tip"], row["at"])
                if connection.is_in_transaction():
                    await connection.execute("ROLLBACK")

    async def record_answers(
        self, cluster_id: int, head: Head, records: Sequence[IdempotencyRecord]
    ) -> CommitResult:
        """Record answers that changed nothing, if the log still ends at this head (P11).

        Committed means that all are recorded; the head stays the same. Lost and DuplicateKey mean
        that none is.

        Raises:
            OutcomeUnknown: they may be kept or not; if they are, another try returns DuplicateKey.
            StorageUnavailable, NotFound: none is kept.
        """
        return await self.to_its_end(self._record(cluster_id, head, records))

    async def _record(
        self, cluster_id: int, head: Head, records: Sequence[IdempotencyRecord]
    ) -> CommitResult:
        columns = _record_columns(records)
        try:
            row = await self._write(_RECORD, cluster_id, head.revision, head.tip, *columns)
        except _KeyTaken:
            return await self._duplicate(cluster_id, records)
        if row is None:
            raise _gone(cluster_id)
        present = _head(row)
        kept = (present.revision, present.tip) == (head.revision, head.tip)
        return Committed(present) if kept else Lost(present)

    async def find_answers(
        self, cluster_id: int, keys: Sequence[IdempotencyKey]
    ) -> tuple[IdempotencyRecord, ...]:
        """The recorded answers of these keys.

        With synchronous replication, a record whose commit was interrupted can be read before the
        standby server has it. So something is written afterwards, which waits for the standby.
        """
        operations, names, chunks = [list(part) for part in zip(*keys, strict=True)] or ([], [], [])
        with unavailable_on_failure():
            async with self._commits.driver() as connection:
                rows = await connection.fetch(_FIND_RECORDS, cluster_id, operations, names, chunks)
                if rows:
                    await connection.execute(_WRITE_SOMETHING)
        return tuple(IdempotencyRecord(**dict(row)) for row in rows)

    async def prove_commits(self) -> None:
        """Prove that commits work now, by a transaction that has all they need and leaves nothing.

        It writes to the database's disk and gives that room back, needs the right to write to a
        head, and ends by writing to PostgreSQL's own log, as durably as each commit (so it waits
        for a synchronous standby, too).

        Raises:
            StorageUnavailable: a commit would fail now.
        """
        try:
            with unavailable_on_failure():
                async with self._commits.driver() as connection:
                    with self._outages.watched("commit"):
                        async with asyncio.timeout(PROOF_SECONDS_MAX):
                            await connection.execute(_PROVE)
        except asyncpg.PostgresError as error:  # as if a right was taken from this role
            self._outages.failed("commit", reason_of(error))
            raise StorageUnavailable("Commits are refused.") from error

    async def _duplicate(
        self, cluster_id: int, records: Sequence[IdempotencyRecord]
    ) -> DuplicateKey:
        return DuplicateKey(await self.find_answers(cluster_id, [record.id for record in records]))

    async def to_its_end(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the work in a task of its own, which the caller's cancellation doesn't reach.

        In a trial, all commits that were cancelled after they were sent were committed all the
        same, so cancelling would only lose the answer.
        """
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """Read the task's exception, so that asyncio logs nothing if nobody waits for the task any more."""
        self._running.discard(task)
        if not task.cancelled():
            task.exception()

    async def finish(self) -> None:
        """Wait for all work that still runs, such as commits whose callers were cancelled."""
        while self._running:
            await asyncio.wait(self._running)


def _begin(server_version: int) -> str:
    """SQL that begins a transaction which PostgreSQL ends in time, whatever happens to this process."""
    wait, idle = LOCK_WAIT_SECONDS * 1000, LOCK_IDLE_SECONDS * 1000
    bounded = server_version >= _TRANSACTION_TIMEOUT_SINCE
    return (_BEGIN + (_BOUND if bounded else "")).format(idle=idle, wait=wait, whole=idle + wait)


async def _ended(connection: Driver, leases: Sequence[HeldLeases]) -> frozenset[str]:
    """The holders that no longer have all of their leases; the others keep them in this transaction."""
    if not leases:
        return frozenset()
    wanted = {(each.holder, *named) for each in leases for named in each.names}
    held = set[tuple[str, int, str]]()
    for cluster_id in sorted({number for _, number, _ in wanted}):
        holders, names = zip(
            *((holder, name) for holder, number, name in wanted if number == cluster_id),
            strict=True,
        )
        rows = await connection.fetch(_HELD, cluster_id, holders, names)
        held |= {(row["holder"], cluster_id, row["name"]) for row in rows}
    return frozenset(holder for holder, _, _ in wanted - held)


async def _commit_and_end(
    connection: Driver, cluster_id: int, call: tuple[str, tuple[object, ...]]
) -> CommitResult:
    """Commit within an open transaction; only the COMMIT itself can have an unknown outcome."""
    statement, arguments = call
    try:
        row = await connection.fetchrow(statement, *arguments)
    except asyncpg.PostgresError as error:
        refusal = _refusal(error)
        if refusal is None:
            raise
        raise refusal from error
    result = _result(cluster_id, row)
    if isinstance(result, Committed):
        try:
            await connection.execute("COMMIT")
        except Exception as error:
            raise _failed_commit(error) from error
    return result


def _arguments(cluster_id: int, request: CommitRequest) -> tuple[object, ...]:
    """The arguments of `commit_v5`, the changes and records as arrays by column."""
    changes = request.changes
    assert changes, "a commit without changes makes no revision"
    assert changes[0].revision == request.expected_revision + 1, changes[0].revision
    assert changes[-1].revision == request.last_revision, changes[-1].revision
    return (
        cluster_id,
        request.expected_revision,
        request.expected_tip,
        request.commit_id,
        request.planned_at,
        request.kind,
        request.not_before,
        *_change_columns(changes),
        *_record_columns(request.idempotency),
        array_literals.bytes_or_null([change.fields_before for change in changes]),
    )


def _change_columns(changes: Sequence[Change]) -> tuple[object, ...]:
    texts: list[list[str]] = [
        [change.verb for change in changes],
        [change.kind for change in changes],
        [change.namespace for change in changes],
        [change.name for change in changes],
        [change.uid for change in changes],
    ]
    bodies = [change.body for change in changes]
    created = [change.created for change in changes]
    node_names = [change.node_name for change in changes]
    labels_before = [change.labels_before for change in changes]
    return (
        array_literals.texts(effects(changes)),
        array_literals.booleans(created),
        *map(array_literals.texts, texts),
        array_literals.texts_or_null(node_names),
        array_literals.bytes_or_null(labels_before),
        bodies,
    )


def _record_columns(records: Sequence[IdempotencyRecord]) -> tuple[list[object], ...]:
    return (
        [record.operation for record in records],
        [record.key for record in records],
        [record.chunk for record in records],
        [record.request_hash for record in records],
        [record.answer for record in records],
    )


def _result(cluster_id: int, row: asyncpg.Record | None) -> CommitResult:
    if row is None or row["outcome"] == "Gone":
        raise _gone(cluster_id)
    head = _head(row)
    match row["outcome"]:
        case "Committed":
            return Committed(head)
        case "NotYet":
            return NotYet(head)
        case _:
            return Lost(head)


def _head(row: asyncpg.Record) -> Head:
    return Head(row["head_revision"], row["head_tip"], row["head_at"])


def _gone(cluster_id: int) -> NotFound:
    return NotFound(f"There is no cluster {cluster_id}.")


class _KeyTaken(Exception):  # noqa: N818 - a finding, not a failure
    """An idempotency key of the commit has an answer already; nothing was committed."""


def _failed_commit(error: Exception) -> Exception:
    """The error to raise for a failed commit: OutcomeUnknown, unless the server says why it refused."""
    return _refusal(error) or OutcomeUnknown("The database failed during the commit.")


def _refusal(error: Exception) -> Exception | None:
    """The reason for which the server refused a commit; None if the error says something else."""
    if not isinstance(error, asyncpg.PostgresError):
        return None
    constraint = _constraint(error)
    if constraint.startswith(_KEY_TAKEN):
        return _KeyTaken()
    if constraint.startswith(_OBJECT_EXISTS) or error.sqlstate == _MISMATCH:
        return ReplicaMismatch(str(error))
    return None


def _constraint(error: asyncpg.PostgresError) -> str:
    """The name of the broken constraint, followed by the shard's number if that is on another server.

    Citus passes on what another server says, but not the name as a field of its own, and where it
    copies rows there, not the code of the error either.
    """
    named: str | None = getattr(error, "constraint_name", None)
    found = None if named else _QUOTED.search(str(error))
    return named or (found[1] if found else "")


def _is_mistake(error: Exception) -> bool:
    """Whether the commit itself was wrong, so that it was not made and never can be."""
    if not isinstance(error, asyncpg.PostgresError) or _refusal(error) is not None:
        return False
    return (error.sqlstate or "").startswith(_MISTAKES)


def _verdict(
    cluster_id: int, request: CommitRequest, head: Head, found: asyncpg.Record | None
) -> Committed | Lost:
    """Find out from the log what became of an attempt, once the head is no longer the expected one."""
    if found is None:
        raise _gone(cluster_id)
    if found["last_revision"] is not None:
        return Committed(Head(request.last_revision, request.commit_id, found["at"]))
    if found["floor"] > request.expected_revision:
        raise OutcomeUnknown("Whether the change was committed can no longer be found out.")
    return Lost(head)
