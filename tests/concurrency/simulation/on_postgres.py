"""`python -m tests.concurrency.simulation.on_postgres --seeds 100`: have PostgreSQL answer the calls of simulations.

A simulation is as true as its database. So all that one was asked is asked of PostgreSQL once more,
in the same order, and each answer must be the same, with its revisions, ids and times. For that
PostgreSQL gets a clock that stands still at each call's time, and is told which ids it makes:
functions of a schema that is looked into before its own.
"""

import argparse
import asyncio
import contextlib
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from operator import attrgetter

import asyncpg
import msgspec
from sqlalchemy import make_url

from service.model.log.commit import CommitRequest, LogPage
from service.server.local_server import temporary_folder
from service.store.db.connector import data_source_name
from service.store.embedded import EmbeddedPostgres
from service.store.postgres import PostgresStore
from service.store.schema.migrate import upgrade
from tests.concurrency.simulation.campaign import cores
from tests.concurrency.simulation.recording import RecordedCall, told, told_error
from tests.concurrency.simulation.run import simulate
from tests.databases import Databases
from tools.ledger import Campaign, add_ledger

_TOLD_WHAT = """
    CREATE SCHEMA told;
    CREATE TABLE told.moment (at timestamptz NOT NULL, ids uuid[] NOT NULL, made integer NOT NULL);
    INSERT INTO told.moment VALUES ('2026-01-01', '{}', 0);
    CREATE FUNCTION told.clock_timestamp() RETURNS timestamptz
        LANGUAGE sql VOLATILE AS $$ SELECT at FROM told.moment $$;
    CREATE FUNCTION told.now() RETURNS timestamptz
        LANGUAGE sql STABLE AS $$ SELECT at FROM told.moment $$;
    CREATE FUNCTION told.gen_random_uuid() RETURNS uuid
        LANGUAGE sql VOLATILE AS $$ UPDATE told.moment SET made = made + 1 RETURNING ids[made] $$;
    ALTER TABLE cluster ALTER COLUMN cluster_id RESTART WITH 1;
"""
_TELL = "UPDATE told.moment SET at = $1, ids = $2, made = 0"


class Difference(msgspec.Struct, frozen=True):
    """A call that PostgreSQL did not answer as the store in memory did."""

    number: int
    call: str
    in_memory: object
    on_postgres: object

    def __str__(self) -> str:
        return (
            f"call {self.number}, {self.call}:\n    in memory     {self.in_memory}\n"
            f"    on PostgreSQL {self.on_postgres}"
        )


async def compare(url: str, calls: Sequence[RecordedCall]) -> Difference | None:
    """Ask an empty database at its newest schema the same; return the first answer that differs."""
    async with _told_what(url) as (operator, store):
        for number, call in enumerate(calls):
            await operator.execute(_TELL, call.at, call.ids)
            expected = [call.page, call.outcome]
            found = await _ask(store, call)
            if found != expected:
                said = f"{call.name}{call.arguments}{call.options or ''}"
                return Difference(number, said, expected, found)
    return None


@contextlib.asynccontextmanager
async def _told_what(url: str) -> AsyncIterator[tuple[asyncpg.Connection, PostgresStore]]:
    """A store without clusters, and a connection by which its database is told the time."""
    operator = await asyncpg.connect(data_source_name(url))
    try:
        first = PostgresStore(url, connections=1)
        await first.clusters.delete(await first.clusters.find("default"))
        await first.close()
        await operator.execute("DELETE FROM predecessor")
        await operator.execute(_TOLD_WHAT)
        database = await operator.fetchval("SELECT quote_ident(current_database())")
        path = "told, public, pg_catalog"
        await operator.execute(f"ALTER DATABASE {database} SET search_path = {path}")
        store = PostgresStore(url, connections=1, audit=True)
        try:
            yield operator, store
        finally:
            await store.close()
    finally:
        await operator.close()


async def _ask(store: PostgresStore, call: RecordedCall) -> list[object]:
    """What the caller of `commit_locked` gets to decide on, and the answer."""
    pages: list[object] = [None]

    def decide(page: LogPage) -> CommitRequest | None:
        pages[0] = told(page)
        return call.decision

    arguments = (*call.arguments, decide) if call.name == "log.commit_locked" else call.arguments
    try:
        answer = await attrgetter(call.name)(store)(*arguments, **call.options)
    except Exception as error:  # noqa: BLE001 - errors are answers here
        return [pages[0], told_error(error)]
    return [pages[0], told(answer)]


VARIANTS = (
    {},
    {"preempting": True},
    {"preempting": True, "by_domains": True},
    {"protecting": True},
)
"""Of simulations; a campaign takes one after the other."""


def recorded(seed: int, **variant: bool) -> list[RecordedCall]:
    """All that the database of one simulation was asked."""
    calls: list[RecordedCall] = []
    simulate(seed, calls=calls, **variant)
    return calls


class Comparison(msgspec.Struct, frozen=True):
    """What came of one seed."""

    seed: int
    asked: dict[str, int]
    """How many calls there were, by their names."""
    difference: Difference | None


def compare_seed(url: str, seed: int) -> Comparison:
    """Compare on a copy of a database that nobody is connected to."""
    calls = recorded(seed, **VARIANTS[seed % len(VARIANTS)])
    original = make_url(url)
    beside = original.set(database="postgres").render_as_string(hide_password=False)
    with (
        contextlib.closing(Databases(beside, original.database or "")) as databases,
        databases.fresh() as copy,
    ):
        found = asyncio.run(compare(copy, calls))
    return Comparison(seed, dict(Counter(call.name for call in calls)), found)


def main() -> int:
    options = _options()
    seeds = range(options.first, options.first + options.seeds)
    campaign, asked, different = Campaign("compare-stores", options.ledger), Counter[str](), 0
    with (
        temporary_folder() as folder,
        EmbeddedPostgres(folder / "data") as postgres,
        ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool,
    ):
        upgrade(postgres.url)
        for found in pool.map(partial(compare_seed, postgres.url), seeds):
            asked.update(found.asked)
            if found.difference is not None:
                different += 1
                print(f"seed {found.seed}: {found.difference}", flush=True)
    print(", ".join(f"{name} {number:,}" for name, number in asked.most_common()))
    print(f"{asked.total():,} calls of {len(seeds):,} seeds; {different} seeds differ")
    campaign.add(
        seeds=f"{seeds.start} to {seeds.stop - 1}",
        runs=len(seeds),
        calls=asked.total(),
        violations=different,
    )
    return 1 if different else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.concurrency.simulation.on_postgres",
        description="Ask PostgreSQL what simulated databases were asked, and compare all answers.",
    )
    parser.add_argument("--seeds", type=int, default=10, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    parser.add_argument("--jobs", type=int, default=cores(), help="processes")
    add_ledger(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
