"""Every commit says who asked for it, in the same transaction, and rows hold on to each other."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime

import asyncpg
import pytest
from msgspec.structs import replace

from service.model.core.access import ADMIN, EVERYBODY
from service.model.core.errors import NoAdminLeft
from service.model.log.audit_chain import (
    ITSELF,
    SERVER_CHAIN,
    AuditedCaller,
    AuditEntry,
    AuditRow,
    Broken,
    Verifier,
)
from service.model.log.events import Event
from service.model.log.results import Committed, DuplicateKey, Lost
from service.store.db.connector import data_source_name
from service.store.postgres import PostgresStore
from tests.store.history import (
    AnyStore,
    answer,
    commit_on,
    committed,
    create,
    new_id,
    put,
    ticking_clock,
)
from tests.support.memory_store.store import MemoryStore

ALICE = AuditedCaller("alice", "192.0.2.1", "placePods", "request-1")
ODD = AuditedCaller('bob "the\\ \u2028 Ü"', "2001:db8::1", "putPod", "\t{}[],'\x7f")


@pytest.fixture
async def store(store_url: str | None) -> AsyncIterator[AnyStore]:
    opened = opened_with(store_url, audit=True)
    yield opened
    await opened.close()


def opened_with(store_url: str | None, **kept: bool) -> AnyStore:
    if store_url:
        return PostgresStore(store_url, **kept)
    return MemoryStore(ticking_clock(), new_id, **kept)


@pytest.fixture
async def later(store_url: str | None) -> AsyncIterator[AnyStore]:
    """A store that keeps an audit once somebody is known."""
    opened = opened_with(store_url, may_audit=True)
    yield opened
    await opened.close()


def entry(caller: AuditedCaller = ALICE, revision: int = 2) -> AuditEntry:
    return AuditEntry(caller=caller, revision=revision)


async def rows(store: AnyStore, **wanted: object) -> list[AuditRow]:
    return await store.audit.list(limit=1000, **wanted)


async def assert_verifies(store: AnyStore, *, count: int) -> None:
    verifier = Verifier()
    assert verifier.follow(await rows(store)) is None
    assert verifier.rows == count


async def test_a_commit_leaves_a_row_for_each_request(store: AnyStore, cluster_id: int):
    head = await committed(
        store, cluster_id, create("a"), create("b"), audit=[entry(), entry(ODD, 3)]
    )
    first, second = await rows(store)
    assert (first.chain, first.number, first.cluster_id) == (cluster_id, 1, cluster_id)
    assert (first.cluster, first.revision, first.status, first.requests) == ("default", 2, 200, 1)
    assert AuditedCaller(first.principal, first.address, first.operation, first.request_id) == ALICE
    assert (second.principal, second.request_id) == (ODD.principal, ODD.request_id)
    assert (second.number, second.previous_hash) == (2, first.hash)
    assert datetime.fromisoformat(second.at) == head.at
    await assert_verifies(store, count=2)


async def test_commits_follow_one_another_in_the_chain_of_their_cluster(store: AnyStore):
    other = await store.clusters.create("other", b"{}", ALICE)
    default = await store.clusters.find("default")
    for cluster in (default, other.cluster_id, default):
        head = await store.log.head(cluster)
        await committed(
            store, cluster, create(f"p{head.revision}"), audit=[entry(revision=head.revision + 1)]
        )
    told = [(row.chain, row.number, row.revision) for row in await rows(store)]
    assert told == [(0, 1, 1), (default, 1, 2), (default, 2, 3), (other.cluster_id, 1, 2)]
    await assert_verifies(store, count=4)


async def test_what_was_not_committed_leaves_no_row(store: AnyStore, cluster_id: int):
    head = await store.log.head(cluster_id)
    kept = {"audit": [entry()], "idempotency": [answer("k")]}
    await committed(store, cluster_id, create("a"), **kept)
    assert isinstance(
        await store.log.commit(cluster_id, commit_on(head, create("b"), audit=[entry()])), Lost
    )
    present = await store.log.head(cluster_id)
    again = commit_on(present, create("b"), **kept)
    assert isinstance(await store.log.commit(cluster_id, again), DuplicateKey)
    assert len(await rows(store)) == 1


async def test_a_commit_under_the_lock_leaves_its_row(store: AnyStore, cluster_id: int):
    head = await store.log.head(cluster_id)
    request = commit_on(head, create("a"), audit=[entry()])
    result = await store.log.commit_locked(cluster_id, head.revision, head.tip, lambda _: request)
    assert isinstance(result, Committed)
    await assert_verifies(store, count=1)


async def test_who_makes_and_deletes_clusters_is_told_of_the_server(store: AnyStore):
    made = await store.clusters.create("other", b"{}", ALICE)
    await committed(store, made.cluster_id, create("a"), audit=[entry(ODD)])
    assert await store.clusters.delete(made.cluster_id, ODD)
    assert not await store.clusters.delete(made.cluster_id, ODD)
    told = [(row.chain, row.principal, row.cluster, row.cluster_id) for row in await rows(store)]
    assert told == [
        (0, "alice", "other", made.cluster_id),
        (0, ODD.principal, "other", made.cluster_id),
        (made.cluster_id, ODD.principal, "other", made.cluster_id),  # which outlives its cluster
    ]
    await assert_verifies(store, count=3)


async def test_refusals_are_added_to_the_chain_of_the_server(store: AnyStore):
    refused = [
        AuditEntry(caller=ALICE, cluster="default", status=403),
        AuditEntry(caller=AuditedCaller(""), cluster="", status=401, requests=1234),
    ]
    await store.audit.add_refusals(refused)
    told = [(row.chain, row.status, row.cluster, row.requests) for row in await rows(store)]
    assert told == [(0, 403, "default", 1), (0, 401, "", 1234)]
    await assert_verifies(store, count=2)


async def test_rows_are_listed_in_pages_and_by_cluster_and_time(store: AnyStore, cluster_id: int):
    for number in range(5):
        await committed(store, cluster_id, put("a", created=number == 0), audit=[entry()])
    await store.clusters.create("other", b"{}", ALICE)
    everything = await rows(store)
    found: list[AuditRow] = []
    while page := await store.audit.list(
        limit=2, after=(found[-1].chain, found[-1].number) if found else None
    ):
        assert len(page) <= 2
        found += page
    assert found == everything
    assert len(found) == 6
    assert await rows(store, cluster="other") == everything[:1]
    third = datetime.fromisoformat(everything[3].at)
    assert everything[3] in await rows(store, since=third)
    assert everything[2] not in await rows(store, since=third)
    assert everything[3] not in await rows(store, until=third)
    assert everything[2] in await rows(store, until=third)


async def test_old_rows_are_removed_and_the_chain_goes_on(store: AnyStore, cluster_id: int):
    for number in range(3):
        await committed(store, cluster_id, put("a", created=number == 0), audit=[entry()])
    assert await store.audit.sweep(keep_seconds=3600) == 0
    assert await store.audit.sweep(keep_seconds=0) == 3
    assert await rows(store) == []
    await committed(store, cluster_id, put("a"), audit=[entry()])
    [row] = await rows(store)
    assert row.number == 4
    assert row.previous_hash
    await assert_verifies(store, count=1)


async def test_without_an_audit_nothing_is_kept(store_url: str | None):
    store = PostgresStore(store_url) if store_url else MemoryStore(ticking_clock(), new_id)
    await committed(store, await store.clusters.find("default"), create("a"), audit=[entry()])
    made = await store.clusters.create("other", b"{}", ALICE)
    await store.clusters.delete(made.cluster_id, ALICE)
    assert await rows(store) == []
    await store.close()


async def test_a_commit_keeps_events_and_rows_at_once(store: AnyStore, cluster_id: int):
    event = Event(
        namespace="default",
        pod="a",
        uid="u",
        type="Normal",
        reason="Evicted",
        message="m",
        revision=2,
        first="2026-01-01T00:00:00Z",
        last="2026-01-01T00:00:00Z",
        count=1,
    )
    await committed(store, cluster_id, create("a"), audit=[entry()], events=[event])
    assert len((await store.events.list(cluster_id, limit=10)).rows) == 1
    assert len(await rows(store)) == 1


@pytest.mark.parametrize(
    ("statement", "broken"),
    [
        ("UPDATE audit SET principal = 'mallory' WHERE number = 2", (2, "do not have its hash")),
        ("UPDATE audit SET status = 201 WHERE number = 3", (3, "do not have its hash")),
        ("DELETE FROM audit WHERE number = 2", (3, "it follows number 1")),
    ],
)
async def test_what_was_altered_or_removed_is_found(database_url: str, statement: str, broken):
    store = PostgresStore(database_url, audit=True)
    cluster_id = await store.clusters.find("default")
    for number in range(4):
        await committed(store, cluster_id, put("a", created=number == 0), audit=[entry()])
    operator = await asyncpg.connect(data_source_name(database_url))
    await operator.execute(statement)
    await operator.close()
    found = Verifier().follow(await rows(store))
    await store.close()
    assert found is not None
    assert (found.chain, found.number) == (cluster_id, broken[0])
    assert broken[1] in found.reason


async def test_a_row_that_was_written_anew_does_not_fit_the_next(store: AnyStore, cluster_id: int):
    for number in range(3):
        await committed(store, cluster_id, put("a", created=number == 0), audit=[entry()])
    first, second, third = await rows(store)
    forged = replace(second, principal="mallory").sealed()
    reason = "it does not have the hash of the row before it"
    assert Verifier().follow([first, forged, third]) == Broken(cluster_id, 3, reason)


async def test_commits_to_many_clusters_and_the_server_at_once_wait_for_nobody_for_good(
    store: AnyStore,
):
    async def busy(name: str) -> None:
        made = await store.clusters.create(name, b"{}", ALICE)
        await committed(store, made.cluster_id, create("a"), audit=[entry()])
        await store.audit.add_refusals([AuditEntry(caller=ALICE, cluster=name, status=403)])
        await store.clusters.delete(made.cluster_id, ALICE)

    await asyncio.gather(*(busy(f"c{number}") for number in range(6)))
    await assert_verifies(store, count=24)


async def test_whoever_changes_who_may_do_what_is_told(store: AnyStore):
    told = {"keep_admin": False, "caller": ALICE}
    await store.access.put_principal("User", "root", [ADMIN], **told)
    await store.access.put_principal("User", "root", [ADMIN], **told)
    await store.access.create_token("t", "root", bytes(32), description="", expires_in=None, **told)
    await store.access.delete_token("t", **told)
    assert not await store.access.delete_token("t", **told)
    await store.access.delete_principal("User", "root", **told)
    written = [(row.chain, row.principal, row.request_id) for row in await rows(store)]
    assert written == [(SERVER_CHAIN, ALICE.principal, ALICE.request_id)] * 5
    await assert_verifies(store, count=5)


async def test_a_change_of_principals_that_is_refused_leaves_no_row(store: AnyStore):
    await store.access.put_principal("User", "ci", [], keep_admin=True, caller=ALICE)
    with pytest.raises(NoAdminLeft):
        await store.access.create_token(
            "t", "ci", bytes(32), description="", expires_in=None, keep_admin=True, caller=ALICE
        )
    assert len(await rows(store)) == 1


# From when on it is kept


EVERYBODYS = AuditedCaller(EVERYBODY.name, "127.0.0.1", "createToken", "request-2")


async def test_nothing_is_kept_while_nobody_is_known(later: AnyStore):
    await later.clusters.create("other", b"{}", EVERYBODYS)
    cluster = await later.clusters.find("other")
    await committed(later, cluster, create("a"), audit=[entry(EVERYBODYS)])
    await committed(later, cluster, create("b"), audit=[entry(ITSELF)])
    await later.access.put_principal("User", "root", [ADMIN], keep_admin=True, caller=EVERYBODYS)
    await later.clusters.delete(cluster, EVERYBODYS)
    assert (await rows(later), later.audit.enabled) == ([], False)


async def test_the_first_token_is_the_first_that_is_kept(later: AnyStore):
    await later.access.put_principal("User", "root", [ADMIN], keep_admin=True, caller=EVERYBODYS)
    await later.access.create_token(
        "t", "root", bytes(32), description="", expires_in=None, keep_admin=True, caller=EVERYBODYS
    )
    cluster = await later.clusters.find("default")
    await committed(later, cluster, create("a"), audit=[entry(ITSELF)])
    assert [row.principal for row in await rows(later)] == [EVERYBODY.name, ITSELF.principal]


async def test_what_somebody_known_asks_for_is_kept_though_the_process_has_not_heard_of_them(
    later: AnyStore,
):
    cluster = await later.clusters.find("default")
    await committed(later, cluster, create("a"), audit=[entry(EVERYBODYS), entry(ALICE, 2)])
    await later.clusters.create("other", b"{}", EVERYBODYS)
    assert sorted(row.principal for row in await rows(later)) == [
        ALICE.principal,
        EVERYBODY.name,
        EVERYBODY.name,
    ]


async def test_a_store_that_is_to_keep_none_keeps_none(store_url: str | None):
    store = opened_with(store_url)
    store.audit.begin()
    cluster = await store.clusters.find("default")
    await committed(store, cluster, create("a"), audit=[entry()])
    assert await rows(store) == []
    await store.close()
