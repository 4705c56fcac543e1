"""Logs are compacted, and old answers swept, by one worker at a time."""

from contextlib import asynccontextmanager

from service.model.core.errors import StorageUnavailable
from service.scheduler.protocol.intents import Idempotency, PutConfig
from service.scheduler.protocol.limits import Limits
from tests.builders import node
from tests.scheduler.world import world

LIMITS = Limits(log_keep_seconds=60, log_keep_changes=10, answers_keep_seconds=100)


@asynccontextmanager
async def kept(workers: int = 1):
    async with world(workers=workers, limits=LIMITS) as w:
        yield w


async def floor(w) -> int:
    return w.store.states[1].floor


async def grow(w, changes: int) -> None:
    for start in range(0, changes, 500):
        count = min(500, changes - start)
        await w.apply(*(node(f"n{number}").label(at=str(start)) for number in range(count)))


async def a_round(w) -> None:
    await w.pass_time(LIMITS.upkeep_seconds)
    await w.others(1_000)


async def test_old_changes_beyond_the_count_are_compacted():
    async with kept() as w:
        await grow(w, 3000)
        await a_round(w)
        assert await floor(w) == 0

        w.clock.advance(LIMITS.log_keep_seconds)
        await a_round(w)

        assert len(w.log()) == LIMITS.log_keep_changes


async def test_young_changes_stay_however_many():
    async with kept() as w:
        await grow(w, 30)
        w.clock.advance(LIMITS.log_keep_seconds)
        await grow(w, 1500)
        young = len(w.log()) - 31

        await a_round(w)

        assert len(w.log()) == young


async def test_p12_a_step_takes_at_most_a_thousand_rows(monkeypatch):
    async with kept() as w:
        await grow(w, 2500)
        floors = []
        compact = w.store.housekeeping.compact

        async def noted(*given, **options):
            floors.append((await compact(*given, **options))[0])
            return floors[-1], len(floors) < 2 or floors[-1] > floors[-2]

        monkeypatch.setattr(w.store.housekeeping, "compact", noted)
        w.clock.advance(LIMITS.log_keep_seconds)
        await a_round(w)

        assert floors[:2] == [1000, 2000]


async def test_only_the_lease_holder_does_it_and_gives_the_lease_back():
    async with kept(workers=3) as w:
        await w.others()
        await a_round(w)
        leases = w.store.states[1].leases
        holder = leases["upkeep"].holder
        for _ in range(20):
            await a_round(w)
            assert leases["upkeep"].holder == holder
    assert leases == {}


async def test_a_cluster_in_which_nothing_changes_is_left_alone_for_a_while(monkeypatch):
    async with kept() as w:
        asked = []
        acquire = w.store.leases.acquire

        async def noted(cluster_id, name, *rest):
            if name == "upkeep":
                asked.append(w.clock.monotonic())
            return await acquire(cluster_id, name, *rest)

        monkeypatch.setattr(w.store.leases, "acquire", noted)
        for _ in range(12):
            await a_round(w)
        assert 3 <= len(asked) <= 4
        asked.clear()
        for number in range(3):
            await w.apply(node(f"n{number}"))
            await a_round(w)
        assert len(asked) == 3


async def test_p11_answers_are_kept_for_their_time():
    async with kept() as w:
        key = Idempotency(
            operation="putCluster", key="k", chunk=0, request_hash=b"h", encode=lambda _: b"{}"
        )
        await w.apply(node("warm"))
        intent = PutConfig(config={"hardPodAffinityWeight": 2})
        await w.schedulers[0].submit("default", intent, key)
        answers = w.store.states[1].answers
        await a_round(w)
        assert len(answers) == 1

        w.clock.advance(LIMITS.answers_keep_seconds)
        await a_round(w)

        assert answers == {}


async def test_who_wrote_what_is_removed_when_it_is_old(monkeypatch):
    async with kept() as w:
        kept_seconds = []

        async def sweep(*, keep_seconds):
            kept_seconds.append(keep_seconds)
            return 5 if len(kept_seconds) == 2 else 0

        monkeypatch.setattr(w.store.audit, "sweep", sweep)
        await w.others()
        await a_round(w)
        assert len(kept_seconds) == 1
        await a_round(w)
        assert len(kept_seconds) == 1

        w.clock.advance(LIMITS.audit_sweep_seconds)
        await a_round(w)

        assert kept_seconds == [LIMITS.audit_keep_seconds] * 3  # until none is left


async def test_upkeep_goes_on_after_the_database_was_away(monkeypatch):
    async with kept() as w:
        await grow(w, 100)
        w.clock.advance(LIMITS.log_keep_seconds)

        async def unreachable() -> None:
            raise StorageUnavailable("No connection.")

        with monkeypatch.context() as patch:
            patch.setattr(w.store.clusters, "ids", unreachable)
            await a_round(w)
        assert await floor(w) == 0

        await a_round(w)

        assert await floor(w) > 0
