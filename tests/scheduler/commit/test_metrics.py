"""What the scheduler tells its meter: certain outcomes only, and each once."""

import asyncio
from collections import Counter

import pytest

from service.model.core.errors import StorageUnavailable
from service.scheduler.commit.metrics import NoMeter
from service.scheduler.replica.lag import Lag
from tests.builders import node, pod
from tests.scheduler.world import world

DEFAULT = "default-scheduler"


class Notes(NoMeter):
    """Remembers what it was told."""

    def __init__(self):
        self.attempts = Counter()
        self.placed = []
        self.commits = []
        self.told = Counter()
        self.timed = []
        self.last = None

    def attempted(self, attempts):
        self.attempts.update(attempts)

    def scheduled(self, pods, seconds):
        self.placed.append((pods, seconds))

    def committed(self, kind, changes, seconds):
        self.commits.append((kind, changes))

    def lost(self):
        self.told["lost"] += 1

    def decided_again(self, hints, kept):
        self.told.update(again=1, hints=hints, kept=kept)

    def executed(self, executions):
        self.timed.append(executions)

    def gauges(self, gauges):
        self.last = gauges


@pytest.fixture
def notes():
    return Notes()


async def test_a_scheduler_that_is_no_profile_is_no_label(notes):
    """Or clients could make series of their own, and take the places of real profiles."""
    async with world(meter=notes) as w:
        foreign = pod("a")
        foreign["spec"]["schedulerName"] = "theirs"
        (denied,) = (await w.place(foreign)).results
        assert denied.reason == "UnknownScheduler"
    assert notes.attempts == {("", "unschedulable"): 1}


async def test_attempts_are_counted_by_profile_and_result(notes):
    async with world(meter=notes) as w:
        await w.apply(node("n1"))
        await w.place(pod("a"), pod("b"), pod("c").node_selector(no="such"))
        await w.place(pod("a"))
        await w.place(pod("d"), dry_run=True)
    assert notes.attempts == {(DEFAULT, "scheduled"): 2, (DEFAULT, "unschedulable"): 1}
    assert sum(pods for pods, _ in notes.placed) == 2
    assert ("PlacePods", 2) in notes.commits


async def test_pods_placed_from_the_queue_are_counted_too(notes):
    async with world(meter=notes) as w:
        await w.place(pod("a"), queue=True)
        await w.apply(node("n1"))
        await w.pass_time(1)
        await w.others(1000)
        assert (await w.nodes_of_pods())["a"] == "n1"
    assert notes.attempts[DEFAULT, "scheduled"] == 1
    assert notes.attempts[DEFAULT, "unschedulable"] >= 1


async def test_trouble_with_storage_is_an_error(notes):
    async with world(meter=notes) as w:
        await w.apply(node("n1"))
        w.store.trouble = ["refuse"]
        with pytest.raises(StorageUnavailable):
            await w.place(pod("a"))
    assert notes.attempts == {(DEFAULT, "error"): 1}


async def test_a_lost_race_is_a_conflict_and_a_decision_again_with_its_hints(notes):
    async with world(workers=2, meter=notes) as w:
        await w.apply(node("n1"))
        await w.place(pod("zero"), worker=1)
        gate = w.close_gate()
        asked = [asyncio.create_task(w.place(pod(f"p{i}"), worker=i)) for i in range(2)]
        await w.others()
        w.open_gate(gate)
        await asyncio.gather(*asked)
    assert notes.told == {"lost": 1, "again": 1, "hints": 1, "kept": 1}
    assert notes.attempts == {(DEFAULT, "scheduled"): 3}


async def test_plugins_are_timed_once_a_second_at_most(notes):
    """O02: so that it costs nothing that matters."""
    async with world(meter=notes) as w:
        await w.apply(node("n1"))
        for second in range(3):
            for i in range(5):
                await w.place(pod(f"p{second}-{i}"))
            await w.pass_time(1.5)
    assert len(notes.timed) == 3


async def test_vitals_tell_of_requests_pods_and_replicas(notes):
    async with world(meter=notes) as w:
        await w.place(pod("a"), queue=True)
        gate = w.close_gate()
        asked = [asyncio.create_task(w.place(pod(f"p{i}"), queue=True)) for i in range(3)]
        await w.pass_time(1)
        w.open_gate(gate)
        await asyncio.gather(*asked)
        await w.pass_time(1)
        assert notes.last.lag_revisions == 0
        assert sum(notes.last.pending.values()) == 4
        assert notes.last.pending["unschedulable"] == 4
        assert notes.last.inbox == 0


async def test_the_log_is_measured_by_who_compacts_it(notes):
    async with world(meter=notes) as w:
        await w.apply(node("n1"))
        await w.pass_time(11)
        await w.pass_time(1)
        assert notes.last.log_changes == await w.head_revision()


def test_lag_counts_from_when_the_missing_revision_was_heard_of():
    lag = Lag()
    lag.observe(head=5, replica=5, now=10.0)
    assert (lag.revisions(5), lag.seconds(5, 20.0)) == (0, 0.0)
    lag.observe(head=7, replica=5, now=20.0)
    lag.observe(head=9, replica=6, now=21.0)
    assert (lag.revisions(6), lag.seconds(6, 23.0)) == (3, 3.0)
    lag.observe(head=9, replica=7, now=23.0)
    assert (lag.revisions(7), lag.seconds(7, 24.0)) == (2, 1.0)
    assert (lag.revisions(9), lag.seconds(9, 25.0)) == (0, 0.0)
