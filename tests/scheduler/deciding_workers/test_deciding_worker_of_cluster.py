"""P19: the requests of a cluster go to the worker that holds its lease; the swap stays what is right."""

import asyncio

import pytest

from service.api.forwarding.retry import AnswerLost, Unreachable, forward
from service.model.core.errors import OutcomeUnknown, StorageUnavailable
from service.scheduler.ownership.cluster_owners import ClusterOwners
from service.scheduler.protocol.limits import Limits
from tests.builders import node, pod
from tests.scheduler.world import StillClock, TroubledStore, world

LEASE_SECONDS = Limits().owner_lease_seconds


class Worker:
    """What one worker knows, with a store and a clock that all share."""

    def __init__(self, store, clock, name, server="host:1", dead=(), still=()):
        self.cluster_owners = ClusterOwners(
            *(store, clock, Limits()),
            server=server,
            own=name,
            lives=lambda each: each not in dead,
            answers=lambda each: each not in still,
        )

    async def home(self):
        """Where it would have a request decided: None is here."""
        found = await self.cluster_owners.elsewhere("default")
        for _ in range(10):
            await asyncio.sleep(0)
        return found


@pytest.fixture
def clock():
    return StillClock()


@pytest.fixture
def store(clock):
    return TroubledStore(clock, None)


async def test_p19_who_is_asked_first_holds_the_lease_and_the_others_learn_it(store, clock):
    first, second = Worker(store, clock, "w1"), Worker(store, clock, "w2")
    assert await first.home() is None
    assert await second.home() == "w1"
    assert second.cluster_owners.is_elsewhere(1)
    assert not first.cluster_owners.is_elsewhere(1)
    assert await first.home() is None
    assert await Worker(store, clock, "w3", server="host:2").home() is None


async def test_p19_all_that_are_asked_at_once_agree(store, clock):
    workers = [Worker(store, clock, f"w{i}") for i in range(4)]
    cluster_owners = await asyncio.gather(*(worker.home() for worker in workers))
    assert cluster_owners == [None, "w0", "w0", "w0"]


async def test_p19_the_lease_is_prolonged_while_the_cluster_is_in_memory(store, clock):
    first, second = Worker(store, clock, "w1"), Worker(store, clock, "w2")
    await first.home()
    for _ in range(10):
        clock.advance(LEASE_SECONDS / 2)
        first.cluster_owners.tick(["default"])
        for _ in range(100):  # others prolong it
            await asyncio.sleep(0)
        assert await second.home() == "w1"


async def test_p19_another_takes_over_once_the_lease_has_ended_or_is_given_back(store, clock):
    first, second, third = (Worker(store, clock, f"w{i}") for i in range(3))
    await first.home()
    assert await second.home() == "w0"
    clock.advance(LEASE_SECONDS)
    assert await second.home() is None
    await second.cluster_owners.close()
    assert await third.home() is None
    # Who did not hear of it goes by what it knew for a third of a lease.
    clock.advance(LEASE_SECONDS / 3)
    await first.home()
    assert await first.home() == "w2"


async def test_p19_the_lease_of_one_that_is_known_to_be_dead_is_as_good_as_free(store, clock):
    dead = set()
    first, second, third = (Worker(store, clock, f"w{i}", dead=dead) for i in range(3))
    await first.home()
    assert await second.home() == "w0"
    second.cluster_owners.not_reached("w0")
    assert await second.home() == "w0", "it stands still, perhaps"
    dead.add("w0")
    assert not second.cluster_owners.is_elsewhere(1), "what nobody does can be done here"
    assert await third.home() is None
    second.cluster_owners.not_reached("w0")
    assert await second.home() == "w2"


async def test_p19_the_first_that_notices_a_worker_that_stands_still_takes_its_place(store, clock):
    still = set()
    first, second, third = (Worker(store, clock, f"w{i}", still=still) for i in range(3))
    assert (await first.home(), await second.home(), await third.home()) == (None, "w0", "w0")
    still.add("w0")
    for each in (second, third):
        each.cluster_owners.not_reached("w0")
    assert await asyncio.gather(second.home(), third.home()) == [None, "w1"]
    # It goes on, finds that another has its cluster, and tells so whoever does not know it yet.
    clock.advance(LEASE_SECONDS / 2)
    await first.home()
    assert await first.home() == first.cluster_owners.passed_to("default") == "w1"


async def test_p19_two_that_only_do_not_hear_each_other_do_not_take_a_cluster_back_at_once(
    store, clock
):
    first = Worker(store, clock, "w0", still={"w1"})
    second = Worker(store, clock, "w1", still={"w0"})
    assert (await first.home(), await second.home()) == (None, None)
    clock.advance(LEASE_SECONDS / 2)
    await first.home()
    first.cluster_owners.not_reached("w1")
    assert await first.home() == "w1"
    for _ in range(3):
        clock.advance(LEASE_SECONDS / 3 + 1)
        assert await second.home() is None
        await first.home()
        first.cluster_owners.not_reached("w1")
    assert await first.home() is None


async def test_p19_without_the_database_what_was_known_goes_on(store, clock, monkeypatch):
    first, second = Worker(store, clock, "w1"), Worker(store, clock, "w2")
    await first.home()
    await second.home()

    async def unavailable(*_):
        raise StorageUnavailable("No connection.")

    monkeypatch.setattr(store.leases, "claim", unavailable)
    for _ in range(3):
        clock.advance(LEASE_SECONDS)
        assert await second.home() == "w1"
    assert await Worker(store, clock, "w3").home() is None


async def test_p19_an_unknown_cluster_is_nobodys_and_is_forgotten(store, clock):
    worker = Worker(store, clock, "w1")
    await worker.home()
    await store.clusters.delete(1)
    clock.advance(LEASE_SECONDS)
    assert await worker.home() is None
    worker.cluster_owners.tick([])
    assert not worker.cluster_owners.is_elsewhere(1)


async def test_p19_pending_pods_are_placed_where_the_requests_are_decided():
    """Or else the two would race for the head in normal operation."""
    known = {}

    def with_homes(w, number):
        known[number] = ClusterOwners(w.store, w.clock, Limits(), server="s", own=f"w{number}")
        return {"cluster_owners": known[number]} if number else {}

    async with world(workers=2, apart=with_homes) as w:
        elsewhere, own = known[0], known[1]
        assert await elsewhere.elsewhere("default") is None
        await w.place(pod("warm"), worker=1, dry_run=True)
        assert await own.elsewhere("default") == "w0"
        (queued,) = (await w.place(pod("p"), worker=1, queue=True)).results
        assert queued.outcome == "Queued"
        await w.apply(node("n"), worker=1)
        for _ in range(8):
            await w.pass_time(0.25)
        # Worker 1 has the pod in its queue, but leaves it to the cluster's home.
        assert await w.nodes_of_pods() == {"p": None}
        assert await w.ask(w.placing(pod("warm"), dry_run=True), worker=0)
        for _ in range(8):
            await w.pass_time(0.25)
        assert await w.nodes_of_pods() == {"p": "n"}


# What is done when an answer cannot be had


class Reply:
    def __init__(self, text, *, refused=False):
        self.text, self.refused = text, refused


class OnePeer:
    """Answers, or raises, what a test says."""

    def __init__(self, outcome):
        self.outcome = outcome

    async def ask(self, holder, request, repeat):
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


async def answered(outcome, repeat, here):
    """The answer's text, and whether the request was decided here."""
    decided = []

    async def decide():
        decided.append(True)
        return here

    reply = await forward(OnePeer(outcome), "w1", "request", repeat, decide)
    return reply.text, bool(decided)


@pytest.mark.parametrize("repeat", ["Safe", "Keyed", "Never"])
async def test_p19_an_answer_is_passed_on_and_who_cannot_be_reached_is_done_without(repeat):
    assert await answered(Reply("there"), repeat, Reply("here")) == ("there", False)
    refused = Reply("refused there", refused=True)
    assert await answered(refused, repeat, Reply("here")) == ("refused there", False)
    assert await answered(Unreachable(), repeat, Reply("here")) == ("here", True)
    refused = Reply("refused here", refused=True)
    assert await answered(Unreachable(), repeat, refused) == ("refused here", True)


async def test_p19_a_lost_answer_is_never_made_up_for_by_doing_it_twice():
    """P4, P11: what may have been done already is done again under its key only."""
    with pytest.raises(OutcomeUnknown):
        await answered(AnswerLost(), "Never", Reply("here"))
    assert await answered(AnswerLost(), "Keyed", Reply("here")) == ("here", True)
    assert await answered(AnswerLost(), "Safe", Reply("here")) == ("here", True)


async def test_p19_a_refusal_after_a_lost_answer_is_no_verdict():
    """The other worker may still commit what is refused here: its state may be another one."""
    with pytest.raises(OutcomeUnknown):
        await answered(AnswerLost(), "Keyed", Reply("refused", refused=True))
    refused = Reply("refused", refused=True)
    assert await answered(AnswerLost(), "Safe", refused) == ("refused", True)
