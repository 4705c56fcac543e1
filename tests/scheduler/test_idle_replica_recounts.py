"""A worker recounts its replicas while nothing is asked, and loads one anew that is wrong."""

import asyncio
import logging
from collections import Counter

import pytest

from service.engine.state.nodes.rank import VETO
from service.model.log.audit_chain import ITSELF
from service.scheduler.maintenance import recounts as idle_replica_recounts
from service.scheduler.maintenance.recounts import IdleRecounts, Pace
from service.scheduler.protocol.intents import ApplyObjects
from tests.builders import node, pod
from tests.scheduler.world import world

STEPS_MAX = 10_000
NODES = 8


class Notes:
    """Remembers what the recounts told."""

    def __init__(self):
        self.told = Counter()
        self.seconds_overdue = 0.0

    def recounted(self, seconds):
        self.told["slices"] += 1

    def round_ended(self):
        self.told["rounds"] += 1

    def mistaken(self, part):
        self.told[part] += 1

    def overdue(self, seconds):
        self.seconds_overdue = seconds


def recounts_of(w, **pace):
    notes = Notes()
    return IdleRecounts(w.schedulers[0], w.clock, notes, Pace(**pace)), notes


def one_round(recounts):
    """Make all steps of a round; return how many these are."""
    recounts.begin()
    return next(number for number in range(STEPS_MAX) if recounts.step())


def replica_of(w):
    return w.schedulers[0].loops["default"].follower.replica


async def fill(w):
    await w.apply(*({"kind": "Node", **node(f"n{n}").allocatable(cpu="10")} for n in range(NODES)))
    for number in range(12):  # one after the other, so that a tree is worth its making
        await w.place(pod(f"a-{number}").request(cpu="1"))


def make_stale(replica):
    """Leave the trees as they were when no node had room, as a forgotten repair would."""
    (rows,) = [each for each in replica.cluster.cached_rows() if each.trees]
    rows.refresh()
    kept = rows.ranks.copy()
    rows.ranks[:] = VETO
    for slot in range(len(kept)):
        for tree in rows.trees:
            tree.repair(slot)
    rows.ranks[:] = kept


def forty(name):
    return [pod(f"{name}-{number}").request(cpu="1") for number in range(40)]


async def test_a_stale_tree_that_refuses_pods_is_found_and_the_replica_loaded_anew(caplog):
    async with world() as w:
        await fill(w)
        recounts, notes = recounts_of(w)
        one_round(recounts)
        assert notes.told == {"rounds": 1}

        await w.place(pod("last").request(cpu="1"))
        wrong = replica_of(w)
        make_stale(wrong)
        refused = await w.place(*forty("b"))
        assert {each.outcome for each in refused.results} == {"Unschedulable"}

        caplog.set_level(logging.ERROR)
        one_round(recounts)
        assert notes.told["tree"] == 1
        (line,) = [each for each in caplog.records if each.levelno == logging.ERROR]
        assert line.getMessage() == "The replica is wrong, and is loaded again."
        assert (line.cluster, line.part) == ("default", "tree")
        placed = await w.place(*forty("c"))
        assert {each.outcome for each in placed.results} == {"Placed"}
        assert replica_of(w) is not wrong

        one_round(recounts)
        assert notes.told == {"rounds": 3, "tree": 1}


async def test_a_replica_that_has_not_changed_is_left_out():
    async with world() as w:
        await fill(w)
        recounts, _ = recounts_of(w)
        assert one_round(recounts) > NODES
        assert one_round(recounts) == 0
        await w.place(pod("b"))
        assert one_round(recounts) > NODES


async def test_it_makes_no_step_while_a_request_waits_for_its_commit():
    async with world() as w:
        await fill(w)
        recounts, notes = recounts_of(w)
        gate = w.close_gate()
        asked = asyncio.create_task(w.place(pod("b")))
        await w.others()
        assert w.store.commits_begun[-1].changes[-1].name == "b"
        recounts.begin()
        assert not any(recounts.step() for _ in range(50))
        assert not notes.told
        w.open_gate(gate)
        await asked
        while not recounts.step():
            pass
        assert notes.told == {"rounds": 1}


@pytest.mark.parametrize("busy", ["default", "other"])
async def test_a_busy_cluster_lets_the_others_go_first(busy):
    async with world() as w:
        await fill(w)
        scheduler = w.schedulers[0]
        await w.store.clusters.create("other", b"{}", ITSELF)
        await scheduler.submit("other", ApplyObjects(manifests=w.parsed(node("n1"))))
        (free,) = {"default", "other"} - {busy}
        wrong = scheduler.loops[free].follower.replica
        wrong.cluster.nodes.pods[0] += 1
        recounts, notes = recounts_of(w)
        gate = w.close_gate()
        more = ApplyObjects(manifests=w.parsed(node("more")))
        asked = asyncio.create_task(scheduler.submit(busy, more))
        await w.others()

        recounts.begin()
        assert not any(recounts.step() for _ in range(STEPS_MAX))
        assert notes.told == {"node": 1}

        w.open_gate(gate)
        await asked
        while not recounts.step():
            pass
        assert notes.told == {"node": 1, "rounds": 1}


async def test_a_cluster_that_is_always_busy_is_told_of_and_keeps_no_other_one_waiting(
    monkeypatch, caplog
):
    """The sum over workers would say that rounds end, as long as they do in one of them."""
    monkeypatch.setattr(idle_replica_recounts, "OVERDUE_SECONDS", 90.0)
    async with world() as w:
        await fill(w)
        scheduler = w.schedulers[0]
        await w.store.clusters.create("other", b"{}", ITSELF)
        await scheduler.submit("other", ApplyObjects(manifests=w.parsed(node("n1"))))
        recounts, notes = recounts_of(w, seconds=30)
        gate = w.close_gate()
        asked = asyncio.create_task(w.place(pod("b")))
        await w.others()

        running = asyncio.create_task(recounts.run())
        await w.pass_time(1)
        assert notes.told["rounds"] == 0
        scheduler.loops["other"].follower.replica.cluster.nodes.pods[0] += 1
        scheduler.loops["other"].follower.replica.cluster.version += 1
        for _ in range(120):
            await w.pass_time(1)
        assert notes.told["node"] == 1
        assert notes.seconds_overdue == pytest.approx(120, abs=5)
        (line,) = [each for each in caplog.records if "always busy" in each.getMessage()]
        assert (line.levelno, line.cluster) == (logging.WARNING, "default")

        w.open_gate(gate)
        await asked
        for _ in range(30):
            await w.pass_time(1)
        assert notes.told["rounds"] >= 1
        assert notes.seconds_overdue == 0
        running.cancel()


async def test_a_replica_that_is_dropped_meanwhile_is_left_to_the_next_round():
    async with world() as w:
        await fill(w)
        recounts, notes = recounts_of(w)
        recounts.begin()
        recounts.step()
        w.schedulers[0].loops["default"].reload("a test")
        await w.place(pod("b"))
        while not recounts.step():
            pass
        assert notes.told == {"rounds": 1}
        assert one_round(recounts) > NODES


@pytest.mark.parametrize("pace", [{"seconds": 0}, {"percent": 0}])
async def test_it_can_be_switched_off(pace):
    async with world() as w:
        await fill(w)
        recounts, notes = recounts_of(w, **pace)
        await recounts.run()
        assert not notes.told


async def test_a_round_begins_every_so_many_seconds():
    async with world() as w:
        await fill(w)
        recounts, notes = recounts_of(w, seconds=30)
        running = asyncio.create_task(recounts.run())
        await w.others()
        for _ in range(29):
            await w.pass_time(1)
        assert notes.told["rounds"] == 1
        await w.pass_time(1)
        assert notes.told["rounds"] == 2
        running.cancel()
