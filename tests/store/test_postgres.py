"""P3, P14, P15, and how a failing database is told."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from datetime import timedelta

import asyncpg
import pytest
from sqlalchemy.exc import DBAPIError, OperationalError

from service.model.cluster.versions.known import NEWEST
from service.model.core.errors import OutcomeUnknown, StorageUnavailable
from service.model.log.commit import Head
from service.model.log.history import PastSelection
from service.model.log.results import Lost, NotYet
from service.runtime.keepalive import keep_alive
from service.store.db.connector import data_source_name
from service.store.db.failures import is_unavailable, unavailable_on_failure
from service.store.db.hosts import Host
from service.store.db.timeline import DatabaseHistory, HistoryGuard
from service.store.postgres import PostgresStore
from service.store.verification import Check, database_snapshot
from tests.store.history import (
    all_disconnected,
    answer,
    commit_on,
    committed,
    create,
    delete,
    new_id,
    put,
)
from tests.waiting import once

NOWHERE = "postgresql://nobody@/none?host=/nonexistent"
WAITING = """SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"""

ROWS_READ = """SELECT sum(idx_tup_fetch + seq_tup_read)::integer FROM pg_stat_user_tables WHERE relname = ANY($1)"""


@pytest.fixture
async def cluster_id(postgres: PostgresStore) -> int:
    return await postgres.clusters.find("default")


@pytest.fixture
async def operator(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(data_source_name(database_url))
    yield connection
    await connection.close()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("plan_cache_mode", "force_generic_plan"),
        ("enable_seqscan", "off"),
        ("enable_hashjoin", "off"),
        ("enable_mergejoin", "off"),
        ("enable_bitmapscan", "off"),
        ("jit", "off"),
        ("default_transaction_isolation", "read committed"),
    ],
)
async def test_p15_commit_connections_plan_by_index_whatever_the_tables_hold(
    postgres: PostgresStore, setting: str, value: str
):
    async with postgres.pools.commits.acquire() as connection:
        assert await connection.fetchval(f"SHOW {setting}") == value


@pytest.mark.parametrize("way", ["seqscan", "bitmapscan", "hashjoin", "mergejoin"])
async def test_p15_reads_take_the_rows_of_a_page_in_order_from_an_index(
    postgres: PostgresStore, way: str
):
    """Bitmaps of a cluster that has grown since it was counted had all that follows sorted, too."""
    async with postgres.pools.reads.acquire() as connection:
        assert await connection.fetchval(f"SHOW enable_{way}") == "off"


async def test_reads_and_commits_end_in_time(postgres: PostgresStore):
    for pool in postgres.pools:
        async with pool.acquire() as connection:
            assert await connection.fetchval("SHOW statement_timeout") == "30s"


async def cut_off(operator: asyncpg.Connection) -> None:
    """Cut a statement off as PostgreSQL does when a statement's time is up, with the same error; the one that waits for a lock."""

    async def waiting() -> int | None:
        # Within a transaction the first look is what all later ones see.
        await operator.execute("SELECT pg_stat_clear_snapshot()")
        return await operator.fetchval(WAITING)

    await operator.execute("SELECT pg_cancel_backend($1)", await once(waiting))


async def test_p4_a_commit_that_is_cut_off_is_unknown_and_then_found_not_to_be_there(
    postgres: PostgresStore, cluster_id: int, operator: asyncpg.Connection
):
    before = await postgres.log.head(cluster_id)
    request = commit_on(before, create("a"))
    async with operator.transaction():
        await operator.execute("SELECT FROM head WHERE cluster_id = $1 FOR UPDATE", cluster_id)
        attempt = asyncio.create_task(postgres.log.commit(cluster_id, request))
        await cut_off(operator)
        with pytest.raises(OutcomeUnknown):
            await attempt

    assert isinstance(await postgres.log.settle_unknown(cluster_id, request), Lost)
    assert (await postgres.log.head(cluster_id)).revision == before.revision


async def test_a_read_that_is_cut_off_is_told_as_unavailable(
    postgres: PostgresStore, cluster_id: int, operator: asyncpg.Connection
):
    async with operator.transaction():
        await operator.execute("LOCK TABLE head")
        look = asyncio.create_task(postgres.log.head(cluster_id))
        await cut_off(operator)
        with pytest.raises(StorageUnavailable):
            await look


async def test_p15_plans_made_on_empty_tables_find_rows_by_key_when_they_are_full(
    database_url: str, operator: asyncpg.Connection
):
    """Updating one object of 20,000, or reading a page of the log, must not read them all."""
    store = PostgresStore(database_url, connections=1)
    cluster_id = await store.clusters.find("default")
    for number in range(8):
        head = await committed(store, cluster_id, create(f"first-{number}"))
        await store.log.read(cluster_id, head.revision - 1, None, 10)
    for part in range(20):
        changes = (create(f"pod-{part}-{number}") for number in range(1000))
        head = await committed(store, cluster_id, *changes)
    await operator.execute("ANALYZE")
    scans = "SELECT sum(seq_tup_read)::integer FROM pg_stat_user_tables WHERE relname = ANY($1)"
    before = await operator.fetchval(scans, ["object", "change"])
    for number in range(9):
        await committed(store, cluster_id, put(f"pod-1-{number}"))
        await store.log.read(cluster_id, head.revision - 1500, None, 10)
    await store.close()
    await all_disconnected(operator)
    assert await operator.fetchval(scans, ["object", "change"]) - before < 1000


async def test_p15_plans_made_on_tables_with_next_to_nothing_look_rows_up_by_their_whole_key(
    database_url: str, operator: asyncpg.Connection
):
    """Until the table is analyzed such plans go on being used, however full it has become."""
    await operator.execute("ALTER TABLE object SET (autovacuum_enabled = off)")
    await operator.execute("ALTER TABLE idempotency SET (autovacuum_enabled = off)")
    store = PostgresStore(database_url, connections=1)
    cluster_id = await store.clusters.find("default")
    records = [answer(f"key-{number}") for number in range(2000)]
    await committed(store, cluster_id, create("a"), create("b"), idempotency=records[:1])
    await operator.execute("ANALYZE object, idempotency")
    await committed(store, cluster_id, put("a"))
    await committed(store, cluster_id, delete("b"))
    await store.log.find_answers(cluster_id, [records[0].id])
    pods = [f"pod-{number}" for number in range(2000)]
    await committed(store, cluster_id, *map(create, pods), idempotency=records[1:])
    read = "SELECT sum(idx_tup_read)::integer FROM pg_stat_user_indexes WHERE relname = ANY($1)"
    tables = ["object", "idempotency"]
    await statistics_told(store)
    before = await operator.fetchval(read, tables)
    await committed(store, cluster_id, *map(put, pods[:100]))
    await committed(store, cluster_id, *map(delete, pods[:100]))
    found = await store.log.find_answers(cluster_id, [each.id for each in records[:100]])
    await store.close()
    await all_disconnected(operator)
    assert len(found) == 100
    assert await operator.fetchval(read, tables) - before < 1000


async def test_p15_reads_of_a_cluster_that_is_not_in_the_statistics_look_rows_up_by_their_keys(
    database_url: str, operator: asyncpg.Connection
):
    """Of a cluster made since tables were last analyzed, one row is expected, so that comparing rows seems as good."""
    store = PostgresStore(database_url, connections=1)
    cluster_id = await make_uncounted_cluster(store, operator)
    filled = await create_pods(store, cluster_id)
    for part in range(50):
        head = await committed(store, cluster_id, *(put(f"pod-{part}-{n}") for n in range(10)))
    after, pods, far = head.revision - 300, PastSelection(kind="Pod"), 10_000
    index = await store.history.index(cluster_id, pods, filled.revision, changes_max=far, limit=50)

    async def rows_read(read: Callable[[], Awaitable[object]]) -> int:
        before = await rows_so_far(store, operator)
        await read()
        return await rows_so_far(store, operator) - before

    reads: dict[str, tuple[int, Callable[[], Awaitable[object]]]] = {
        "a page of the log": (330, lambda: store.log.read(cluster_id, after, None, 1000)),
        "an earlier page": (420, lambda: store.log.read(cluster_id, 100, None, 200)),
        "where a pod was bound": (
            2 + 10,
            lambda: store.history.bound_at(cluster_id, "default", "pod-3-3", 35),
        ),
        "what has changed": (
            500 + 2500,
            lambda: store.history.changes(cluster_id, filled.revision, changes_max=far, limit=far),
        ),
        "what has changed lately": (
            300 + 400,
            lambda: store.history.changes(cluster_id, after, changes_max=400, limit=far),
        ),
        "what was there": (
            2500 + 500 + 2000,
            lambda: store.history.index(
                cluster_id, pods, filled.revision, changes_max=far, limit=50
            ),
        ),
        "from when it is known": (
            400,
            lambda: store.history.readable(cluster_id, pods, changes_max=400),
        ),
        "how it was": (100, lambda: store.history.objects(cluster_id, "Pod", index.keys)),
    }
    some = 20
    assert {
        name: n
        for name, (most, read) in reads.items()
        if (n := await rows_read(read)) > most + some
    } == {}
    await store.close()


async def test_verifying_a_log_that_is_not_in_the_statistics_looks_its_commits_up(
    database_url: str, operator: asyncpg.Connection
):
    """As in a database that was just restored."""
    store = PostgresStore(database_url)
    cluster_id = await make_uncounted_cluster(store, operator)
    await create_pods(store, cluster_id)
    await store.close()
    await all_disconnected(operator)
    before = await operator.fetchval(ROWS_READ, ["change", "commit"])
    async with database_snapshot(database_url) as snapshot:
        assert await snapshot.row_findings(cluster_id, Check.LOG) == []
    await all_disconnected(operator)
    changes, commits = 2001, 201
    read = await operator.fetchval(ROWS_READ, ["change", "commit"]) - before
    assert changes <= read <= 4 * changes + 8 * commits


async def make_uncounted_cluster(store: PostgresStore, operator: asyncpg.Connection) -> int:
    """Create a cluster beside one that is in the statistics, which stay as they are."""
    for table in ("object", "change", "commit"):
        await operator.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    await create_pods(store, await store.clusters.find("default"))
    await operator.execute("ANALYZE")
    await store.clusters.create("unknown", b"{}")
    return await store.clusters.find("unknown")


async def create_pods(store: PostgresStore, cluster_id: int) -> Head:
    """Have 200 commits create 10 pods each."""
    for part in range(200):
        head = await committed(store, cluster_id, *(create(f"pod-{part}-{n}") for n in range(10)))
    return head


async def rows_so_far(store: PostgresStore, operator: asyncpg.Connection) -> int:
    """How many rows have been read of objects, changes and commits."""
    await statistics_told(store)
    read: int = await operator.fetchval(ROWS_READ, ["object", "change", "commit"])
    return read


async def statistics_told(store: PostgresStore) -> None:
    """Have what a store's only connections have counted so far be seen by others.

    A backend tells of it once a second, otherwise, and when it ends.
    """
    for pool in store.pools:
        async with pool.acquire() as connection:
            await connection.execute("SELECT pg_stat_force_next_flush()")


def test_p3_a_server_with_another_history_begins_another_epoch():
    guard = HistoryGuard()
    guard.check(DatabaseHistory(system=1, timeline=1))
    guard.check(DatabaseHistory(system=1, timeline=1))
    assert guard.epoch == 0
    guard.check(DatabaseHistory(system=1, timeline=2))
    assert guard.epoch == 1
    guard.check(DatabaseHistory(system=2, timeline=1))
    assert guard.epoch == 2


def test_a_takeover_is_told_once_and_so_is_each_host_that_it_replaced(caplog):
    caplog.set_level(logging.INFO)
    first, second = Host("db-1", 5432), Host("db-2", 5432)
    guard = HistoryGuard()
    guard.check(DatabaseHistory(system=1, timeline=1), first)
    for _ in range(2):
        guard.check(DatabaseHistory(system=1, timeline=2), second)
        with pytest.raises(StorageUnavailable):
            guard.check(DatabaseHistory(system=1, timeline=1), first)
    guard.check(DatabaseHistory(system=1, timeline=3), first)
    with pytest.raises(StorageUnavailable):
        guard.check(DatabaseHistory(system=1, timeline=2), second)
    taken = "Another PostgreSQL accepts writes."
    refused = "A host on an older timeline is refused."
    fields = ("host", "before", "timeline", "known")
    assert [
        (each.levelname, each.message, *(vars(each).get(name) for name in fields))
        for each in caplog.records
    ] == [
        ("INFO", taken, "db-2:5432", "db-1:5432", 2, None),
        ("WARNING", refused, "db-1:5432", None, 1, 2),
        ("INFO", taken, "db-1:5432", "db-2:5432", 3, None),
        ("WARNING", refused, "db-2:5432", None, 2, 3),
    ]


def test_p3_a_server_that_another_one_replaced_is_refused():
    guard = HistoryGuard()
    guard.check(DatabaseHistory(system=1, timeline=3))
    with pytest.raises(StorageUnavailable, match="timeline 2"):
        guard.check(DatabaseHistory(system=1, timeline=2))
    assert guard.current == DatabaseHistory(system=1, timeline=3)


async def test_p3_connections_of_an_earlier_history_are_not_used_any_more(
    postgres: PostgresStore, cluster_id: int
):
    await postgres.log.head(cluster_id)
    known = postgres.guard.current
    assert known is not None
    assert known.timeline >= 1
    async with postgres.pools.reads.acquire() as connection:
        used = connection.get_server_pid()
    postgres.guard.check(DatabaseHistory(known.system + 1, 1))
    assert postgres.epoch == 1
    async with postgres.pools.reads.acquire() as connection:
        assert connection.get_server_pid() != used
    assert (postgres.epoch, postgres.guard.current) == (2, known)


async def test_an_unreachable_database_is_told_by_every_call():
    store = PostgresStore(NOWHERE)
    head = Head(1, new_id(), None)  # type: ignore[arg-type]
    for call in (
        store.log.head(1),
        store.log.heads([1]),
        store.now(),
        store.objects.read(1, None, 10),
        store.log.read(1, 0, None, 10),
        store.objects.get(1, "Pod", "default", "a"),
        store.clusters.all(),
        store.clusters.find("default"),
        store.clusters.create("a", b"{}"),
        store.clusters.delete(1),
        store.leases.acquire(1, "queue", "w", 1),
        store.housekeeping.compact(1, keep_changes=0, keep_seconds=0),
        store.log.commit(1, commit_on(head, create("a"))),
        store.log.commit_locked(1, 1, new_id(), lambda _: None),
        store.log.find_answers(1, []),
    ):
        with pytest.raises(StorageUnavailable):
            await call
    await store.close()


@pytest.mark.parametrize(
    ("error", "unavailable"),
    [
        (ConnectionRefusedError(), True),
        (TimeoutError(), True),
        (EOFError(), True),
        (asyncpg.InterfaceError("the connection is closed"), True),
        (asyncpg.InternalClientError("got result for unknown protocol state"), True),
        (asyncpg.AdminShutdownError("terminating connection"), True),
        (asyncpg.DiskFullError("no space"), True),
        (asyncpg.DeadlockDetectedError("deadlock"), True),
        (asyncpg.ReadOnlySQLTransactionError("read-only"), True),
        (asyncpg.UndefinedTableError("no table"), False),
        (asyncpg.NotNullViolationError("null"), False),
        (ValueError(), False),
        (DBAPIError("SELECT", {}, Exception()), False),
        (OperationalError("SELECT", {}, Exception(), connection_invalidated=True), True),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_a_failing_database_is_told_apart_from_a_mistake_of_ours(
    error: Exception, *, unavailable: bool
):
    assert is_unavailable(error) is unavailable
    expected = StorageUnavailable if unavailable else type(error)
    with pytest.raises(expected), unavailable_on_failure():
        raise error


async def test_p1_arrays_of_unequal_length_are_refused(
    postgres: PostgresStore, cluster_id: int, operator: asyncpg.Connection
):
    head = await postgres.log.head(cluster_id)
    columns = ["{Create}", "{t}", "{Put}", "{Pod}", "{default}", "{a}", "{uid}", "{NULL}", "{NULL}"]
    call = f"SELECT * FROM commit_v5({', '.join(f'${n}' for n in range(1, 24))})"
    start = (cluster_id, head.revision, head.tip, new_id(), 1, "Test", None)
    unequal = (
        ([], [], '{""}'),
        ([b"{}"] * 2, [], '{""}'),
        (None, [], '{""}'),
        ([b"{}"], ["k"], '{""}'),
    )
    for bodies, keys, fields in (*unequal, ([b"{}"], [], "{}")):
        with pytest.raises(asyncpg.PostgresError) as caught:
            await operator.fetchrow(call, *start, *columns, bodies, [], keys, [], [], [], fields)
        assert caught.value.sqlstate == "MR001"
    assert await postgres.log.head(cluster_id) == head


async def test_p1_a_clock_that_went_back_takes_no_time_back(
    postgres: PostgresStore, cluster_id: int, operator: asyncpg.Connection
):
    """P16: a commit, a fence and a lift are as late as the head; and what was due there still is."""
    await operator.execute("UPDATE head SET at = clock_timestamp() + interval '1 hour'")
    start = await postgres.log.head(cluster_id)
    due = start.at - timedelta(minutes=1)
    head = await committed(postgres, cluster_id, create("a"), not_before=due)
    assert head.at == start.at
    late = commit_on(head, create("b"), not_before=start.at + timedelta(minutes=1))
    assert await postgres.log.commit(cluster_id, late) == NotYet(head)
    fenced = await postgres.log.settle_unknown(cluster_id, late)
    assert fenced.head.at == start.at
    await postgres.recovery.lift_revision(cluster_id)
    assert (await postgres.log.head(cluster_id)).at == start.at


async def test_p3_after_a_restore_the_log_is_empty(
    postgres: PostgresStore, cluster_id: int, operator: asyncpg.Connection
):
    await committed(postgres, cluster_id, create("a"), create("b"))
    await postgres.recovery.lift_revision(cluster_id)
    for table in ("change", "commit"):
        assert await operator.fetchval(f"SELECT count(*) FROM {table}") == 0
    assert await operator.fetchval("SELECT count(*) FROM object WHERE kind = 'Pod'") == 2


async def test_p12_compaction_leaves_nothing_at_the_floor_or_below(
    postgres: PostgresStore, cluster_id: int, operator: asyncpg.Connection
):
    await committed(postgres, cluster_id, create("a"), create("b"))
    head = await committed(postgres, cluster_id, create("c"))
    await postgres.housekeeping.compact(cluster_id, keep_changes=1, keep_seconds=0)
    left = await operator.fetch("SELECT revision FROM change WHERE cluster_id = $1", cluster_id)
    assert [row["revision"] for row in left] == [head.revision]
    left = await operator.fetch(
        "SELECT last_revision FROM commit WHERE cluster_id = $1", cluster_id
    )
    assert [row["last_revision"] for row in left] == [head.revision]


async def test_p4_what_cannot_be_settled_now_stays_unknown(
    postgres: PostgresStore, cluster_id: int
):
    """To say that nothing was committed would be a guess."""
    request = commit_on(await postgres.log.head(cluster_id), create("a"))
    cut_off = PostgresStore(NOWHERE)
    with pytest.raises(OutcomeUnknown):
        await cut_off.log.settle_unknown(cluster_id, request)
    await cut_off.close()


async def test_a_value_that_cannot_be_stored_is_a_mistake_and_not_an_unknown_outcome(
    postgres: PostgresStore, cluster_id: int
):
    head = await postgres.log.head(cluster_id)
    for bad in ("\0", "\ud800"):
        request = commit_on(head, create("a", uid=f"uid{bad}"))
        with pytest.raises((asyncpg.DataError, ValueError)):
            await postgres.log.commit(cluster_id, request)
        with pytest.raises((asyncpg.DataError, ValueError)):
            await postgres.log.commit_locked(
                cluster_id, head.revision, head.tip, lambda _, request=request: request
            )
    assert await postgres.log.head(cluster_id) == head


def test_a_server_that_vanished_is_noticed_by_the_kernel():
    with socket.socket() as connection:
        keep_alive(connection)
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 2


async def test_views_show_manifests_to_people(
    postgres: PostgresStore, cluster_id: int, operator: asyncpg.Connection
):
    manifest = b'{"kind":"Pod","metadata":{"name":"a","labels":{"app":"web"}}}'
    await committed(postgres, cluster_id, create("a", body=manifest, node_name="n1"))
    row = await operator.fetchrow(
        "SELECT cluster, namespace, name, node_name, manifest #>> '{metadata,labels,app}' AS app,"
        " manifest #>> '{metadata,resourceVersion}' AS version FROM pod"
    )
    assert tuple(row) == ("default", "default", "a", "n1", "web", "2")
    assert await operator.fetchval("SELECT count(*) FROM node") == 0
    of_cluster = "SELECT manifest ->> 'kubernetes' FROM manifest WHERE kind = 'Cluster'"
    assert await operator.fetchval(of_cluster) == NEWEST


async def test_p14_hints_reach_other_processes(
    postgres: PostgresStore, cluster_id: int, database_url: str
):
    other = PostgresStore(database_url)
    async with aclosing(other.listen()) as hints:
        assert await anext(hints) == frozenset()
        postgres.notify(cluster_id)
        assert await anext(hints) == {cluster_id}
    await other.close()


async def test_p14_what_anybody_says_on_the_channel_is_no_more_than_a_hint(
    postgres: PostgresStore, operator: asyncpg.Connection
):
    async with aclosing(postgres.listen()) as hints:
        assert await anext(hints) == frozenset()
        await operator.execute("SELECT pg_notify('moorage', 'x,-1,²,,7')")
        async with asyncio.timeout(10):
            assert await anext(hints) == {7}


async def test_p14_a_burst_of_hints_is_a_few_notifications(
    postgres: PostgresStore, operator: asyncpg.Connection
):
    payloads: asyncio.Queue[str] = asyncio.Queue()
    await operator.add_listener("moorage", lambda *event: payloads.put_nowait(event[3]))
    for number in range(1000):
        postgres.notify(number)
    heard = [await payloads.get() for _ in range(4)]
    assert len(set(",".join(heard).split(","))) == 1000
    assert payloads.empty()
    await operator.reset()


async def test_p14_a_listener_whose_connection_died_is_told_to_look_at_all(
    postgres: PostgresStore, cluster_id: int, operator: asyncpg.Connection
):
    async with aclosing(postgres.listen()) as hints:
        assert await anext(hints) == frozenset()
        await operator.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE query LIKE 'LISTEN%' AND datname = current_database()"
        )
        assert await anext(hints) == frozenset()
        await operator.execute("NOTIFY moorage, 'nonsense'")
        postgres.notify(cluster_id)
        heard: frozenset[int] = frozenset()
        while not heard:
            heard = await anext(hints)
        assert heard == {cluster_id}


async def test_p14_without_a_database_listening_says_look_and_sending_does_nothing():
    store = PostgresStore(NOWHERE)
    async with aclosing(store.listen()) as hints:
        assert await anext(hints) == frozenset()
    store.notify(1)
    await store.close()
