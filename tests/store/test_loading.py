"""P13: a load in ranges of keys is one state, whatever happens between two ranges."""

from collections.abc import Awaitable, Callable

import asyncpg
import pytest

from service.model.core.errors import StorageUnavailable
from service.model.log.commit import ObjectKey
from service.model.log.pages import ObjectPage
from service.scheduler.protocol.limits import Limits
from service.scheduler.replica.loading import Loader, Rows, load
from service.store.db.connector import data_source_name
from service.store.postgres import PostgresStore
from tests.store.history import AnyStore, commit_on, committed, create, delete, disconnect_all, put

LIMITS = Limits(load_rows=3, log_page_changes=2)
HOLDING = """
    SELECT state, backend_xmin FROM pg_stat_activity
    WHERE application_name = 'moorage' AND datname = current_database()
        AND (state <> 'idle' OR backend_xmin IS NOT NULL)
"""

Between = Callable[[int], Awaitable[object]]


class Interrupted:
    """A store where something happens before each read of a range, the first one apart."""

    def __init__(self, store: AnyStore, between: Between) -> None:
        self._store = store
        self._between = between
        self.after: list[ObjectKey | None] = []
        """Where each range began."""
        self.objects = self
        self.log = store.log

    async def read(self, cluster_id: int, after: ObjectKey | None, limit: int) -> ObjectPage:
        self.after.append(after)
        if len(self.after) > 1:
            await self._between(len(self.after) - 1)
        return await self._store.objects.read(cluster_id, after, limit)


async def fill(store: AnyStore, cluster_id: int) -> None:
    await committed(store, cluster_id, *(create(f"pod-{number}0") for number in range(10)))


async def test_p13_what_changes_between_ranges_is_followed_on_both_sides_of_the_last_key(
    store: AnyStore, cluster_id: int
):
    """Objects come, change and go before and behind the reader; one moves past it each time."""
    await fill(store, cluster_id)

    async def change(number: int) -> None:
        fence = commit_on(await store.log.head(cluster_id), create("never"))
        await committed(
            store,
            cluster_id,
            create(f"a-{number}"),
            create(f"z-{number}"),
            put("pod-00", body=f"{number}".encode()),
            put("pod-90", body=f"{number}".encode()),
            create("brief"),
            delete("brief"),
        )
        await store.log.settle_unknown(cluster_id, fence)
        fence = commit_on(await store.log.head(cluster_id), create("never"))
        await store.log.settle_unknown(cluster_id, fence)
        await committed(store, cluster_id, delete(f"a-{number}"), create(f"b-{number}"))
        if number > 1:
            await committed(store, cluster_id, delete(f"z-{number - 1}"))

    interrupted = Interrupted(store, change)
    loaded = await load(interrupted, cluster_id, LIMITS)
    assert len(interrupted.after) > 4
    assert interrupted.after == sorted(set(interrupted.after), key=lambda key: key or ())
    assert loaded == await load(store, cluster_id, Limits(load_rows=1_000))
    assert loaded.head == await store.log.head(cluster_id)


async def test_p13_a_load_that_compaction_overtakes_begins_anew(store: AnyStore, cluster_id: int):
    await fill(store, cluster_id)

    async def overtake(number: int) -> None:
        if number == 2:
            await committed(store, cluster_id, delete("pod-00"), create("pod-000"))
            await committed(store, cluster_id, create("late"))
            while (await store.housekeeping.compact(cluster_id, keep_changes=0, keep_seconds=0))[1]:
                pass

    interrupted = Interrupted(store, overtake)
    loaded = await load(interrupted, cluster_id, LIMITS)
    assert interrupted.after.count(None) == 2
    assert loaded == await load(store, cluster_id)


async def test_p13_a_load_notices_another_history(store: AnyStore, cluster_id: int):
    """After a restore or a failover the log no longer leads from what was read before."""
    await fill(store, cluster_id)

    async def lift(number: int) -> None:
        if number == 2:
            await store.recovery.lift_revision(cluster_id)

    interrupted = Interrupted(store, lift)
    loaded = await load(interrupted, cluster_id, LIMITS)
    assert interrupted.after.count(None) == 2
    assert loaded == await load(store, cluster_id)


async def test_p13_no_snapshot_is_held_between_ranges(postgres: PostgresStore, database_url: str):
    """So PostgreSQL can clear what commits leave behind, however long a load takes."""
    cluster_id = await postgres.clusters.find("default")
    await fill(postgres, cluster_id)
    operator = await asyncpg.connect(data_source_name(database_url))
    held = []

    async def look(_: int) -> None:
        held.extend(await operator.fetch(HOLDING))

    await load(Interrupted(postgres, look), cluster_id, LIMITS)
    await operator.close()
    assert held == []


async def test_p13_a_load_goes_on_where_a_lost_connection_left_it(
    postgres: PostgresStore, database_url: str
):
    cluster_id = await postgres.clusters.find("default")
    await fill(postgres, cluster_id)
    operator = await asyncpg.connect(data_source_name(database_url))

    async def fail(number: int) -> None:
        if number == 2:
            await disconnect_all(operator)
            raise StorageUnavailable("PostgreSQL was restarted.")

    interrupted = Interrupted(postgres, fail)
    loading = Loader(cluster_id, source=interrupted, new_target=Rows, limits=LIMITS)
    with pytest.raises(StorageUnavailable):
        await loading.run()
    await committed(postgres, cluster_id, delete("pod-00"), put("pod-90", body=b"new"))
    rows, head = await loading.run()
    await operator.close()
    assert interrupted.after.count(None) == 1
    assert interrupted.after[2] == interrupted.after[3]
    present = await load(postgres, cluster_id)
    assert (head, sorted(rows.by_key)) == (present.head, [row.key for row in present.rows])
    assert sorted(rows.by_key.values(), key=lambda row: row.key) == present.rows
