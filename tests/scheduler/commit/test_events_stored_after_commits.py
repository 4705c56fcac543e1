"""Events are stored beside the commits: audits in them, the rest soon after, never more than fits."""

from collections import Counter

from service.model.core.errors import StorageUnavailable
from service.model.log.events import Event
from service.scheduler.commit.event_recorder import EventRecorder
from service.scheduler.commit.metrics import NoMeter
from service.scheduler.protocol.intents import BindPod, EvictPod
from service.scheduler.protocol.limits import Limits
from tests.builders import node, pod
from tests.scheduler.world import CountedIds, StillClock, all_of, world
from tests.support.memory_store.store import MemoryStore


def told(store, reason=None):
    events = store.states[1].events.values()
    return sorted((e.pod, e.reason, e.count) for e in events if reason in (None, e.reason))


def event(name, *, reason="Scheduled", message="on n1", last="2026-01-01T00:00:00Z"):
    return Event(
        namespace="shop",
        pod=name,
        uid=f"uid of {name}",
        type="Normal",
        reason=reason,
        message=message,
        revision=7,
        first=last,
        last=last,
    )


class Dropped(NoMeter):
    def __init__(self):
        self.events = 0

    def events_dropped(self, events):
        self.events += events


class Recording:
    """A recorder over a store of its own that may be away."""

    def __init__(self, **limits):
        self.clock = StillClock()
        self.store = MemoryStore(self.clock.now, CountedIds(0).commit_id)
        self.dropped = Dropped()
        self.recorder = EventRecorder(self.store, self.clock, Limits(**limits), self.dropped)

    def take_the_database_away(self, monkeypatch):
        async def fail(*_):
            raise StorageUnavailable("No connection.")

        monkeypatch.setattr(self.store.events, "add", fail)


async def test_audits_are_in_their_commit_and_the_rest_is_soon_after():
    async with world() as w:
        await w.apply(node("n1"), pod("a").node_selector(no="such"))
        await w.place(pod("b"))
        await w.ask(BindPod(namespace="default", name="a", node_name="n1", force=True))
        assert told(w.store) == [("a", "BindingForced", 1)]
        await w.pass_time(1)
        assert told(w.store, "Scheduled") == [("a", "Scheduled", 1), ("b", "Scheduled", 1)]


async def test_what_was_undone_is_not_told():
    """P9: of several attempts to commit a placement, one is told of."""
    async with world(workers=2, seed=3) as w:
        await w.apply(node("n1"), node("n2"))
        await all_of(*(w.place(pod(f"p{i}"), worker=i % 2) for i in range(8)))
        await w.pass_time(1)
        assert told(w.store) == [(f"p{i}", "Scheduled", 1) for i in range(8)]


async def test_p4_an_unknown_outcome_tells_once():
    async with world() as w:
        await w.apply(node("n1"))
        await w.place(pod("a"))
        w.store.trouble = ["lose the answer"]
        await w.ask(EvictPod(namespace="default", name="a"))
        assert told(w.store, "Evicted") == [("a", "Evicted", 1)]


async def test_equal_events_are_one_that_counts():
    it = Recording()
    it.recorder.record(1, [event("a"), event("b"), event("a", last="2026-01-01T00:00:01Z")])
    await it.recorder.flush()
    it.recorder.record(1, [event("a", last="2026-01-01T00:00:09Z")])
    await it.recorder.flush()
    assert told(it.store) == [("a", "Scheduled", 3), ("b", "Scheduled", 1)]
    (a,) = (e for e in it.store.states[1].events.values() if e.pod == "a")
    assert (a.first, a.last) == ("2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z")


async def test_too_many_of_a_reason_are_dropped_and_counted():
    it = Recording(events_burst=10, events_per_second=2)
    it.recorder.record(1, [event(f"p{i}") for i in range(15)])
    it.recorder.record(1, [event("p0", reason="FailedScheduling")])
    assert it.dropped.events == 5
    it.clock.advance(2)
    it.recorder.record(1, [event(f"q{i}") for i in range(15)])
    assert it.dropped.events == 5 + 11
    await it.recorder.flush()
    counted = Counter(reason for _, reason, _ in told(it.store))
    assert counted == {"Scheduled": 14, "FailedScheduling": 1}


async def test_without_a_database_events_wait_but_not_without_bound(monkeypatch):
    it = Recording(events_burst=10, events_per_second=1000)
    with monkeypatch.context() as away:
        it.take_the_database_away(away)
        for number in range(10):
            it.recorder.record(1, [event(f"p{number}-{i}") for i in range(5)])
            await it.recorder.flush()
            it.clock.advance(1)
    assert it.dropped.events == 50 - 20
    await it.recorder.flush()
    assert len(told(it.store)) == 20
    assert ("p9-4", "Scheduled", 1) in told(it.store)


async def test_old_events_and_too_many_of_a_reason_are_swept():
    limits = Limits(events_keep_seconds=100, events_keep=3)
    async with world(limits=limits) as w:
        await w.apply(node("n1"))
        await w.place(*(pod(f"p{i}") for i in range(5)))
        await w.ask(EvictPod(namespace="default", name="p0"))
        await w.pass_time(1)
        assert len(told(w.store)) == 6
        await w.pass_time(10)
        await w.others(1000)
        assert len(told(w.store, "Scheduled")) == 3
        assert told(w.store, "Evicted") == [("p0", "Evicted", 1)]
        w.clock.advance(101)
        await w.others(1000)
        await w.pass_time(10)
        await w.others(1000)
        assert told(w.store) == []
