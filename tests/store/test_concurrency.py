"""What only a real database can show: races, locks, cancelled and broken commits."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

import asyncpg
import psutil
import pytest

from service.model.core.access import ADMIN, PrincipalRow
from service.model.core.errors import OutcomeUnknown, PreconditionFailed, StorageUnavailable
from service.model.log.commit import (
    Change,
    CommitRequest,
    Head,
    LogPage,
    ObjectRow,
    ReplicaMismatch,
)
from service.model.log.results import CommitResult, Committed, Lost
from service.scheduler.protocol.limits import Limits
from service.scheduler.replica.loading import load
from service.store.db.connector import data_source_name
from service.store.log import commits
from service.store.postgres import PostgresStore
from tests.store.history import (
    answer,
    commit_on,
    committed,
    connected,
    create,
    delete,
    disconnect_all,
    names,
    put,
    rows,
    whole_log,
)
from tests.waiting import eventually, once


@pytest.fixture
async def cluster_id(postgres: PostgresStore) -> int:
    return await postgres.clusters.find("default")


@pytest.fixture
async def operator(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection of somebody else."""
    connection = await asyncpg.connect(data_source_name(database_url))
    yield connection
    await connection.close()


@asynccontextmanager
async def locked_head(operator: asyncpg.Connection, cluster_id: int) -> AsyncIterator[None]:
    async with operator.transaction():
        await operator.execute("SELECT FROM head WHERE cluster_id = $1 FOR UPDATE", cluster_id)
        yield


async def waiting(operator: asyncpg.Connection, count: int) -> list[int]:
    """The backends that wait for a lock, once there are so many."""
    query = (
        "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        " AND datname = current_database() ORDER BY query_start"
    )

    async def found() -> list[int]:
        await operator.execute("SELECT pg_stat_clear_snapshot()")
        pids = [row["pid"] for row in await operator.fetch(query)]
        return pids if len(pids) >= count else []

    return await once(found)


def replayed(changes: tuple[Change, ...]) -> dict[str, tuple[int, bytes]]:
    """The slow, obvious model: what the log says the objects are."""
    objects: dict[str, tuple[int, bytes]] = {}
    for change in changes:
        if change.verb == "Delete":
            del objects[change.name]
        else:
            objects[change.name] = (change.revision, change.body)
    return objects


def as_replayed(stored: list[ObjectRow]) -> dict[str, tuple[int, bytes]]:
    return {row.name: (row.revision, row.body) for row in stored}


async def test_p1_of_racing_commits_one_wins_each_revision_and_the_log_is_one_chain(
    postgres: PostgresStore, cluster_id: int
):
    start = await postgres.log.head(cluster_id)

    async def write(writer: int) -> None:
        for number in range(10):
            request = None
            while not isinstance(request, Committed):
                head = await postgres.log.head(cluster_id)
                changes = [create(f"{writer}-{number}-{part}") for part in range(1 + number % 3)]
                request = await postgres.log.commit(cluster_id, commit_on(head, *changes))

    await asyncio.gather(*(write(writer) for writer in range(6)))
    head = await postgres.log.head(cluster_id)
    page = await postgres.log.read(cluster_id, start.revision, start.tip, 10_000)
    assert isinstance(page, LogPage)
    assert (page.revision, page.tip) == (head.revision, head.tip)
    assert len(page.commits) == 60
    stored = await load(postgres, cluster_id)
    assert stored.head == head
    assert replayed((await whole_log(postgres, cluster_id)).changes) == as_replayed(stored.rows)


async def test_p6_nobody_starves_who_locks_after_three_lost_races(
    postgres: PostgresStore, cluster_id: int
):
    """Others commit without a pause: one of them is always first, until the head is locked."""
    done = asyncio.Event()

    async def hasty(writer: int) -> int:
        number = 0
        while not done.is_set():
            head = await postgres.log.head(cluster_id)
            change = create(f"hasty-{writer}-{number}")
            result = await postgres.log.commit(cluster_id, commit_on(head, change))
            number += isinstance(result, Committed)
        return number

    async def others_were_first(head: Head) -> bool:
        return (await postgres.log.head(cluster_id)).revision > head.revision

    async def slow() -> None:
        head = await postgres.log.head(cluster_id)
        for _ in range(3):
            await once(partial(others_were_first, head))
            result = await postgres.log.commit(cluster_id, commit_on(head, create("slow")))
            assert isinstance(result, Lost)
            head = result.head
        await once(partial(others_were_first, head))
        last = await postgres.log.commit_locked(
            cluster_id, head.revision, head.tip, lambda page: commit_on(page.head, create("slow"))
        )
        done.set()
        assert isinstance(last, Committed)

    _, *hasty_ones = await asyncio.gather(slow(), *(hasty(writer) for writer in range(5)))
    assert len(await names(postgres, cluster_id)) == 1 + sum(hasty_ones)


async def test_p5_under_the_lock_the_log_has_all_that_the_head_counts(
    postgres: PostgresStore, cluster_id: int, operator: asyncpg.Connection
):
    """The lock is waited for while another commit is under way; its rows must be seen."""
    known = await postgres.log.head(cluster_id)
    async with locked_head(operator, cluster_id):
        first = asyncio.create_task(
            postgres.log.commit(cluster_id, commit_on(known, create("a"), create("b")))
        )
        await waiting(operator, 1)
        second = asyncio.create_task(
            postgres.log.commit_locked(
                cluster_id,
                known.revision,
                known.tip,
                lambda page: commit_on(page.head, *(put(c.name) for c in page.changes)),
            )
        )
        await waiting(operator, 2)
    assert isinstance(await first, Committed)
    result = await second
    assert isinstance(result, Committed)
    assert result.head.revision == known.revision + 4


async def test_p6_a_lock_that_cannot_be_had_in_time_is_told(
    postgres: PostgresStore,
    cluster_id: int,
    operator: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
):
    head = await postgres.log.head(cluster_id)
    async with locked_head(operator, cluster_id):
        monkeypatch.setattr(commits, "LOCK_WAIT_SECONDS", 0.01)
        with pytest.raises(StorageUnavailable):
            await postgres.log.commit_locked(cluster_id, head.revision, head.tip, lambda _: None)
    await committed(postgres, cluster_id, create("a"))


async def test_p6_who_decides_for_too_long_loses_the_lock(
    postgres: PostgresStore,
    cluster_id: int,
    operator: asyncpg.Connection,
    monkeypatch: pytest.MonkeyPatch,
):
    head = await committed(postgres, cluster_id, create("before"))
    writers = await connected(operator)

    def decide(page: LogPage) -> CommitRequest:
        eventually(lambda: not all(map(psutil.pid_exists, writers)))
        return commit_on(page.head, create("late"))

    monkeypatch.setattr(commits, "LOCK_IDLE_SECONDS", 0.01)
    with pytest.raises(StorageUnavailable):
        await postgres.log.commit_locked(cluster_id, head.revision, head.tip, decide)
    assert await names(postgres, cluster_id) == ["before"]
    await committed(postgres, cluster_id, create("a"))


async def test_p6_a_mismatch_under_the_lock_leaves_nothing(
    postgres: PostgresStore, cluster_id: int
):
    head = await postgres.log.head(cluster_id)
    with pytest.raises(ReplicaMismatch):
        await postgres.log.commit_locked(
            cluster_id,
            head.revision,
            head.tip,
            lambda page: commit_on(page.head, create("a"), put("absent")),
        )
    assert await postgres.log.head(cluster_id) == head


async def test_p6_a_backend_that_dies_under_the_lock_has_committed_nothing(
    postgres: PostgresStore, cluster_id: int, operator: asyncpg.Connection, database_url: str
):
    head = await postgres.log.head(cluster_id)
    async with locked_head(operator, cluster_id):
        attempt = asyncio.create_task(
            postgres.log.commit_locked(
                cluster_id, head.revision, head.tip, lambda page: commit_on(page.head, create("a"))
            )
        )
        (pid,) = await waiting(operator, 1)
        await operator.execute("SELECT pg_terminate_backend($1)", pid)
        with pytest.raises(StorageUnavailable):
            await attempt
    assert await postgres.log.head(cluster_id) == head


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 13, 30])
async def test_a_commit_whose_caller_is_cancelled_runs_to_its_end(
    postgres: PostgresStore, cluster_id: int, turns: int
):
    head = await committed(postgres, cluster_id, create("before"))
    request = commit_on(head, create("a"))
    caller = asyncio.create_task(postgres.log.commit(cluster_id, request))
    await asyncio.sleep(0)
    for _ in range(turns):
        await asyncio.sleep(0)
    caller.cancel()
    await asyncio.wait([caller])
    await postgres.log.finish()
    assert (await postgres.log.head(cluster_id)).tip == request.commit_id
    assert isinstance(await postgres.log.settle_unknown(cluster_id, request), Committed)


async def test_a_cancelled_commit_that_waits_for_the_head_is_not_abandoned(
    postgres: PostgresStore, cluster_id: int, operator: asyncpg.Connection
):
    head = await postgres.log.head(cluster_id)
    async with locked_head(operator, cluster_id):
        caller = asyncio.create_task(postgres.log.commit(cluster_id, commit_on(head, create("a"))))
        await waiting(operator, 1)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
    await postgres.log.finish()
    assert await names(postgres, cluster_id) == ["a"]


async def test_p4_a_commit_whose_backend_dies_is_unknown_and_then_settled(
    postgres: PostgresStore, cluster_id: int, operator: asyncpg.Connection
):
    head = await postgres.log.head(cluster_id)
    request = commit_on(head, create("a"))
    async with locked_head(operator, cluster_id):
        attempt = asyncio.create_task(postgres.log.commit(cluster_id, request))
        (pid,) = await waiting(operator, 1)
        await operator.execute("SELECT pg_terminate_backend($1)", pid)
        with pytest.raises(OutcomeUnknown):
            await attempt
    verdict = await postgres.log.settle_unknown(cluster_id, request)
    assert isinstance(verdict, Lost)
    assert await names(postgres, cluster_id) == []
    await committed(postgres, cluster_id, create("b"))


async def test_p4_an_attempt_that_still_waits_when_its_client_is_gone_is_settled_as_it_ends(
    postgres: PostgresStore, cluster_id: int, operator: asyncpg.Connection, database_url: str
):
    """That its id is not in the log is no verdict: here it commits after the settling began."""
    head = await postgres.log.head(cluster_id)
    request = commit_on(head, create("a"))
    other = PostgresStore(database_url)
    async with locked_head(operator, cluster_id):
        attempt = asyncio.create_task(other.log.commit(cluster_id, request))
        await waiting(operator, 1)
        settling = asyncio.create_task(postgres.log.settle_unknown(cluster_id, request))
        await waiting(operator, 2)
        assert len(await names(postgres, cluster_id)) == 0
    assert await settling == await attempt
    assert await names(postgres, cluster_id) == ["a"]
    await other.close()


async def test_p4_kills_at_any_moment_leave_every_commit_whole_or_absent(
    postgres: PostgresStore, cluster_id: int, operator: asyncpg.Connection
):
    """Backends are killed so many turns after a commit began; the verdicts must be what the log then says."""
    verdicts: dict[str, bool] = {}
    for turns in (0, 1, 2, 4, 8, 16, 32, 64, 128, 256) * 3:
        name = f"pod-{len(verdicts)}"
        head = await once(partial(committed_if_reached, postgres, cluster_id, f"before-{name}"))
        request = commit_on(head, create(name), create(f"{name}-too"))
        attempt = asyncio.create_task(postgres.log.commit(cluster_id, request))
        for _ in range(turns):
            await asyncio.sleep(0)
        await disconnect_all(operator)
        result = await verdict(postgres, cluster_id, attempt, request)
        assert result is None or isinstance(result, Committed | Lost)
        verdicts[name] = isinstance(result, Committed)
    expected = {f"before-{name}" for name in verdicts}
    for name, there in verdicts.items():
        expected |= {name, f"{name}-too"} if there else set()
    assert set(await names(postgres, cluster_id)) == expected
    assert replayed((await whole_log(postgres, cluster_id)).changes) == as_replayed(
        (await load(postgres, cluster_id)).rows
    )


async def committed_if_reached(store: PostgresStore, cluster_id: int, name: str) -> Head | None:
    """The head after this commit; none where the last kill met a connection that was just opened."""
    with suppress(StorageUnavailable):
        request = commit_on(await store.log.head(cluster_id), create(name))
        result = await verdict(store, cluster_id, store.log.commit(cluster_id, request), request)
        return result.head if isinstance(result, Committed) else None
    return None


async def verdict(
    store: PostgresStore,
    cluster_id: int,
    attempt: Awaitable[CommitResult],
    request: CommitRequest,
) -> CommitResult | None:
    """What is said of an attempt, by itself or when it is asked about; none if it never began."""
    try:
        return await attempt
    except StorageUnavailable:
        return None
    except OutcomeUnknown:
        return await once(partial(settled, store, cluster_id, request))


async def settled(
    store: PostgresStore, cluster_id: int, request: CommitRequest
) -> CommitResult | None:
    with suppress(OutcomeUnknown):
        return await store.log.settle_unknown(cluster_id, request)
    return None


async def test_connections_that_died_while_idle_are_replaced_unnoticed(
    postgres: PostgresStore, cluster_id: int, operator: asyncpg.Connection
):
    await committed(postgres, cluster_id, create("a"))
    await postgres.objects.list(cluster_id, "Pod", limit=1)
    assert await disconnect_all(operator) >= 2
    await committed(postgres, cluster_id, create("b"))
    assert len((await postgres.objects.list(cluster_id, "Pod", limit=5)).rows) == 2


async def test_a16_nothing_is_left_open_after_failures_and_cancelled_calls(
    postgres: PostgresStore, cluster_id: int, operator: asyncpg.Connection
):
    for number in range(20):
        call = asyncio.create_task(load(postgres, cluster_id))
        for _ in range(number):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])
    await postgres.log.finish()
    head = await committed(postgres, cluster_id, create("a"))
    assert (await load(postgres, cluster_id)).head == head
    idle = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE state LIKE 'idle in transaction%' AND datname = current_database()"
    )

    async def none_is_open() -> bool:
        return not await operator.fetchval(idle)

    await once(none_is_open)  # a backend may take a moment to see that its client has gone


async def test_p11_two_requests_with_one_key_commit_once(postgres: PostgresStore, cluster_id: int):
    async def ask(number: int) -> bool:
        while True:
            head = await postgres.log.head(cluster_id)
            changes = create(f"pod-{number}")
            request = commit_on(head, changes, idempotency=[answer("z"), answer("a")])
            result = await postgres.log.commit(cluster_id, request)
            if not isinstance(result, Lost):
                return isinstance(result, Committed)

    done = await asyncio.gather(*(ask(number) for number in range(6)))
    assert sum(done) == 1
    assert len(await names(postgres, cluster_id)) == 1


async def test_p12_pages_stay_whole_while_the_log_grows_and_is_compacted(
    postgres: PostgresStore, cluster_id: int
):
    done = asyncio.Event()
    pages = 0

    async def write() -> None:
        """Write until the reader has come between often enough."""
        number = 0
        while number < 60 or pages < 20:
            await committed(postgres, cluster_id, create(f"{number}-a"), create(f"{number}-b"))
            number += 1
        done.set()

    async def compact() -> None:
        while not done.is_set():
            await postgres.housekeeping.compact(cluster_id, keep_changes=10, keep_seconds=0, rows=3)

    async def follow() -> None:
        nonlocal pages
        snapshot = await load(postgres, cluster_id)
        revision, tip = snapshot.head.revision, snapshot.head.tip
        while not done.is_set():
            page = await postgres.log.read(cluster_id, revision, tip, 4)
            if isinstance(page, LogPage):
                pages, revision, tip = pages + 1, page.revision, page.tip or tip
            else:
                assert page.floor > revision
                head = (await load(postgres, cluster_id)).head
                revision, tip = head.revision, head.tip

    await asyncio.gather(write(), compact(), follow())
    assert pages >= 20


async def test_p13_a_load_in_ranges_is_one_state_while_commits_go_on(
    postgres: PostgresStore, cluster_id: int
):
    done = asyncio.Event()

    async def write() -> None:
        """Every commit leaves exactly one of two pods."""
        await committed(postgres, cluster_id, create("even"))
        for number in range(40):
            here, there = ("even", "odd") if number % 2 == 0 else ("odd", "even")
            await committed(postgres, cluster_id, delete(here), create(there))
        done.set()

    async def look() -> None:
        while not done.is_set():
            snapshot = await load(postgres, cluster_id, Limits(load_rows=1))
            pods = [row for row in snapshot.rows if row.kind == "Pod"]
            expected = 1 if snapshot.head.revision > 1 else 0
            assert len(pods) == expected
            assert all(row.revision == snapshot.head.revision for row in pods)

    async def compact() -> None:
        while not done.is_set():
            await postgres.housekeeping.compact(cluster_id, keep_changes=5, keep_seconds=0)

    await asyncio.gather(write(), look(), look(), compact())
    assert len(await rows(postgres, cluster_id)) == 1


async def test_deleting_a_cluster_under_commits_ends_them_all(
    postgres: PostgresStore, operator: asyncpg.Connection
):
    cluster_id = (await postgres.clusters.create("brief", b"{}")).cluster_id
    head = await postgres.log.head(cluster_id)
    async with locked_head(operator, cluster_id):
        deleting = asyncio.create_task(postgres.clusters.delete(cluster_id))
        await waiting(operator, 1)
        commit = asyncio.create_task(postgres.log.commit(cluster_id, commit_on(head, create("a"))))
        await waiting(operator, 2)
    assert await deleting
    with pytest.raises(Exception, match="The cluster has been deleted"):
        await commit
    for table in ("head", "floor", "commit", "change", "object", "idempotency", "lease", "cluster"):
        left = f"SELECT count(*) FROM {table} WHERE cluster_id = $1"
        assert await operator.fetchval(left, cluster_id) == 0


async def test_a_deletion_on_a_condition_waits_for_commits_and_looks_at_what_they_leave(
    postgres: PostgresStore, operator: asyncpg.Connection
):
    cluster_id = (await postgres.clusters.create("brief", b"{}")).cluster_id
    head = await postgres.log.head(cluster_id)
    seen = list[int]()

    def only_if(version: int) -> None:
        seen.append(version)
        if version != head.revision:
            raise PreconditionFailed("Another version.")

    config = put("config", kind="Cluster", namespace="", uid="", body=b'{"a":1}')
    async with locked_head(operator, cluster_id):
        commit = asyncio.create_task(postgres.log.commit(cluster_id, commit_on(head, config)))
        await waiting(operator, 1)
        deleting = asyncio.create_task(postgres.clusters.delete(cluster_id, only_if=only_if))
        await waiting(operator, 2)
    assert isinstance(await commit, Committed)
    with pytest.raises(PreconditionFailed):
        await deleting
    assert seen == [head.revision + 1]
    assert (await postgres.clusters.get("brief")).config == b'{"a":1}'


async def test_a_cluster_made_while_its_predecessor_goes_begins_above_the_last_commit(
    postgres: PostgresStore, operator: asyncpg.Connection
):
    cluster_id = (await postgres.clusters.create("brief", b"{}")).cluster_id
    head = await postgres.log.head(cluster_id)
    async with locked_head(operator, cluster_id):
        commit = asyncio.create_task(postgres.log.commit(cluster_id, commit_on(head, create("a"))))
        await waiting(operator, 1)
        deleting = asyncio.create_task(postgres.clusters.delete(cluster_id))
        await waiting(operator, 2)
    assert isinstance(await commit, Committed)
    assert await deleting
    async with operator.transaction():
        again = await operator.fetchval(
            "SELECT create_cluster_v1('brief', '{}', gen_random_uuid())"
        )
        assert await operator.fetchval("SELECT delete_cluster_v1($1)", again)
        making = asyncio.create_task(postgres.clusters.create("brief", b"{}"))
        await waiting(operator, 1)
    assert (await making).head.revision == 6


async def test_a_lease_of_a_cluster_that_goes_at_that_moment_is_not_given(
    postgres: PostgresStore, operator: asyncpg.Connection
):
    cluster_id = (await postgres.clusters.create("going", b"{}")).cluster_id
    async with operator.transaction():
        await operator.fetchval("SELECT delete_cluster_v1($1)", cluster_id)
        asked = asyncio.create_task(postgres.leases.acquire(cluster_id, "queue", "w1", 60))
        await waiting(operator, 1)
    assert await asked is None


async def test_a_cluster_goes_also_while_a_lease_of_it_is_being_taken(
    postgres: PostgresStore, operator: asyncpg.Connection
):
    cluster_id = (await postgres.clusters.create("going", b"{}")).cluster_id
    async with operator.transaction():
        await operator.execute(
            "INSERT INTO lease (cluster_id, name, holder, until)"
            " VALUES ($1, 'queue', 'w1', clock_timestamp())",
            cluster_id,
        )
        deleting = asyncio.create_task(postgres.clusters.delete(cluster_id))
        await waiting(operator, 1)
    assert await deleting


async def test_a_cluster_that_goes_and_a_lease_of_it_do_not_wait_for_each_other(
    postgres: PostgresStore, operator: asyncpg.Connection
):
    cluster_id = (await postgres.clusters.create("going", b"{}")).cluster_id
    async with operator.transaction():
        # So a lease is taken: it locks the floor, and then the cluster, to which its row refers.
        await operator.execute("SELECT FROM floor WHERE cluster_id = $1 FOR KEY SHARE", cluster_id)
        deleting = asyncio.create_task(postgres.clusters.delete(cluster_id))
        await waiting(operator, 1)
        await operator.execute(
            "SELECT FROM cluster WHERE cluster_id = $1 FOR KEY SHARE", cluster_id
        )
    assert await deleting


LONG = """
    CREATE FUNCTION take_as_long_as_may_be() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF current_setting('statement_timeout')::interval BETWEEN '1 ms' AND '30 s' THEN
            RAISE query_canceled USING MESSAGE = 'canceling statement due to statement timeout';
        END IF;
        RETURN OLD;
    END $$;
    CREATE TRIGGER take_as_long_as_may_be BEFORE DELETE ON object
        FOR EACH ROW EXECUTE FUNCTION take_as_long_as_may_be();
"""
"""Each object that is deleted takes half a minute, but for the waiting."""


async def test_a_cluster_goes_also_if_that_takes_longer_than_any_other_statement_may(
    postgres: PostgresStore, operator: asyncpg.Connection
):
    cluster_id = (await postgres.clusters.create("great", b"{}")).cluster_id
    await operator.execute(LONG)
    assert await postgres.clusters.delete(cluster_id)
    async with postgres.pools.commits.acquire() as connection:
        assert await connection.fetchval("SHOW statement_timeout") == "30s"


async def test_what_a_change_of_grants_depends_on_is_read_when_nobody_else_can_change_it(
    postgres: PostgresStore, operator: asyncpg.Connection
):
    def is_new(row: PrincipalRow | None) -> None:
        if row is not None:
            raise PreconditionFailed("It is there.")

    async with operator.transaction():
        await operator.execute("SELECT FROM access_state FOR UPDATE")
        both = [
            asyncio.create_task(
                postgres.access.put_principal(
                    "User", "ci", [], keep_admin=True, precondition=is_new
                )
            )
            for _ in range(2)
        ]
        await waiting(operator, 2)
    outcomes = await asyncio.gather(*both, return_exceptions=True)
    assert [type(each) for each in sorted(outcomes, key=str)] == [PreconditionFailed, bool]


LOSES_ITS_COMMIT = """
    CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM pg_terminate_backend(pg_backend_pid());
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER die AFTER INSERT OR UPDATE OR DELETE ON {table}
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die();
"""
"""Whoever commits a change of the table loses the connection: it may have been committed, for all they know."""
WRITES: dict[str, tuple[str, Callable[[PostgresStore], Awaitable[object]]]] = {
    "making a cluster": ("cluster", lambda store: store.clusters.create("c", b"{}")),
    "deleting a cluster": ("cluster", lambda store: store.clusters.delete(1)),
    "making a principal": (
        "access_state",
        lambda store: store.access.put_principal("User", "ci", [], keep_admin=True),
    ),
    "deleting a principal": (
        "access_state",
        lambda store: store.access.delete_principal("User", "root", keep_admin=False),
    ),
    "making a token": (
        "access_state",
        lambda store: store.access.create_token(
            "t", "root", bytes(32), description="", expires_in=None, keep_admin=True
        ),
    ),
    "revoking a token": (
        "access_state",
        lambda store: store.access.delete_token("old", keep_admin=False),
    ),
}


@pytest.mark.parametrize("write", WRITES)
async def test_what_was_being_committed_when_the_connection_broke_is_unknown(
    postgres: PostgresStore, operator: asyncpg.Connection, write: str
):
    await postgres.access.put_principal("User", "root", [ADMIN], keep_admin=True)
    await postgres.access.create_token(
        "old", "root", bytes(32), description="", expires_in=None, keep_admin=True
    )
    table, call = WRITES[write]
    await operator.execute(LOSES_ITS_COMMIT.format(table=table))
    with pytest.raises(OutcomeUnknown):
        await call(postgres)


async def test_the_uses_of_tokens_are_noted_in_one_order_so_that_nobody_waits_in_a_circle(
    postgres: PostgresStore, operator: asyncpg.Connection
):
    await postgres.access.put_principal("User", "root", [ADMIN], keep_admin=True)
    for token_id in ("a", "b"):
        await postgres.access.create_token(
            token_id, "root", bytes(32), description="", expires_in=None, keep_admin=True
        )
    now = await postgres.now()
    async with operator.transaction():
        await operator.execute("SELECT FROM token WHERE token_id = 'a' FOR UPDATE")
        noting = asyncio.create_task(postgres.access.record_use({"b": now, "a": now}))
        await waiting(operator, 1)
        await operator.execute("SELECT FROM token WHERE token_id = 'b' FOR UPDATE NOWAIT")
    await noting
