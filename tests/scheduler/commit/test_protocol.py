"""The commit protocol, rule by rule. Each test names its rule and fails without it."""

import asyncio

import pytest

from service.model.core.errors import OutcomeUnknown, Overloaded, StorageUnavailable
from service.model.log.commit import RESTORE_LIFT_REVISIONS, CommitRequest, Head
from service.model.log.results import Behind
from service.scheduler.protocol.intents import (
    CommitPlan,
    DeleteObject,
    ExplainPod,
    MakePlan,
    PutObject,
)
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.plans import Place
from tests.builders import matching, node, pod
from tests.scheduler.world import StillClock, World, all_of, world


def one_per_zone(name):
    return pod(name).label(app="x").require_anti_affinity("zone", matching(app="x"))


def zoned(*zones):
    return [node(f"n-{zone}").label(zone=zone) for zone in zones]


class HeldClock:
    """A clock at which whoever lets others run can be made to stand still."""

    def __init__(self, clock):
        self._clock = clock
        self._gate = None
        self.held = asyncio.Event()
        self.now, self.monotonic = clock.now, clock.monotonic

    def hold(self):
        self._gate = asyncio.Event()
        return self._gate

    async def sleep(self, seconds):
        if seconds == 0 and self._gate is not None:
            self.held.set()
            await self._gate.wait()
        await self._clock.sleep(seconds)


async def test_p1_requests_that_gather_while_a_commit_runs_share_the_next_one():
    async with world() as w:
        await w.apply(*zoned("a"))
        gate = w.close_gate()
        asked = asyncio.gather(*(w.place(pod(f"p{i}")) for i in range(20)))
        await w.others()
        begun = len(w.store.commits_begun)
        w.open_gate(gate)
        await asked
        # One was on its way; all others went into at most two more.
        assert len(w.store.commits_begun) - begun <= 2


async def test_p2_an_object_changed_several_times_in_a_batch_is_one_row():
    async with world() as w:
        await w.apply(node("first"))
        gate = w.close_gate()
        held = asyncio.create_task(w.apply(node("n0")))
        await w.others()
        calls = asyncio.gather(
            w.apply(node("n")),
            w.apply(node("n").label(a="1")),
            w.ask(DeleteObject(kind="Node", name="n")),
            w.apply(node("n").label(a="2")),
        )
        await w.others()
        w.open_gate(gate)
        await held
        await calls
        assert len(w.store.commits_begun[-1].changes) == 4
        stored = await w.stored("Node", "", "n")
        assert stored["metadata"]["labels"] == {"a": "2"}


def lose(w: World, *nodes: str, head: Head) -> None:
    """The database forgets the last commits, each of which made a node."""
    state = w.store.states[1]
    for name in nodes:
        state.changes.pop()
        state.commits.pop()
        del state.objects[next(key for key in state.objects if key.name == name)]
    state.head = head


async def test_p3_a_history_that_grew_to_the_same_revision_elsewhere_is_loaded_anew():
    async with world(workers=2) as w:
        await w.apply(node("n1"))
        other = w.schedulers[1]
        await other.submit("default", PutObject(manifest=w.parsed(node("n1"))[0]))
        # As after a restore: the same revisions, with another commit at the end.
        present = w.store.states[1].head
        await w.apply(node("lost"), worker=0)
        lose(w, "lost", head=present)
        await w.apply(node("instead"), worker=1)
        answer = await w.place(pod("p").on("lost"), worker=0)
        assert answer.results[0].outcome == "Unschedulable"
        assert (await w.place(pod("q").on("instead"), worker=0)).results[0].outcome == "Placed"


async def test_p3_an_answer_without_changes_is_not_of_a_history_that_is_lost():
    """The lost history ended at the same revision as the one that there is."""
    async with world(workers=2) as w:
        await w.apply(node("n1"))
        await w.place(pod("warm"), worker=1, dry_run=True)
        present = w.store.states[1].head
        await w.apply(node("lost"), worker=0)
        lose(w, "lost", head=present)
        await w.apply(node("instead"), worker=1)
        answer = await w.place(pod("p").on("lost"), worker=0, dry_run=True)
        assert answer.results[0].outcome == "Unschedulable"


@pytest.mark.parametrize("trouble", ["lose the answer", "hold"])
async def test_p4_an_unknown_outcome_is_settled_before_anything_is_answered(trouble):
    async with world() as w:
        await w.apply(*zoned("a", "b"))
        w.store.trouble.append(trouble)
        first = await w.place(one_per_zone("p0"))
        assert first.results[0].outcome == "Placed"
        assert w.store.calls["settle_unknown"] == 1
        # A statement that arrives late finds another tip and changes nothing.
        await w.store.release_held()
        puts = [change for change in w.log() if change.kind == "Pod"]
        assert len(puts) == 1
        assert (await w.place(one_per_zone("p1"))).results[0].outcome == "Placed"
        ids = [request.commit_id for request in w.store.commits_begun]
        assert len(set(ids)) == len(ids)


async def test_p4_what_cannot_be_settled_is_answered_as_unknown():
    limits = Limits(settle_attempts_max=2)
    async with world(limits=limits) as w:
        await w.apply(*zoned("a"))
        w.store.trouble.append("hold")

        async def unsettled(cluster_id, request):
            raise OutcomeUnknown("The log was compacted.")

        w.store.log.settle_unknown = unsettled
        asked = asyncio.create_task(w.place(pod("p")))
        for _ in range(4):
            await w.pass_time(limits.settle_pause_seconds)
        with pytest.raises(OutcomeUnknown):
            await asked
        # Its statement was late, not lost; whoever comes next sees it.
        await w.store.release_held()
        assert (await w.place(pod("p"))).results[0].outcome == "AlreadyPlaced"


async def test_p4_what_cannot_be_settled_at_once_is_settled_later():
    limits = Limits(settle_attempts_max=2)
    async with world(limits=limits) as w:
        await w.apply(*zoned("a"))
        w.store.trouble.append("hold")
        settle, failures = w.store.log.settle_unknown, [StorageUnavailable("No connection.")]

        async def late(cluster_id, request):
            if failures:
                raise failures.pop()
            return await settle(cluster_id, request)

        w.store.log.settle_unknown = late
        asked = asyncio.create_task(w.place(pod("p")))
        for _ in range(2):
            await w.pass_time(limits.settle_pause_seconds)
        async with asyncio.timeout(10):
            assert (await asked).results[0].outcome == "Placed"


class Rival:
    """Whenever worker 0 tries to commit, worker 1 was there before."""

    def __init__(self, w):
        self.races = True
        self.raced = 0
        self._world, self._commit = w, w.store.log.commit
        w.store.log.commit = self._race

    async def _race(self, cluster_id: int, request: CommitRequest):
        if self.races and request.commit_id.fields[0] == 1:
            self.raced += 1
            await self._world.place(pod(f"faster-{self.raced}"), worker=1)
        return await self._commit(cluster_id, request)


async def test_p6_who_lost_three_races_locks_the_head_first():
    async with world(workers=2) as w:
        await w.apply(*zoned("a"))
        rival = Rival(w)
        answer = await w.place(pod("p"), worker=0)
        assert answer.results[0].outcome == "Placed"
        assert answer.attempts == 4
        assert (rival.raced, w.store.calls["commit_locked"]) == (3, 1)


async def test_p6_who_lost_most_of_its_races_locks_after_the_first_that_it_loses():
    async with world(workers=2) as w:
        await w.apply(*zoned("a"))
        rival = Rival(w)
        attempts = [(await w.place(pod(f"p{i}"), worker=0)).attempts for i in range(6)]
        assert attempts == [4, 4, 2, 2, 2, 2]
        rival.races = False
        for i in range(8):
            assert (await w.place(pod(f"alone-{i}"), worker=0)).attempts == 1
        rival.races = True
        assert (await w.place(pod("again"), worker=0)).attempts == 4


async def test_p6_nobody_who_found_no_room_under_the_lock_begins_to_lose_races_anew():
    """Each round of the lock has time for one request; those behind it have lost as often."""
    async with world(workers=2, limits=Limits(locked_slice_seconds=0)) as w:
        await w.apply(*zoned("a"))
        rival = Rival(w)
        answers = await asyncio.gather(*(w.place(pod(f"p{i}"), worker=0) for i in range(5)))
        assert [answer.attempts for answer in answers] == [4] * 5
        assert (rival.raced, w.store.calls["commit_locked"]) == (3, 5)


class SlowUnderLock(StillClock):
    """A clock by which every look at it takes a while, as soon as a head was locked."""

    def __init__(self, w):
        super().__init__()
        self._world = w

    def monotonic(self):
        self.seconds += self._world.store.calls["commit_locked"]
        return self.seconds


async def test_p6_a_request_that_would_outlast_the_lock_is_refused_and_leaves_nothing():
    """PostgreSQL would end the transaction, and the request would lose every race for ever."""

    def slow(w, number):
        return {"clock": SlowUnderLock(w)} if number == 0 else {}

    async with world(workers=2, apart=slow) as w:
        await w.apply(*zoned("a"))
        rival = Rival(w)
        with pytest.raises(Overloaded):
            await w.place(*(pod(f"p{i}") for i in range(100)), worker=0)
        assert w.store.calls["commit_locked"] == 1
        rival.races = False
        assert (await w.place(pod("small"), worker=0)).results[0].outcome == "Placed"
        assert set(await w.nodes_of_pods()) == {"small", "faster-1", "faster-2", "faster-3"}
        w.store.calls["commit_locked"] = 0
        await w.assert_replicas_agree()


async def test_p6_who_is_outrun_under_the_lock_tries_without_it_before_locking_again():
    async with world(workers=2) as w:
        await w.apply(*zoned("a"))
        commit, commit_locked = w.store.log.commit, w.store.log.commit_locked
        tried = []

        async def racing(cluster_id: int, request: CommitRequest):
            if request.commit_id.fields[0] == 1:
                tried.append("swap")
                await w.place(pod(f"faster-{len(tried)}"), worker=1)
            return await commit(cluster_id, request)

        async def outrun(*arguments):
            tried.append("lock")
            if tried.count("lock") == 1:
                return Behind(await w.store.log.head(1))
            return await commit_locked(*arguments)

        w.store.log.commit, w.store.log.commit_locked = racing, outrun
        assert (await w.place(pod("p"), worker=0)).results[0].outcome == "Placed"
        assert tried == ["swap", "swap", "swap", "lock", "swap", "lock"]


async def test_p9_while_one_worker_plans_another_commits_and_the_plan_is_decided_again():
    """Planning holds no lock: worker 0 stands still in the middle of it."""
    planners = {}

    def holding(w, number):
        planners[number] = HeldClock(w.clock)
        return {"clock": planners[number]} if number == 0 else {}

    async with world(workers=2, limits=Limits(slice_seconds=0), apart=holding) as w:
        planner = planners[0]
        await w.apply(*zoned("a", "b"), worker=0)
        gate = planner.hold()
        many = [one_per_zone("p"), *(pod(f"m{i}") for i in range(20))]
        planning = asyncio.create_task(w.place(*many, worker=0))
        await planner.held.wait()

        quick = [await w.place(one_per_zone(f"q{i}"), worker=1) for i in range(2)]
        assert [each.results[0].outcome for each in quick] == ["Placed"] * 2
        assert not planning.done()
        gate.set()

        answer = await planning
        assert answer.attempts == 2
        outcomes = [each.outcome for each in answer.results]
        assert outcomes == ["Unschedulable", *["Placed"] * 20]
        await w.assert_replicas_agree()


async def test_p7_the_next_batch_is_decided_on_top_of_the_one_in_flight():
    async with world() as w:
        await w.apply(*zoned("a", "b"))
        gate = w.close_gate()
        first = asyncio.create_task(w.place(one_per_zone("p0")))
        await w.others()
        second = asyncio.create_task(w.place(one_per_zone("p1")))
        await w.others()
        assert not first.done()
        w.open_gate(gate)
        results = [(await each).results[0] for each in (first, second)]
        assert len({each.node_name for each in results}) == 2
        # Decided on the tentative state of the first, and not decided again.
        assert results[1].planned_revision == results[0].planned_revision + 1
        assert (await second).attempts == 1


async def test_p7_committed_answers_do_not_wait_for_a_long_decision_on_top_of_them():
    async with world(limits=Limits(slice_seconds=0)) as w:
        await w.apply(*zoned("a"))
        gate = w.close_gate()
        first = asyncio.create_task(w.place(pod("p")))
        await w.others()
        many = [pod(f"m{i}") for i in range(800)]
        long = asyncio.create_task(w.place(*many))
        await w.others(10)
        w.open_gate(gate)
        await first
        assert not long.done()
        assert len(await w.nodes_of_pods()) == 1
        assert len((await long).results) == 800
        await w.assert_replicas_agree()


async def test_p7_if_a_batch_fails_the_one_on_top_is_undone_too_and_both_are_decided_in_order():
    async with world(workers=2) as w:
        await w.apply(*zoned("a", "b"))
        await w.place(pod("warm"), worker=1)
        gate = w.close_gate()
        first = asyncio.create_task(w.place(one_per_zone("p0")))
        await w.others()
        second = asyncio.create_task(w.place(one_per_zone("p1")))
        await w.others()
        w.store.gate = None
        (rival,) = (await w.place(one_per_zone("rival"), worker=1)).results
        # The commit that waited at the gate finds the rival's before it.
        w.open_gate(gate)
        one, two = (await first).results[0], (await second).results[0]
        assert (await first).attempts == 2
        assert one.outcome == "Placed"
        assert one.node_name != rival.node_name
        # There is no third zone: on the undone state the second would have had one.
        assert two.outcome == "Unschedulable"


async def test_p8_a_refusal_is_not_answered_on_uncommitted_ground():
    async with world(workers=2) as w:
        await w.apply(*zoned("a"))
        await w.place(pod("warm"), worker=1)
        gate = w.close_gate()
        first = asyncio.create_task(w.place(one_per_zone("p0")))
        await w.others()
        refused = asyncio.create_task(w.place(one_per_zone("p1")))
        told = asyncio.create_task(w.ask(ExplainPod(namespace="default", name="p0")))
        await w.others()
        # Decided already, but `p0` is not committed.
        assert not refused.done()
        assert not told.done()
        w.open_gate(gate)
        assert (await first).results[0].outcome == "Placed"
        assert (await refused).results[0].outcome == "Unschedulable"
        assert (await told).explanation.feasible == ["n-a"]


async def test_p8_what_rested_on_a_failed_commit_is_decided_again():
    async with world() as w:
        await w.apply(*zoned("a"))
        gate = w.close_gate()
        w.store.trouble.append("refuse")
        first = asyncio.create_task(w.place(one_per_zone("p0")))
        await w.others()
        second = asyncio.create_task(w.place(one_per_zone("p1")))
        await w.others()
        w.open_gate(gate)
        with pytest.raises(StorageUnavailable):
            await first
        assert (await second).results[0].outcome == "Placed"


async def test_p8_an_answer_without_changes_looks_at_the_head_after_it_was_asked():
    async with world(workers=2) as w:
        await w.apply(*zoned("a"))
        await w.place(pod("warm"), worker=1)
        await w.place(one_per_zone("p0"), worker=0)
        # Worker 1 has not heard of p0, yet whoever asks it after p0 was answered must not
        # be told that there is room.
        answer = await w.place(one_per_zone("p1"), worker=1, dry_run=True)
        assert answer.results[0].outcome == "Unschedulable"
        assert answer.revision == await w.head_revision()


async def test_p9_the_node_chosen_before_is_kept_if_it_still_fits():
    async with world(workers=2) as w:
        await w.apply(*(node(f"n{i}") for i in range(10)))
        await w.place(pod("warm"), worker=1)
        (dry,) = (await w.place(pod("p"), worker=0, dry_run=True)).results
        gate = w.close_gate()
        asked = asyncio.create_task(w.place(pod("p"), worker=0))
        await w.others()
        w.store.gate = None
        # Another node becomes the better one while the first commit is held.
        better = node("better").allocatable(cpu="64", memory="256Gi", pods="500")
        await w.apply(better, worker=1)
        w.open_gate(gate)
        answer = await asked
        assert answer.attempts == 2
        assert answer.results[0].node_name == dry.node_name
        (fresh,) = (await w.place(pod("q"), worker=0)).results
        assert fresh.node_name == "better"


async def test_p9_a_dry_run_that_is_decided_again_is_answered_as_one_that_comes_now():
    """Its first decision was on a state that had passed; the node of that is not kept."""
    async with world(workers=2) as w:
        await w.apply(node("n1"))
        await w.place(pod("warm"), worker=1)
        better = node("better").allocatable(cpu="64", memory="256Gi", pods="500")
        await w.apply(better, worker=0)
        behind = await w.place(pod("p"), worker=1, dry_run=True)
        assert behind.attempts == 2
        now = await w.place(pod("p"), worker=0, dry_run=True)
        assert now.results[0].node_name == "better"
        assert behind.results == now.results


@pytest.mark.parametrize("kind", ["plans", "commits"])
async def test_p9_a_plan_that_is_made_again_is_made_as_one_that_comes_now(kind):
    async with world(workers=2) as w:
        await w.apply(node("n1"))
        await w.place(pod("warm"), worker=1)
        better = node("better").allocatable(cpu="64", memory="256Gi", pods="500")
        await w.apply(better, worker=0)
        plan = MakePlan(goal=Place(pods=w.placing(pod("p")).pods))
        planned = await w.ask(plan if kind == "plans" else CommitPlan(plan=plan), worker=1)
        assert [each.to for each in planned.steps] == ["better"]
        if kind == "commits":
            assert (await w.stored("Pod", "default", "p"))["spec"]["nodeName"] == "better"


async def test_p9_a_lost_batch_is_decided_again_in_its_order():
    async with world(workers=2) as w:
        await w.apply(*zoned("a", "b", "c"))
        await w.place(pod("warm"), worker=1)
        first = w.close_gate()
        held = asyncio.create_task(w.place(pod("held"), worker=0))
        await w.others()
        batch = [asyncio.create_task(w.place(one_per_zone(f"p{i}"), worker=0)) for i in range(4)]
        await w.others()
        w.store.gate = None
        await w.place(one_per_zone("rival"), worker=1)
        w.open_gate(first)
        await held
        outcomes = [(await each).results[0].outcome for each in batch]
        assert outcomes == ["Placed", "Placed", "Unschedulable", "Unschedulable"]


async def test_p9_a_node_made_anew_under_the_same_name_is_no_hint():
    async with world(workers=2) as w:
        await w.apply(node("n1"), node("n2").allocatable(cpu="1"))
        await w.place(pod("warm").on("n1"), worker=1)
        gate = w.close_gate()
        asked = asyncio.create_task(w.place(pod("p"), worker=0))
        await w.others()
        w.store.gate = None
        await w.ask(DeleteObject(kind="Node", name="n1"), worker=1)
        await w.apply(node("n1").allocatable(cpu="1m", memory="1"), worker=1)
        w.open_gate(gate)
        assert (await asked).results[0].node_name == "n2"


async def test_p9_the_log_keeps_when_a_commit_was_first_planned():
    async with world(workers=2) as w:
        await w.apply(*zoned("a"))
        await w.place(pod("warm"), worker=1)
        await w.pass_time(1)
        planned = await w.head_revision()
        gate = w.close_gate()
        asked = asyncio.create_task(w.place(pod("p"), worker=0))
        await w.others()
        w.store.gate = None
        await w.apply(node("n2"), worker=1)
        w.open_gate(gate)
        await asked
        assert w.store.states[1].commits[-1].planned_at == planned


async def test_p3_what_was_planned_on_a_lost_history_counts_from_the_one_that_is_left():
    async with world() as w:
        await w.apply(node("n1"))
        present = w.store.states[1].head
        lost = ("lost-1", "lost-2", "lost-3")
        for name in lost:
            await w.apply(node(name))
        gate = w.close_gate()
        asked = asyncio.create_task(w.place(pod("p")))
        await w.others()
        w.store.gate = None
        lose(w, *lost, head=present)
        w.open_gate(gate)
        assert (await asked).results[0].node_name == "n1"
        commit = w.store.states[1].commits[-1]
        assert commit.planned_at == commit.first - 1
        assert commit.first == present.revision + RESTORE_LIFT_REVISIONS + 1


async def test_p10_a_group_is_checked_again_as_a_whole():
    async with world(workers=2) as w:
        await w.apply(*zoned("a", "b", "c"))
        await w.place(pod("warm"), worker=1)
        gate = w.close_gate()
        members = [one_per_zone("g0"), one_per_zone("g1")]
        asked = asyncio.create_task(w.place(*members, worker=0, all_or_nothing=True))
        await w.others()
        w.store.gate = None
        await w.place(one_per_zone("r0"), one_per_zone("r1"), worker=1)
        w.open_gate(gate)
        answer = await asked
        assert {each.outcome for each in answer.results} == {"Unschedulable", "GroupRefused"}
        assert answer.committed is False
        assert set(await w.nodes_of_pods()) == {"warm", "r0", "r1"}


async def test_p12_a_replica_behind_the_floor_loads_anew():
    async with world(workers=2) as w:
        await w.apply(*zoned("a"))
        await w.place(pod("warm"), worker=1)
        for index in range(30):
            await w.apply(node(f"n{index}"), worker=0)
        w.clock.advance(0.001)
        await w.store.housekeeping.compact(1, keep_changes=0, keep_seconds=0)
        loads = w.store.calls["load"]
        assert (await w.place(pod("p").on("n29"), worker=1)).results[0].outcome == "Placed"
        assert w.store.calls["load"] == loads + 1


async def test_a_full_inbox_refuses_and_a_late_request_gives_up():
    limits = Limits(inbox_requests_max=3, request_seconds_max=5, batch_requests_max=1)
    async with world(limits=limits) as w:
        await w.apply(*zoned("a"))
        gate = w.close_gate()
        asked = []
        for index in range(5):
            # One is on its way, one decided, three wait.
            asked.append(asyncio.create_task(w.place(pod(f"p{index}"))))
            await w.others()
        with pytest.raises(Overloaded):
            await w.place(pod("refused"))
        w.clock.advance(6)
        w.open_gate(gate)
        done = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(each).__name__ for each in done[:2]] == ["PlacementAnswer"] * 2
        assert [type(each) for each in done[2:]] == [Overloaded] * 3


async def test_idle_workers_follow_the_log_without_being_asked():
    async with world(workers=2) as w:
        await w.apply(*zoned("a"))
        await w.place(pod("warm"), worker=1)
        await w.assert_replicas_agree()
        for index in range(5):
            await w.apply(node(f"n{index}"), worker=0)
        await w.assert_replicas_agree()
        reads = w.store.calls["read_log"]
        await w.pass_time(10)
        # Nothing new: one look at the heads for all clusters is enough.
        assert w.store.calls["read_log"] == reads


async def test_a_cluster_that_nobody_asks_for_is_dropped_from_memory():
    async with world(limits=Limits(idle_seconds_max=60)) as w:
        await w.apply(*zoned("a"))
        for _ in range(62):
            await w.pass_time(1)
        assert w.schedulers[0].replicas() == {}
        assert (await w.place(pod("p"))).results[0].outcome == "Placed"


async def test_a_cancelled_caller_cancels_no_commit_and_no_loop():
    async with world() as w:
        await w.apply(*zoned("a"))
        gate = w.close_gate()
        asked = asyncio.create_task(w.place(pod("p")))
        await w.others()
        asked.cancel()
        await w.others()
        w.open_gate(gate)
        assert (await w.place(pod("q"))).results[0].outcome == "Placed"
        assert set(await w.nodes_of_pods()) == {"p", "q"}


async def test_who_comes_after_a_failed_load_is_served():
    async with world() as w:
        await w.apply(*zoned("a"))
        w.schedulers[0].loops["default"].follower.drop("a test wants it")
        read_objects = w.store.objects.read

        async def unavailable(*arguments):
            raise StorageUnavailable("No connection.")

        w.store.objects.read = unavailable
        with pytest.raises(StorageUnavailable):
            await w.place(pod("p"))
        w.store.objects.read = read_objects
        assert (await w.place(pod("p"))).results[0].outcome == "Placed"


async def test_p13_a_load_that_fails_goes_on_where_it_was_when_somebody_asks_again():
    async with world(limits=Limits(load_rows=1)) as w:
        await w.apply(*zoned("a", "b"))
        w.schedulers[0].loops["default"].follower.drop("a test wants it")
        read_objects, begins = w.store.objects.read, []

        async def failing_once(cluster_id, after, limit):
            begins.append(after)
            if len(begins) == 2:
                raise StorageUnavailable("No connection.")
            return await read_objects(cluster_id, after, limit)

        w.store.objects.read = failing_once
        with pytest.raises(StorageUnavailable):
            await w.place(pod("p"))
        assert (await w.place(pod("p"))).results[0].outcome == "Placed"
        assert begins.count(None) == 1


async def test_without_storage_only_what_tells_is_answered():
    async with world() as w:
        await w.apply(*zoned("a"))
        await w.place(pod("p"))

        async def unavailable(*arguments):
            raise StorageUnavailable("No connection.")

        for name in ("head", "commit", "read"):
            setattr(w.store.log, name, unavailable)
        told = await w.ask(ExplainPod(namespace="default", name="p"))
        assert told.explanation.feasible == ["n-a"]
        assert (await w.place(pod("q"), dry_run=True)).results[0].outcome == "Placed"
        with pytest.raises(StorageUnavailable):
            await w.place(pod("q"))
        # What that one had changed is undone, whether or not the log can be read.
        assert (await w.place(pod("q"), dry_run=True)).results[0].outcome == "Placed"


async def test_a_bug_in_a_decision_costs_one_request_and_the_replica(monkeypatch):
    async with world() as w:
        await w.apply(*zoned("a"))
        replica = w.schedulers[0].loops["default"].follower.replica
        monkeypatch.setattr(replica, "put", _broken)
        refused, placed = await asyncio.gather(
            w.place(pod("p")), w.place(pod("q")), return_exceptions=True
        )
        assert isinstance(refused, ZeroDivisionError)
        assert placed.results[0].outcome == "Placed"
        await w.assert_replicas_agree()


def _broken(manifest):
    raise ZeroDivisionError


@pytest.mark.parametrize("seed", range(8))
async def test_races_for_the_first_pod_end_in_one_domain(seed):
    """E04: many workers, many first pods; whoever loses finds the winner's domain."""
    async with world(workers=4, seed=seed) as w:
        await w.apply(*(node(f"n{i}").label(zone=f"z{i % 4}") for i in range(8)))
        together = [
            pod(f"p{i}").label(app="s").require_affinity("zone", matching(app="s"))
            for i in range(12)
        ]
        answers = await all_of(
            *(w.place(each, worker=index % 4) for index, each in enumerate(together))
        )
        nodes = {answer.results[0].node_name for answer in answers}
        assert None not in nodes
        assert len({int(name[1:]) % 4 for name in nodes}) == 1
        await w.assert_replicas_agree()


@pytest.mark.parametrize("seed", range(8))
async def test_races_of_a_controllers_pods_end_with_one_that_is_exempt(seed):
    """E06: many workers, and nothing that the rule asks for; whoever loses is no longer the first."""
    async with world(workers=4, seed=seed) as w:
        await w.apply(*(node(f"n{i}").label(zone=f"z{i}") for i in range(4)))
        asked = [
            pod(f"p{i}")
            .owned_by("ReplicaSet", f"r{i % 2}")
            .require_affinity("zone", matching(app="web"), firstPodExempt=True)
            for i in range(10)
        ]
        await all_of(*(w.place(each, worker=index % 4) for index, each in enumerate(asked)))
        placed = await w.nodes_of_pods()
        assert sorted(int(name[1:]) % 2 for name in placed) == [0, 1]
        await w.assert_replicas_agree()


@pytest.mark.parametrize("seed", range(8))
async def test_races_for_anti_affinity_end_with_one_pod_a_domain(seed):
    """E05: six zones, ten pods, eight workers."""
    async with world(workers=8, seed=seed) as w:
        await w.apply(*zoned(*"abcdef"))
        answers = await all_of(*(w.place(one_per_zone(f"p{i}"), worker=i % 8) for i in range(10)))
        outcomes = sorted(answer.results[0].outcome for answer in answers)
        assert outcomes == ["Placed"] * 6 + ["Unschedulable"] * 4
        nodes = await w.nodes_of_pods()
        assert len(nodes) == len(set(nodes.values())) == 6
        await w.assert_replicas_agree()


@pytest.mark.parametrize("seed", range(8))
async def test_races_for_spread_never_exceed_the_skew_at_any_revision(seed):
    """E05: not even for a moment, whoever wins."""
    async with world(workers=4, seed=seed) as w:
        await w.apply(*zoned(*"abc"))
        pods = [pod(f"p{i}").label(app="s").spread(1, "zone") for i in range(12)]
        await all_of(*(w.place(each, worker=i % 4) for i, each in enumerate(pods)))
        counts = {f"n-{zone}": 0 for zone in "abc"}
        for change in w.log():
            if change.kind == "Pod":
                counts[change.node_name] += 1
                assert max(counts.values()) - min(counts.values()) <= 1
        assert set(counts.values()) == {4}
        await w.assert_replicas_agree()


@pytest.mark.parametrize("seed", range(6))
async def test_trouble_loses_nothing_that_was_acknowledged_and_repeats_nothing(seed):
    """A6, A7: whatever becomes of commits, each acknowledged pod is in the log exactly once."""
    async with world(workers=3, seed=seed) as w:
        await w.apply(*(node(f"n{i}").label(zone=f"z{i}") for i in range(6)))
        w.store.trouble += ["lose the answer", "hold", "ok", "refuse", "lose the answer"] * 2
        calls = [w.place(pod(f"p{i}"), worker=i % 3) for i in range(30)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        await w.store.release_held()
        created = [change.name for change in w.log() if change.kind == "Pod"]
        assert len(created) == len(set(created))
        for index, answer in enumerate(answers):
            acknowledged = not isinstance(answer, Exception)
            assert acknowledged == (f"p{index}" in created)
        await w.assert_replicas_agree()


async def test_the_same_seed_gives_the_same_history():
    async def history():
        async with world(workers=4, seed=7) as w:
            await w.apply(*zoned(*"abc"))
            await all_of(*(w.place(pod(f"p{i}"), worker=i % 4) for i in range(12)))
            return [(c.revision, c.name, c.node_name, c.uid) for c in w.log()]

    assert await history() == await history()
