"""The scheduler over PostgreSQL, with real time: what the simulated store promises, it keeps."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

import asyncpg
import msgspec

from service.model.core.errors import Unavailable
from service.model.core.generate_name import SUFFIXES, suffix_of
from service.model.registry.manifests import TemplateCache, parse_any, parse_pod
from service.scheduler.protocol.answers import RecordedAnswer
from service.scheduler.protocol.intents import ApplyObjects, Idempotency, PlacePods
from service.scheduler.protocol.limits import Limits
from service.scheduler.scheduler import Scheduler
from service.store.postgres import PostgresStore
from tests.builders import matching, node, pod
from tests.scheduler.world import encoded, kinded
from tests.store.history import disconnect_all
from tests.waiting import WAIT_SECONDS, once

TEMPLATES = TemplateCache()
LIMITS = Limits(request_seconds_max=WAIT_SECONDS)


class RealClock:
    def now(self) -> datetime:
        return datetime.now(UTC)  # noqa: TID251

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class RandomIds:
    def uid(self) -> str:
        return str(uuid.uuid4())  # noqa: TID251

    def suffix(self) -> str:
        return suffix_of(self.commit_id().int % SUFFIXES)

    def commit_id(self) -> uuid.UUID:
        return uuid.uuid4()  # noqa: TID251


@asynccontextmanager
async def workers(url: str, count: int) -> AsyncIterator[list[Scheduler]]:
    stores = [PostgresStore(url) for _ in range(count)]
    schedulers = [Scheduler(store, RealClock(), RandomIds(), LIMITS) for store in stores]
    for scheduler in schedulers:
        await scheduler.start()
    yield schedulers
    for scheduler, store in zip(schedulers, stores, strict=True):
        await scheduler.stop()
        await store.close()


def apply(scheduler, *manifests):
    parsed = tuple(parse_any(encoded(kinded(each)), TEMPLATES) for each in manifests)
    return scheduler.submit("default", ApplyObjects(manifests=parsed))


def place(scheduler, manifest, idempotency=None):
    parsed = parse_pod(encoded(manifest), TEMPLATES, to_place=True)
    return scheduler.submit("default", PlacePods(pods=(parsed,)), idempotency)


async def nodes_of_pods(url):
    connection = await asyncpg.connect(url.replace("+asyncpg", ""))
    try:
        rows = await connection.fetch("SELECT name, node_name FROM object WHERE kind = 'Pod'")
        return {row["name"]: row["node_name"] for row in rows}
    finally:
        await connection.close()


async def test_races_of_four_workers_leave_one_pod_a_zone(database_url):
    """E05: required anti-affinity, eight zones, twelve pods."""
    async with workers(database_url, 4) as schedulers:
        await apply(schedulers[0], *(node(f"n{i}").label(zone=f"z{i}") for i in range(8)))
        exclusive = [
            pod(f"p{i}").label(app="x").require_anti_affinity("zone", matching(app="x"))
            for i in range(12)
        ]
        calls = [place(schedulers[i % 4], each) for i, each in enumerate(exclusive)]
        answers = await asyncio.gather(*calls)
        outcomes = [answer.results[0].outcome for answer in answers]
        assert sorted(outcomes) == ["Placed"] * 8 + ["Unschedulable"] * 4
        placed = await nodes_of_pods(database_url)
        assert len(placed) == len(set(placed.values())) == 8


async def test_one_key_at_two_workers_has_one_effect(database_url):
    async with workers(database_url, 2) as schedulers:
        await apply(schedulers[0], node("n1"))
        key = Idempotency(
            operation="placePods", key="k", request_hash=b"h", encode=msgspec.json.encode
        )
        answers = await asyncio.gather(*(place(each, pod("a"), key) for each in schedulers))
        (own,) = (each for each in answers if not isinstance(each, RecordedAnswer))
        (other,) = (each for each in answers if isinstance(each, RecordedAnswer))
        assert other.answer == msgspec.json.encode(own)
        assert await nodes_of_pods(database_url) == {"a": "n1"}


async def test_connections_that_break_lose_nothing_and_repeat_nothing(database_url):
    """A6, A7: while backends are killed, what is acknowledged is stored, once."""
    async with workers(database_url, 2) as schedulers:
        await apply(schedulers[0], *(node(f"n{i}") for i in range(4)))
        admin = await asyncpg.connect(database_url.replace("+asyncpg", ""))
        for turns in (1, 4, 16, 64, 256):
            calls = [
                asyncio.create_task(_persistent(schedulers[i % 2], pod(f"p{turns}-{i}")))
                for i in range(8)
            ]
            for _ in range(turns):
                await asyncio.sleep(0)
            await disconnect_all(admin)
            await asyncio.gather(*calls)
        creations = await admin.fetch(
            "SELECT name, count(*) AS times FROM change WHERE kind = 'Pod' GROUP BY name"
        )
        await admin.close()
        assert {row["name"]: row["times"] for row in creations} == {
            f"p{turns}-{i}": 1 for turns in (1, 4, 16, 64, 256) for i in range(8)
        }


async def _persistent(scheduler, manifest):
    """Ask until there is an answer, as a client does who gets 503."""

    async def answered():
        with suppress(Unavailable):
            return await place(scheduler, manifest)

    return await once(answered)
