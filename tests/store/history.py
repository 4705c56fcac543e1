"""Builds commits that read like what they do: `commit_on(head, put("web-0"), delete("web-1"))`."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

import asyncpg
import psutil
from msgspec.structs import replace

from service.model.log.commit import (
    Change,
    CommitRequest,
    Head,
    IdempotencyRecord,
    LogPage,
    ObjectRow,
)
from service.model.log.results import Committed
from service.scheduler.replica.loading import load
from service.store.postgres import PostgresStore
from tests.support.memory_store.store import MemoryStore
from tests.waiting import once

AnyStore = MemoryStore | PostgresStore

_ids = count(1)


def new_id() -> UUID:
    """Ids that look random enough and differ."""
    return UUID(int=next(_ids) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128)


def ticking_clock() -> Callable[[], datetime]:
    """A clock that moves a millisecond each time somebody looks."""
    ticks = count()
    start = datetime(2026, 1, 1, tzinfo=UTC)
    return lambda: start + timedelta(milliseconds=next(ticks))


def create(name: str, **fields: Any) -> Change:
    return put(name, created=True, **fields)


def put(name: str, *, kind: str = "Pod", namespace: str = "default", **fields: Any) -> Change:
    given = {"uid": f"uid-of-{name}", "body": f'{{"name":"{name}"}}'.encode()} | fields
    return Change(revision=0, verb="Put", kind=kind, namespace=namespace, name=name, **given)


def delete(name: str, **fields: Any) -> Change:
    return replace(put(name, **fields), verb="Delete")


def commit_on(head: Head, *changes: Change, **fields: Any) -> CommitRequest:
    """The changes, numbered on from the head."""
    numbered = [
        replace(change, revision=head.revision + place)
        for place, change in enumerate(changes, start=1)
    ]
    given = {"planned_at": head.revision, "kind": "Test", "commit_id": new_id()} | fields
    return CommitRequest(
        expected_revision=head.revision, expected_tip=head.tip, changes=numbered, **given
    )


def answer(key: str, *, operation: str = "placePods", chunk: int = 0) -> IdempotencyRecord:
    return IdempotencyRecord(
        operation=operation,
        key=key,
        chunk=chunk,
        request_hash=b"hash",
        answer=b"answer of " + key.encode(),
    )


async def committed(store: AnyStore, cluster_id: int, *changes: Change, **fields: Any) -> Head:
    """Commit on the present head, which must succeed; the new head."""
    request = commit_on(await store.log.head(cluster_id), *changes, **fields)
    result = await store.log.commit(cluster_id, request)
    assert isinstance(result, Committed), result
    return result.head


async def whole_log(store: AnyStore, cluster_id: int) -> LogPage:
    page = await store.log.read(cluster_id, 0, None, 1_000_000)
    assert isinstance(page, LogPage)
    return page


async def rows(store: AnyStore, cluster_id: int) -> list[ObjectRow]:
    """All objects but the configuration."""
    return [row for row in (await load(store, cluster_id)).rows if row.kind != "Cluster"]


async def names(store: AnyStore, cluster_id: int) -> list[str]:
    return [row.name for row in await rows(store, cluster_id)]


async def connected(operator: asyncpg.Connection) -> list[int]:
    """The backends of all connections that a store has to the operator's database."""
    await operator.execute("SELECT pg_stat_clear_snapshot()")
    found = await operator.fetch(
        "SELECT pid FROM pg_stat_activity"
        " WHERE application_name = 'moorage' AND datname = current_database()"
    )
    return [row["pid"] for row in found]


async def all_disconnected(operator: asyncpg.Connection) -> None:
    """Wait until no store has a connection to the operator's database any more."""

    async def none_is_left() -> bool:
        return not await connected(operator)

    await once(none_is_left)


async def disconnect_all(operator: asyncpg.Connection) -> int:
    """End all connections that a store has to the operator's database; how many these were.

    A backend is no longer told of before its process ends, and closes its socket only then.
    """
    ended = await connected(operator)
    await operator.execute("SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid", ended)

    async def all_ended() -> bool:
        return not any(map(psutil.pid_exists, ended))

    await once(all_ended)
    for _ in range(3):  # for the event loop to see the end of what it reads
        await asyncio.sleep(0)
    return len(ended)
