"""Whoever is cancelled, at whichever await: a commit is whole or not there, and nothing is left in a half state.

Each test goes through the awaits of some work one by one, cancels there, and looks at what remains.
"""

import asyncio
import itertools
from functools import partial

import asyncpg
import msgspec
import pytest

from service.model.log.results import Committed, Lost
from service.model.registry.manifests import TemplateCache
from service.scheduler.protocol.limits import Limits
from service.scheduler.replica.loading import Loader
from service.scheduler.replica.replica import Replica
from service.store.db.connector import data_source_name
from service.store.postgres import PostgresStore
from tests.api.conftest import each_database_url, make_harness, over_each_store
from tests.api.harness import AS_JSON, CLUSTER, pod
from tests.concurrency.cancelling import cancelled_at
from tests.store.history import answer, commit_on, create, put, rows
from tests.waiting import once

__all__ = ["each_database_url", "make_harness", "over_each_store"]

MOMENTS = ["while it waits", "as it goes on"]
AWAITS_MAX = 200


def request(harness, method, path, body, **headers):
    """One request to the application itself, as its server makes it."""
    incoming = [{"type": "http.request", "body": body, "more_body": False}]
    length = str(len(body))
    fields = {"host": "localhost", **AS_JSON, "content-length": length, **headers}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": f"{CLUSTER}/{path}",
        "raw_path": f"{CLUSTER}/{path}".encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.replace("_", "-").encode(), v.encode()) for name, v in fields.items()],
        "client": None,
        "server": None,
    }

    async def receive():
        await asyncio.sleep(0)
        return incoming.pop() if incoming else await asyncio.Event().wait()

    async def send(message):
        await asyncio.sleep(0)

    return harness.app(scope, receive, send)


def placing(*names):
    return msgspec.json.encode({"pods": [pod(name) for name in names], "policy": "AllOrNothing"})


def applying(*names):
    return msgspec.json.encode({"kind": "List", "items": [pod(name) for name in names]})


async def settled(harness):
    """Wait for whatever was begun: a later request is answered only once it stands on that."""
    while harness.scheduler.keyed_requests:  # noqa: ASYNC110 - there is nothing to wait on
        await asyncio.sleep(0)
    await harness.client.delete(f"{CLUSTER}/nodes/nobody")
    if isinstance(harness.store, PostgresStore):
        await harness.store.log.finish()


async def names_of_pods(harness):
    return {row.name for row in await rows(harness.store, 1) if row.kind == "Pod"}


def replica_of(store, cluster_id):
    loading = Loader(
        cluster_id,
        source=store,
        new_target=lambda: Replica(TemplateCache()),
        limits=Limits(load_rows=3),
    )
    return loading.run()


async def assert_replica_is_the_tables(harness):
    fresh, _ = await replica_of(harness.store, 1)

    async def is_equal():
        return harness.scheduler.replicas() == {"default": (fresh.revision, fresh.digest())}

    await once(is_equal)  # it follows the log when it next looks


async def has_all(pool):
    turns = 0
    while not pool.slots.locked():
        await pool.slots.acquire()
        turns += 1
    for _ in range(turns):
        pool.slots.release()
    return turns == 8


async def assert_all_connections_are_back(store):
    for pool in store.pools if isinstance(store, PostgresStore) else ():
        await once(partial(has_all, pool))  # what keeps events may have one just now
        for connection in pool.idle:
            assert not connection.is_closed()
            assert not connection.is_in_transaction()


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize(("path", "body_of"), [("placements", placing), ("apply", applying)])
async def test_a_client_that_hangs_up_leaves_all_or_nothing(
    over_each_store, path, body_of, keyed, moment
):
    """P7, P11: not half a group, no change without its record, no key that stays taken."""
    harness = over_each_store
    await harness.put_node("n", zone="a")
    for number in itertools.count():
        assert number < AWAITS_MAX
        names = (f"a{number}", f"b{number}")
        body = body_of(*names)
        headers = {"idempotency_key": f"k{number}"} if keyed else {}
        reached, _ = await cancelled_at(
            request(harness, "POST", path, body, **headers), number, moment
        )
        await settled(harness)
        stored = await names_of_pods(harness) & set(names)
        assert stored in (set(), set(names)), number
        again = await harness.client.post(
            f"{CLUSTER}/{path}",
            content=body,
            headers={"content-type": "application/json"}
            | {name.replace("_", "-"): value for name, value in headers.items()},
        )
        assert again.status_code == 200
        assert set(names) <= await names_of_pods(harness)
        for name in names:
            await harness.client.delete(f"{CLUSTER}/namespaces/shop/pods/{name}")
        if not reached:
            break
    assert number > 3
    await assert_all_connections_are_back(harness.store)
    await assert_replica_is_the_tables(harness)


# The store's own calls


@pytest.fixture
async def postgres(database_url):
    store = PostgresStore(database_url)
    yield store
    await store.close()


@pytest.fixture
async def operator(database_url):
    """A connection of somebody else."""
    connection = await asyncpg.connect(data_source_name(database_url))
    yield connection
    await connection.close()


async def assert_none_stays_open(operator):
    """A backend whose client has gone may take a moment to see that."""
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name = 'moorage' AND state <> 'idle'"
    )

    async def none_is():
        return not await operator.fetchval(query)

    await once(none_is)


def commit_one(store, head, request):
    return store.log.commit(1, request)


def commit_locked_one(store, head, request):
    return store.log.commit_locked(1, head.revision, head.tip, lambda _: request)


def settle_one(store, head, request):
    return store.log.settle_unknown(1, request)


def record_one(store, head, request):
    return store.log.record_answers(1, head, request.idempotency)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("inner", [False, True], ids=["the caller", "the commit's own task"])
@pytest.mark.parametrize(
    "begin", [commit_one, commit_locked_one, settle_one, record_one], ids=lambda f: f.__name__
)
async def test_p4_a_call_that_is_cancelled_at_any_await_leaves_no_connection_in_a_half_state(
    postgres, operator, begin, inner, moment, monkeypatch
):
    """P4, P6: whatever it did is settled for good, and the next commit finds a connection."""
    for number in itertools.count():
        assert number < AWAITS_MAX
        if number % 3 == 0:  # with a new connection, whose making has awaits of its own
            for pool in postgres.pools:
                while pool.idle:
                    await pool.idle.pop().close()
        head, name = await postgres.log.head(1), f"p{number}"
        request = commit_on(head, create(name), idempotency=[answer(name)])
        with monkeypatch.context() as patch:
            if inner:
                # Not even the shield: as if the task that runs the commit were cancelled itself.
                patch.setattr(postgres, "to_its_end", lambda work: work)
            work = begin(postgres, head, request)
            reached, outcome = await cancelled_at(work, number, moment)
        await postgres.log.finish()
        assert not isinstance(outcome, Exception), outcome
        verdict = await postgres.log.settle_unknown(1, request)
        stored = {row.name for row in await rows(postgres, 1)}
        kept = await postgres.log.find_answers(1, [record.id for record in request.idempotency])
        if isinstance(verdict, Committed):
            assert name in stored
            assert kept
        else:
            assert isinstance(verdict, Lost)
            assert name not in stored
            assert bool(kept) <= (begin is record_one)
        await assert_all_connections_are_back(postgres)
        present = await postgres.log.head(1)
        after = await postgres.log.commit(1, commit_on(present, create(f"after-{name}")))
        assert isinstance(after, Committed)
        if not reached:
            break
    assert number >= (1 if inner else 0)
    await assert_none_stays_open(operator)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("call", ["head", "read_objects", "read_log", "list_objects", "get_object"])
async def test_a_read_that_is_cancelled_at_any_await_gives_its_connection_back(
    postgres, call, moment
):
    calls = {
        "head": lambda: postgres.log.head(1),
        "read_objects": lambda: postgres.objects.read(1, None, 100),
        "read_log": lambda: postgres.log.read(1, 0, None, 100),
        "list_objects": lambda: postgres.objects.list(1, "Pod", limit=10),
        "get_object": lambda: postgres.objects.get(1, "Pod", "default", "p"),
    }
    head = await postgres.log.head(1)
    await postgres.log.commit(1, commit_on(head, create("p"), put("p", body=b"{}")))
    for number in itertools.count():
        assert number < AWAITS_MAX
        reached, _ = await cancelled_at(calls[call](), number, moment)
        await assert_all_connections_are_back(postgres)
        assert (await postgres.log.head(1)).revision == head.revision + 2
        if not reached:
            break
    assert number > 0
