"""Whatever version made a database: upgraded, it is what a new one is, and all that was in it still is."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff

import asyncpg
import pytest

from service.model.log.commit import IdempotencyKey, LogPage, ObjectKey, ObjectRow
from service.model.pods.template_cache import TemplateCache
from service.scheduler.replica.loading import load
from service.scheduler.replica.stored_kinds import StoredManifest, load_manifest
from service.store.db.connector import data_source_name
from service.store.postgres import PostgresStore
from service.store.schema.migrate import upgrade
from tests.store.history import answer, committed, create, delete, put, whole_log
from tests.store.releases import DUMPS, Contents, contents, restore
from tests.store.test_events import event
from tools import postgres as programs

# What pg_dump leaves to pg_dumpall: settings of this database, and of all, for anybody or a role.
_SETTINGS = """
    SELECT setrole::regrole::text, setdatabase = 0 AS everywhere, setconfig FROM pg_db_role_setting
    WHERE setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
    ORDER BY 1, 2
"""
_FUNCTIONS = "SELECT proname::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
LEFT_OVER = {"commit_v1", "commit_v2", "commit_v3", "commit_v4"}
"""Functions of databases that 0.2.0 created, which no server calls; the next migration drops them."""
KINDS = {"Cluster", "Evictions", "Namespace", "Node", "Pod", "ResourceQuota"}


@dataclass(frozen=True)
class Upgraded:
    """A released version's database, and what was in it before this version upgraded it."""

    url: str
    before: Contents
    after: Contents


@pytest.fixture(scope="module", params=DUMPS, ids=lambda path: path.stem)
def upgraded(request: pytest.FixtureRequest, databases) -> Iterator[Upgraded]:
    with databases.empty() as url:
        asyncio.run(restore(url, request.param.read_text()))
        before = asyncio.run(contents(url))
        upgrade(url)
        yield Upgraded(url, before, asyncio.run(contents(url)))


@pytest.fixture
async def store(upgraded: Upgraded) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(upgraded.url)
    yield opened
    await opened.close()


async def settings(url: str) -> list[tuple[object, ...]]:
    connection = await asyncpg.connect(data_source_name(url))
    rows = await connection.fetch(_SETTINGS)
    await connection.close()
    return [tuple(row) for row in rows]


async def drop_leftovers(url: str) -> set[str]:
    """Drop the functions that are left over in a database; return their names."""
    connection = await asyncpg.connect(data_source_name(url))
    names = {row["proname"] for row in await connection.fetch(_FUNCTIONS)} & LEFT_OVER
    await connection.execute(f"DROP FUNCTION {', '.join(sorted(names))}")
    await connection.close()
    return names


async def test_an_upgraded_database_has_the_schema_of_a_new_one(
    upgraded: Upgraded, module_database_url: str
):
    """All that pg_dump prints: tables, columns, constraints, indexes, functions, views, triggers, comments."""
    assert await drop_leftovers(upgraded.url) == LEFT_OVER
    old, new = (programs.dump(url, "--schema-only") for url in (upgraded.url, module_database_url))
    difference = unified_diff(old.splitlines(), new.splitlines(), "upgraded", "new", lineterm="")
    assert old == new, "\n".join(difference)
    assert "CREATE FUNCTION public.commit_v5(" in new
    assert await settings(upgraded.url) == await settings(module_database_url)


def test_an_upgrade_keeps_every_row(upgraded: Upgraded):
    assert all(upgraded.before.values()), "a dump has rows of every table"
    kept, added = dict[str, list[dict[str, object]]](), set[object]()
    for name, rows in upgraded.before.items():
        columns = rows[0].keys()
        kept[name] = [{each: row[each] for each in columns} for row in upgraded.after[name]]
        added |= {
            value
            for row in upgraded.after[name]
            for value in (row[c] for c in row.keys() - columns)
        }
    assert kept == upgraded.before
    assert added <= {None}, "what earlier versions did not write is not known"


async def test_what_an_older_version_wrote_is_read_and_goes_on(
    upgraded: Upgraded, store: PostgresStore
):
    cluster_id = await store.clusters.find("default")
    objects = (await load(store, cluster_id)).rows
    log = await whole_log(store, cluster_id)
    assert {row.kind for row in objects} >= KINDS
    assert [(each.kind, each.name) for each in map(manifest, objects)] == names(objects)
    assert left_by(log) == {row.key: row.revision for row in objects}

    changes = create("new"), put("web-0", namespace="shop"), delete("web-2", namespace="shop")
    head = await committed(
        store, cluster_id, *changes, idempotency=[answer("new")], events=[event("web-0")]
    )

    assert head.revision == log.head.revision + 3
    present = (await load(store, cluster_id)).rows
    assert set(names(present)) == {*names(objects), ("Pod", "new")} - {("Pod", "web-2")}
    keys = [IdempotencyKey("placePods", key) for key in ("order-of-web-0", "new")]
    assert len(await store.log.find_answers(cluster_id, keys)) == 2
    assert await store.clusters.delete(await store.clusters.find("staging"))


def manifest(row: ObjectRow) -> StoredManifest:
    return load_manifest(row.kind, row.body, TemplateCache(1 << 20))


def names(objects: Sequence[ObjectRow]) -> list[tuple[str, str]]:
    return [(row.kind, row.name) for row in objects]


def left_by(log: LogPage) -> dict[ObjectKey, int]:
    """The objects that the log leaves, with their revisions; it has to be dense and from the start."""
    assert [change.revision for change in log.changes] == list(range(1, log.head.revision + 1))
    last = {change.key: change for change in log.changes}
    return {key: change.revision for key, change in last.items() if change.verb == "Put"}
