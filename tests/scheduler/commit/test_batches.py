"""P16: a commit that acts on times which have to come waits for the latest of them."""

from datetime import datetime, timedelta
from itertools import permutations

from service.scheduler.commit.request_batches import Batch
from service.scheduler.replica.replica import Mark
from tests.builders import matching, pod
from tests.scheduler.controllers.test_rule_evictions import (
    BESIDE,
    ENDURING,
    N1,
    S2,
    apply,
    delete,
    evictions,
    pass_seconds,
)
from tests.scheduler.world import START, world

BEGIN = Mark(position=0, engine=0, revision=1)
TIMES = [START + timedelta(seconds=seconds) for seconds in (5, 20, 10)]


def test_p16_a_batch_waits_for_the_latest_of_its_times() -> None:
    for times in permutations([*TIMES, None]):
        batch = Batch(BEGIN, "")
        for time in times:
            batch.hold_until(time)
        assert batch.not_before == max(TIMES), times


def test_p16_a_batch_that_acts_on_no_time_waits_for_none() -> None:
    batch = Batch(BEGIN, "")
    batch.hold_until(None)
    assert batch.not_before is None


async def test_p16_who_evicts_for_two_rules_waits_for_the_later_of_their_graces() -> None:
    """Each has a timer of its own; the worker stood still when the first one rang."""
    async with world() as w:
        other = pod("t1").label(service="T1")
        beside_t = pod("t2").require_affinity("host", matching(service="T1"), **ENDURING)
        await apply(w, N1, BESIDE.on("n1"), S2.on("n1"), beside_t.on("n1"), other.on("n1"))
        await delete(w, "s2")
        await pass_seconds(w, 10)
        await delete(w, "t1")
        timers = (await w.stored("Evictions", "", "state"))["timers"]
        since = [datetime.fromisoformat(timer["since"]) for timer in timers]
        assert max(since) - min(since) >= timedelta(seconds=9)
        await w.pass_time(45)
        await pass_seconds(w, 5)
        assert sorted(evictions(w)) == ["s1", "t2"]
        (due,) = [each.not_before for each in w.store.commits_begun if each.not_before]
        assert due == max(since) + timedelta(seconds=30)
