"""A17: whatever is asked of one cluster, of another nothing is shown, and nothing is touched."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from msgspec.structs import replace

from service.model.log.commit import Head, ObjectKey
from service.model.webhooks import WebhookRow
from service.store.db.connector import data_source_name
from service.store.postgres import PostgresStore
from tests.store.history import (
    AnyStore,
    answer,
    commit_on,
    committed,
    create,
    new_id,
    rows,
    whole_log,
)
from tests.store.test_events import event

RECORD = answer("k")
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


async def filled(store: AnyStore, cluster_id: int, mark: str) -> None:
    """Everything that a cluster can have, under the same keys in each cluster."""
    body = mark.encode()
    record = replace(RECORD, answer=body)
    await committed(store, cluster_id, create("a", body=body), idempotency=[record])
    await committed(store, cluster_id, create("b", body=body, node_name=mark))
    await store.events.add(cluster_id, [event("a", message="m"), event("b", message=mark)])
    await store.leases.acquire(cluster_id, "work", mark, 600)
    await committed(store, cluster_id, create("n", kind="Node", namespace="", body=body))
    await store.heartbeats.record(cluster_id, ["n"])
    await store.recovery.continue_history(cluster_id, None)
    await store.webhooks.change(cluster_id, "w", lambda _: webhook(cluster_id, mark))


def webhook(cluster_id: int, mark: str) -> WebhookRow:
    return WebhookRow(
        cluster_id=cluster_id,
        name="w",
        uid=str(UUID(int=cluster_id)),
        version=1,
        url=f"https://{mark}.example/",
        events="Bindings",
        namespace=None,
        disabled=False,
        secret=mark,
        previous_secret=None,
        previous_until=None,
        created_at=LONG_AGO,
        revision=0,
        batch_end=None,
        delivered_at=None,
        attempt_at=LONG_AGO,
        failures=0,
        last_error=None,
        stopped=False,
        holder=None,
        held_until=None,
    )


async def everything(store: AnyStore, cluster_id: int) -> list[Any]:
    """All that any call shows of a cluster."""
    listed = await store.objects.list(cluster_id, "Pod", limit=100)
    events = await store.events.list(cluster_id, limit=100)
    return [
        await store.log.head(cluster_id),
        await whole_log(store, cluster_id),
        await rows(store, cluster_id),
        (listed.head, listed.rows),
        (await store.objects.get(cluster_id, "Pod", "default", "a")),
        await store.log.find_answers(cluster_id, [RECORD.id]),
        [(row.name, row.event) for row in events.rows],
        await store.clusters.counts(cluster_id),
        (await store.leases.claim(cluster_id, "work", "somebody", 60)),
        await store.heartbeats.last(cluster_id, "n"),
        await store.webhooks.list(cluster_id),
    ]


CALLS: dict[str, Callable[[AnyStore, int], Awaitable[Any]]] = {
    "sweeping answers": lambda store, number: store.housekeeping.sweep_answers(
        number, keep_seconds=0
    ),
    "sweeping events": lambda store, number: store.events.sweep(
        number, keep_seconds=0, keep_rows=0
    ),
    "compacting": lambda store, number: store.housekeeping.compact(
        number, keep_changes=0, keep_seconds=0
    ),
    "giving a lease back": lambda store, number: store.leases.release(number, "work", "own"),
    "forgetting reports": lambda store, number: store.heartbeats.forget(number, ["n"]),
    "lifting the revision": lambda store, number: store.recovery.lift_revision(number),
    "continuing a history": lambda store, number: store.recovery.continue_history(
        number, Head(9, new_id(), LONG_AGO)
    ),
    "deleting": lambda store, number: store.clusters.delete(number),
}


@pytest.mark.parametrize("call", CALLS)
async def test_a17_what_is_done_to_one_cluster_touches_no_other(
    store: AnyStore, cluster_id: int, call: str
) -> None:
    other = (await store.clusters.create("other", b"{}")).cluster_id
    await filled(store, cluster_id, "own")
    await filled(store, other, "other")
    before = await everything(store, cluster_id)
    await CALLS[call](store, other)
    assert await everything(store, cluster_id) == before


async def test_a17_an_empty_cluster_beside_a_full_one_shows_nothing(
    store: AnyStore, cluster_id: int
) -> None:
    other = (await store.clusters.create("other", b"{}")).cluster_id
    await filled(store, cluster_id, "own")
    assert await store.log.find_answers(other, [RECORD.id]) == ()
    assert (await store.events.list(other, limit=100)).rows == []
    assert (await store.objects.list(other, "Pod", limit=100)).rows == []
    assert (await store.objects.get(other, "Pod", "default", "a")).row is None
    config = ObjectKey("Cluster", "", "config")
    assert [row.key for row in (await store.objects.read(other, None, 100)).rows] == [config]
    assert (await store.clusters.counts(other)).pods == 0
    assert await store.leases.acquire(other, "work", "other", 60) is not None
    assert not (await store.heartbeats.check(other, -60)).any
    assert await store.housekeeping.sweep_answers(other, keep_seconds=0) == 0
    assert await store.events.sweep(other, keep_seconds=0, keep_rows=0) == 0


async def test_a_deleted_cluster_leaves_no_row_in_any_table(
    postgres: PostgresStore, database_url: str
) -> None:
    """Numbers are never used again, so what stayed would stay for ever. Only who did what is told of it until that is old."""
    number = (await postgres.clusters.create("other", b"{}")).cluster_id
    await filled(postgres, number, "other")
    head = await postgres.log.head(number)
    await postgres.log.settle_unknown(number, commit_on(head, create("c")))
    operator = await asyncpg.connect(data_source_name(database_url))
    tables = await operator.fetch(
        "SELECT table_name FROM information_schema.columns JOIN information_schema.tables"
        " USING (table_schema, table_name) WHERE table_schema = 'public'"
        " AND column_name = 'cluster_id' AND table_type = 'BASE TABLE' AND table_name <> 'audit'"
    )

    async def counted() -> dict[str, int]:
        return {
            name: await operator.fetchval(
                f"SELECT count(*) FROM {name} WHERE cluster_id = $1", number
            )
            for name in (row["table_name"] for row in tables)
        }

    before = await counted()
    assert await postgres.clusters.delete(number)
    await postgres.events.add(number, [event("late", message="too late")])
    after = await counted()
    await operator.close()
    # What processes say of their replicas is forgotten by whoever reports next.
    assert {name for name, rows in before.items() if rows} == before.keys() - {"replica_report"}
    assert set(after.values()) == {0}
