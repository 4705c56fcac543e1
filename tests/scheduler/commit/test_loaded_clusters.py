"""What is done now and then costs what is in use, and not how many clusters there are."""

from itertools import pairwise

import pytest

from service.scheduler.commit.loops import AWAKE_SECONDS, SLEEPERS_AT_A_TIME, Loops
from tests.builders import node, pod
from tests.scheduler.world import world


class Sleeper:
    def __init__(self, cluster_id: int) -> None:
        self.cluster_id = cluster_id


@pytest.fixture
def loops() -> Loops:
    """Of many clusters, of which nothing is asked."""
    loops = Loops()
    for number in range(3 * SLEEPERS_AT_A_TIME + 7):
        loops.put(f"c{number}", Sleeper(number))
        loops.sleep(f"c{number}")
    return loops


def test_of_clusters_that_sleep_some_are_looked_after_each_time_and_all_in_turn(loops) -> None:
    seen: set[str] = set()
    for _ in range(4):
        due = loops.due()
        assert len(due) <= SLEEPERS_AT_A_TIME
        seen |= due.keys()
    assert seen == loops.keys()


def test_a_cluster_that_is_awake_is_looked_after_each_time(loops) -> None:
    loops.wake(100)
    loops.wake(999)
    for _ in range(8):
        assert "c100" in loops.due()
    assert [each.cluster_id for each in loops.awake] == [100]
    loops.sleep("c100")
    assert "c100" not in loops.due() or "c100" not in loops.due()


def test_few_clusters_are_all_looked_after_each_time() -> None:
    loops = Loops()
    for number in range(SLEEPERS_AT_A_TIME):
        loops.put(f"c{number}", Sleeper(number))
        loops.sleep(f"c{number}")
    for _ in range(3):
        assert loops.due().keys() == loops.keys()


def test_what_was_removed_is_not_looked_after(loops) -> None:
    first = next(iter(loops.due()))
    for name in list(loops):
        if name != first:
            loops.remove(name)
    loops.wake(1)
    assert [*loops] == [first]
    for _ in range(8):
        assert loops.due().keys() <= {first}
    loops.put(first, Sleeper(7))
    assert [each.cluster_id for each in loops.of([7, 0, 1])] == [7]


async def test_a_cluster_sleeps_when_nothing_is_left_to_do_and_wakes_when_it_is_asked() -> None:
    async with world() as w:
        await w.apply(node("n"))
        loops = w.schedulers[0].loops
        assert len(loops.awake) == 1
        for _ in range(int(AWAKE_SECONDS) + 1):
            await w.pass_time(1)
        assert loops.awake == []
        await w.place(pod("p"))
        assert len(loops.awake) == 1


async def test_a_cluster_in_which_a_pod_waits_stays_awake() -> None:
    async with world() as w:
        await w.apply(pod("p"))
        for _ in range(3 * int(AWAKE_SECONDS)):
            await w.pass_time(1)
        assert len(w.schedulers[0].loops.awake) == 1
        assert w.schedulers[0].gauges().pending.total() == 1


async def test_a_cluster_in_which_nothing_changes_is_looked_at_ever_more_seldom(
    monkeypatch,
) -> None:
    async with world() as w:
        asked = []
        acquire = w.store.leases.acquire

        async def noted(cluster_id, name, *rest):
            if name == "upkeep":
                asked.append(w.clock.monotonic())
            return await acquire(cluster_id, name, *rest)

        monkeypatch.setattr(w.store.leases, "acquire", noted)
        for _ in range(210):
            await w.pass_time(10)
        pauses = [after - before for before, after in pairwise(asked)]
        assert pauses == sorted(pauses)
        assert 500 <= pauses[-1] <= 610
        await w.apply(node("n"))
        await w.pass_time(10)
        await w.pass_time(10)
        assert w.clock.monotonic() - asked[-1] <= 10
