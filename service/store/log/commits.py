"""The log on PostgreSQL: commits, commits under the lock, unknown outcomes, and reads."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from uuid import UUID

import asyncpg

from service.model.core.errors import OutcomeUnknown, StorageUnavailable
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
from service.store.audit import AuditPolicy
from service.store.coordination.leases import NOT_EXPIRED
from service.store.db.connector import Connection
from service.store.db.failures import is_unavailable, unavailable_on_failure
from service.store.db.outages import Outages, reason_of
from service.store.db.pool import ConnectionPool
from service.store.db.rows import gone, head_of
from service.store.log.commit_arguments import Call, commit_call, record_columns
from service.store.log.reads import read_page
from service.store.log.refusals import KeyTaken, failed_commit, is_mistake, refusal_of

DecideLocked = Callable[[LogPage], CommitRequest | None]
"""Makes a commit from a page of the log while the head is locked, or None to commit nothing."""

T = TypeVar("T")

_HEAD = "SELECT revision, tip, at FROM head WHERE cluster_id = $1"
_HEADS = "SELECT cluster_id, revision, tip, at FROM head WHERE cluster_id = ANY($1)"
_FENCE = "SELECT * FROM fence_v1($1, $2, $3, gen_random_uuid())"
_FIND_COMMIT = """
    SELECT f.revision AS floor, c.last_revision, c.at
    FROM floor AS f
    LEFT JOIN commit AS c
        ON c.cluster_id = $1 AND c.last_revision = $2 AND c.commit_id = $3
    WHERE f.cluster_id = $1
"""
LOCK_WAIT_SECONDS = 2.0
"""The maximum time that a transaction waits for the lock on a head."""
LOCK_IDLE_SECONDS = 1.0
"""How long a transaction with the lock may be idle before PostgreSQL ends it."""
_BEGIN = """
    BEGIN;
    SET LOCAL idle_in_transaction_session_timeout = {idle:.0f};
    SET LOCAL lock_timeout = {wait:.0f};
"""
_BOUND = "SET LOCAL transaction_timeout = {whole:.0f};"
_TRANSACTION_TIMEOUT_SINCE = 17
# A process that takes an expired lease waits for this lock, and then sees the commit.
_HELD = f"""
    SELECT l.holder, l.name
    FROM lease AS l, unnest($2::text[], $3::text[]) AS f (holder, name)
    WHERE l.cluster_id = $1 AND l.name = f.name AND l.holder = f.holder
        AND {NOT_EXPIRED}
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
"""The time limit of the test whether commits work."""
# The rows exceed work_mem, so they are written to a temporary file, which fails on a full disk. An
# update of no rows requires the same privileges as one of some.
_PROVE = """
    BEGIN;
    SET LOCAL work_mem = '64kB';
    SELECT count(*) FROM generate_series(1, 20000);
    UPDATE head SET revision = revision WHERE false;
    SELECT pg_logical_emit_message(true, 'moorage', 'proof');
    COMMIT;
"""
_WRITE_SOMETHING = "SELECT pg_logical_emit_message(true, 'moorage', '')"


class Log:
    """Reads and extends the logs of clusters."""

    def __init__(
        self,
        commits: ConnectionPool,
        reads: ConnectionPool,
        policy: AuditPolicy,
        outages: Outages | None = None,
    ) -> None:
        self._commits = commits
        self._reads = reads
        self._policy = policy
        self._outages = outages or Outages()
        self._running: set[asyncio.Task[Any]] = set()

    async def head(self, cluster_id: int) -> Head:
        """Return the head of the log, as of a time after this call began (protocol rule P8)."""
        with unavailable_on_failure():
            async with self._reads.acquire() as connection:
                row = await connection.fetchrow(_HEAD, cluster_id)
        return _present(row)

    async def heads(self, cluster_ids: Sequence[int]) -> dict[int, Head]:
        """Return the heads of several logs, read in one statement; missing clusters are omitted."""
        with unavailable_on_failure():
            async with self._reads.acquire() as connection:
                rows = await connection.fetch(_HEADS, list(cluster_ids))
        return {row["cluster_id"]: Head(row["revision"], row["tip"], row["at"]) for row in rows}

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
        """Return whole commits after a revision that ended with `tip` (protocol rules P3 and P12).

        A page has at least `limit` changes, or bodies of `bytes_max` bytes, unless it reaches the
        head, and never part of a commit. Without a tip (a watch may begin in the middle of a
        commit), only the revision is compared.

        Raises:
            ReplicaMismatch: the log has a gap.
        """
        with unavailable_on_failure():
            async with self._reads.acquire() as connection:
                return await read_page(
                    *(connection, cluster_id, after, tip, limit),
                    bytes_max=bytes_max,
                    bodies=bodies,
                )

    async def commit(self, cluster_id: int, request: CommitRequest) -> CommitResult:
        """Extend the log if it still ends where the request expects it to (protocol rule P1).

        Once begun, this completes even if the caller is canceled.

        Raises:
            StorageUnavailable: nothing was committed.
            OutcomeUnknown: it is not known whether the commit was made; call `settle_unknown`.
            ReplicaMismatch: the stored objects are not those that the request changes.
            NotFound: no such cluster exists.
        """
        call = commit_call(cluster_id, request, self._policy)
        commit = self._commit_with_leases if request.leases else self._commit
        return await self.run_to_completion(commit(cluster_id, request, call))

    async def _commit(self, cluster_id: int, request: CommitRequest, call: Call) -> CommitResult:
        try:
            statement, arguments = call
            row = await self._write(statement, *arguments)
        except KeyTaken:
            return await self._duplicate(cluster_id, request.idempotency)
        return _result(row)

    async def _commit_with_leases(
        self, cluster_id: int, request: CommitRequest, call: Call
    ) -> CommitResult:
        """Commit in a transaction that locks the leases on which the commit depends.

        The head is locked first, in the same order as when a cluster is deleted.
        """
        try:
            async with self._locked(cluster_id) as (connection, _):
                ended = await _ended(connection, request.leases)
                if ended:
                    return LeasesEnded(ended)
                return await _commit_and_end(connection, call)
        except KeyTaken:
            return await self._duplicate(cluster_id, request.idempotency)

    async def _write(self, statement: str, *arguments: object) -> asyncpg.Record | None:
        """Run one autocommitted statement, without a timeout, because its outcome is needed."""
        async with self._commits.acquire() as connection:
            try:
                return await connection.fetchrow(statement, *arguments)
            except Exception as error:
                if is_mistake(error):
                    raise
                if is_unavailable(error):
                    self._outages.failed("commit", reason_of(error))
                raise failed_commit(error) from error

    async def settle_unknown(self, cluster_id: int, request: CommitRequest) -> Committed | Lost:
        """Determine the outcome of an attempt, and make it final (protocol rule P4).

        Giving the head another tip defeats an attempt that is still in flight. If the head has
        moved already, the log shows whether the attempt moved it.

        Raises:
            OutcomeUnknown: the outcome cannot be determined now, or ever, as the log was compacted.
            NotFound: no such cluster exists.
        """
        try:
            return await self.run_to_completion(self._settle(cluster_id, request))
        except StorageUnavailable as error:
            raise OutcomeUnknown("Whether the change was committed is not known yet.") from error

    async def _settle(self, cluster_id: int, request: CommitRequest) -> Committed | Lost:
        with unavailable_on_failure():
            async with self._commits.acquire() as connection:
                fence = await connection.fetchrow(
                    _FENCE, cluster_id, request.expected_revision, request.expected_tip
                )
                if fence is None or fence["outcome"] == "Gone":
                    raise gone()
                head = head_of(fence)
                if fence["outcome"] == "Fenced":
                    return Lost(head)
                record = await connection.fetchrow(
                    _FIND_COMMIT, cluster_id, request.last_revision, request.commit_id
                )
        return _verdict(request, head, record)

    async def commit_locked(
        self, cluster_id: int, after: int, tip: UUID, decide: DecideLocked
    ) -> CommitResult | Behind | Diverged | None:
        """Lock the head, call `decide` with the log since (`after`, `tip`), and commit its result.

        `decide` runs in the event loop, must not wait, and should take at most 50 ms, because all
        other commits to the cluster wait for it (protocol rule P6). If it raises, nothing is
        committed. Returns Behind without calling `decide` if the log is too far ahead, and None if
        `decide` returns None. Raises the errors of `commit` and of `decide`.
        """
        return await self.run_to_completion(self._commit_locked(cluster_id, after, tip, decide))

    async def _commit_locked(
        self, cluster_id: int, after: int, tip: UUID, decide: DecideLocked
    ) -> CommitResult | Behind | Diverged | None:
        request: CommitRequest | None = None
        try:
            async with self._locked(cluster_id) as (connection, head):
                if head.revision - after > LOCKED_LAG_CHANGES_MAX:
                    return Behind(head)
                # A later statement than the one that locked, because that one could see the new
                # head without the rows that came with it (protocol rule P5).
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
                call = commit_call(cluster_id, request, self._policy)
                return await _commit_and_end(connection, call)
        except KeyTaken:
            return await self._duplicate(cluster_id, request.idempotency if request else ())

    @asynccontextmanager
    async def _locked(self, cluster_id: int) -> AsyncIterator[tuple[Connection, Head]]:
        """Begin a transaction that locks the head; roll it back at the end if it is still open."""
        with unavailable_on_failure():
            async with self._commits.acquire() as connection:
                await connection.execute(_begin(connection.get_server_version().major))
                row = await connection.fetchrow(_LOCK, cluster_id)
                yield connection, _present(row)
                if connection.is_in_transaction():
                    await connection.execute("ROLLBACK")

    async def record_answers(
        self, cluster_id: int, head: Head, records: Sequence[IdempotencyRecord]
    ) -> CommitResult:
        """Record answers that changed nothing if the log still ends at `head` (protocol rule P11).

        Committed means that all are recorded; the head stays the same. Lost and DuplicateKey mean
        that none are.

        Raises:
            OutcomeUnknown: they may be recorded; if they are, a retry returns DuplicateKey.
            StorageUnavailable, NotFound: none are recorded.
        """
        return await self.run_to_completion(self._record(cluster_id, head, records))

    async def _record(
        self, cluster_id: int, head: Head, records: Sequence[IdempotencyRecord]
    ) -> CommitResult:
        columns = record_columns(records)
        try:
            row = await self._write(_RECORD, cluster_id, head.revision, head.tip, *columns)
        except KeyTaken:
            return await self._duplicate(cluster_id, records)
        if row is None:
            raise gone()
        present = head_of(row)
        kept = (present.revision, present.tip) == (head.revision, head.tip)
        return Committed(present) if kept else Lost(present)

    async def find_answers(
        self, cluster_id: int, keys: Sequence[IdempotencyKey]
    ) -> tuple[IdempotencyRecord, ...]:
        """Return the recorded answers of these keys.

        With synchronous replication, a record whose commit was interrupted is readable before the
        standby has it. So a write follows, which waits for the standby.
        """
        operations, names, chunks = [list(part) for part in zip(*keys, strict=True)] or ([], [], [])
        with unavailable_on_failure():
            async with self._commits.acquire() as connection:
                rows = await connection.fetch(_FIND_RECORDS, cluster_id, operations, names, chunks)
                if rows:
                    await connection.execute(_WRITE_SOMETHING)
        return tuple(IdempotencyRecord(**dict(row)) for row in rows)

    async def check_writable(self) -> None:
        """Check that commits work by a transaction with the same requirements and no effect.

        It writes to the database's disk and frees the space, needs the privilege to update a head,
        and ends with a record in the write-ahead log, as durable as a commit (so it also waits for
        a synchronous standby).

        Raises:
            StorageUnavailable: a commit would fail now.
        """
        try:
            with unavailable_on_failure():
                async with self._commits.acquire() as connection:
                    with self._outages.watched("commit"):
                        async with asyncio.timeout(PROOF_SECONDS_MAX):
                            await connection.execute(_PROVE)
        except asyncpg.PostgresError as error:  # such as a revoked privilege
            self._outages.failed("commit", reason_of(error))
            raise StorageUnavailable("Commits are refused.") from error

    async def _duplicate(
        self, cluster_id: int, records: Sequence[IdempotencyRecord]
    ) -> DuplicateKey:
        return DuplicateKey(await self.find_answers(cluster_id, [record.id for record in records]))

    async def run_to_completion(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the work in a task of its own, which outlives the caller's cancellation.

        In a trial, all commits that were canceled after they were sent were committed anyway, so
        cancellation would only lose the answer.
        """
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """Retrieve the task's exception, so that asyncio does not log it as never retrieved."""
        self._running.discard(task)
        if not task.cancelled():
            task.exception()

    async def finish(self) -> None:
        """Wait for all running work, such as commits whose callers were canceled."""
        while self._running:
            await asyncio.wait(self._running)


def _begin(server_version: int) -> str:
    """Return SQL that begins a transaction with time limits that PostgreSQL enforces."""
    wait, idle = LOCK_WAIT_SECONDS * 1000, LOCK_IDLE_SECONDS * 1000
    bounded = server_version >= _TRANSACTION_TIMEOUT_SINCE
    return (_BEGIN + (_BOUND if bounded else "")).format(idle=idle, wait=wait, whole=idle + wait)


async def _ended(connection: Connection, leases: Sequence[HeldLeases]) -> frozenset[str]:
    """Return the holders that have lost a lease; lock the other holders' leases."""
    if not leases:
        return frozenset()
    wanted = {(lease.holder, *named) for lease in leases for named in lease.names}
    held = set[tuple[str, int, str]]()
    for cluster_id in sorted({number for _, number, _ in wanted}):
        holders, names = zip(
            *((holder, name) for holder, number, name in wanted if number == cluster_id),
            strict=True,
        )
        rows = await connection.fetch(_HELD, cluster_id, holders, names)
        held |= {(row["holder"], cluster_id, row["name"]) for row in rows}
    return frozenset(holder for holder, _, _ in wanted - held)


async def _commit_and_end(connection: Connection, call: Call) -> CommitResult:
    """Commit within an open transaction; only the COMMIT itself can have an unknown outcome."""
    statement, arguments = call
    try:
        row = await connection.fetchrow(statement, *arguments)
    except asyncpg.PostgresError as error:
        refusal = refusal_of(error)
        if refusal is None:
            raise
        raise refusal from error
    result = _result(row)
    if isinstance(result, Committed):
        try:
            await connection.execute("COMMIT")
        except Exception as error:
            raise failed_commit(error) from error
    return result


def _present(row: asyncpg.Record | None) -> Head:
    if row is None:
        raise gone()
    return Head(row["revision"], row["tip"], row["at"])


def _result(row: asyncpg.Record | None) -> CommitResult:
    if row is None or row["outcome"] == "Gone":
        raise gone()
    head = head_of(row)
    match row["outcome"]:
        case "Committed":
            return Committed(head)
        case "NotYet":
            return NotYet(head)
        case _:
            return Lost(head)


def _verdict(request: CommitRequest, head: Head, record: asyncpg.Record | None) -> Committed | Lost:
    """Return an attempt's outcome from the log, once the head is no longer the expected one."""
    if record is None:
        raise gone()
    if record["last_revision"] is not None:
        return Committed(Head(request.last_revision, request.commit_id, record["at"]))
    if record["floor"] > request.expected_revision:
        raise OutcomeUnknown("Whether the change was committed can no longer be found out.")
    return Lost(head)
