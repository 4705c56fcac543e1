"""Rules that are required during execution: who is evicted, when, and never twice."""

from datetime import UTC, datetime, timedelta

import pytest

from service.model.registry.manifests import TemplateCache
from service.scheduler.commit.request_batches import Batch
from service.scheduler.controllers.rule_evictions import EvictionController
from service.scheduler.decide.evicting import violation_sweep
from service.scheduler.protocol.intents import DeleteObject, PatchConfig, ReadViolations
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import EvictionState
from service.scheduler.scheduler import Scheduler
from tests.builders import REQUIRED_DURING_EXECUTION, matching, namespace, node, pod, requirement
from tests.scheduler.world import CountedIds, World, world

ENDURING = {"execution": REQUIRED_DURING_EXECUTION}
RULE = "requiredDuringSchedulingRequiredDuringExecution"
N1 = node("n1").label(host="n1", disk="ssd")
N2 = node("n2").label(host="n2", disk="ssd")
S1 = pod("s1").label(service="S1")
S2 = pod("s2").label(service="S2")
BESIDE = S1.require_affinity("host", matching(service="S2"), **ENDURING)
AWAY = S1.require_anti_affinity("host", matching(service="S2"), **ENDURING)
ON_SSD = S1.require_node(requirement("disk", "In", "ssd"), **ENDURING)


async def configure(w: World, **settings) -> None:
    await w.ask(PatchConfig(patch_type="merge", patch=settings))
    await w.others()


async def pass_seconds(w: World, seconds: int) -> None:
    """In steps, as time passes for timers and leases."""
    for _ in range(seconds):
        await w.pass_time(1)


async def delete(w: World, name: str, worker: int = 0) -> None:
    await w.ask(DeleteObject(kind="Pod", namespace="default", name=name), worker)
    await w.others()


async def apply(w: World, *things, worker: int = 0) -> None:
    await w.apply(*things, worker=worker)
    await w.others()


def evictions(w: World) -> list[str]:
    """Names of pods, once for each change that marked them."""
    marked: dict[str, bool] = {}
    found = []
    for change in w.log():
        if change.kind == "Pod":
            now = b'"deletionTimestamp"' in change.body and change.verb == "Put"
            if now and not marked.get(change.name):
                found.append(change.name)
            marked[change.name] = now
    return found


async def target_of(w: World, name: str) -> dict:
    stored = await w.stored("Pod", "default", name)
    conditions = stored["status"]["conditions"]
    return next(each for each in conditions if each["type"] == "DisruptionTarget")


async def violations(w: World) -> list:
    return (await w.ask(ReadViolations())).items


# Node affinity


async def test_a_node_that_is_relabelled_loses_the_pod_at_once():
    """M01, M02: only the pod whose rule must last; the other is only told of."""
    async with world() as w:
        only_then = pod("then").require_node(requirement("disk", "In", "ssd"))
        await apply(w, N1, ON_SSD.on("n1"), only_then.on("n1"))
        assert evictions(w) == []
        await apply(w, N1.label(disk="hdd"))
        assert evictions(w) == ["s1"]
        told = await target_of(w, "s1")
        assert (told["status"], told["reason"]) == ("True", "NodeAffinityViolated")
        assert told["message"] == (f"spec.affinity.nodeAffinity.{RULE} does not hold on node n1.")
        assert [(each.name, each.execution) for each in await violations(w)] == [
            ("s1", "Required"),
            ("then", "Ignored"),
        ]


# S0: two services, S1 with a rule about S2


async def test_s0_s1_ends_and_s2_goes_on():
    """D06, D08."""
    async with world() as w:
        await apply(w, N1, BESIDE.on("n1"), S2.on("n1"))
        await delete(w, "s1")
        await pass_seconds(w, 60)
        assert evictions(w) == []


async def test_s0_s2_ends_and_s1_is_evicted_once_the_grace_is_over():
    """D08, M05, M06: five seconds without S2 are forgiven, forty are not."""
    async with world() as w:
        await apply(w, N1, BESIDE.on("n1"), S2.on("n1"))
        await delete(w, "s2")
        await pass_seconds(w, 5)
        (item,) = await violations(w)
        assert item.since is not None
        await apply(w, S2.on("n1"))
        assert await violations(w) == []
        await pass_seconds(w, 60)
        assert evictions(w) == []
        await delete(w, "s2")
        await pass_seconds(w, 29)
        assert evictions(w) == []
        await pass_seconds(w, 2)
        assert evictions(w) == ["s1"]
        assert (await target_of(w, "s1"))["reason"] == "PodAffinityViolated"
        await pass_seconds(w, 60)
        assert evictions(w) == ["s1"]


async def test_each_of_a_pods_terms_has_its_own_time():
    """M07, R02: the term's, else the pod's, else the cluster's; whichever is over first evicts."""
    async with world() as w:
        told = ENDURING | {"toleranceSeconds": 50}
        patient = S1.named("patient").require_affinity("host", matching(service="S2"), **told)
        hasty = BESIDE.named("hasty")
        hasty["spec"]["affinity"]["podAffinity"]["toleranceSeconds"] = 5
        both = hasty.named("both").require_affinity("host", matching(service="S3"), **told)
        s3 = pod("s3").label(service="S3")
        await configure(w, requiredAffinityTerms="PerTerm")
        await apply(w, N1, *(each.on("n1") for each in (patient, hasty, both, BESIDE, S2, s3)))
        await delete(w, "s3")
        await pass_seconds(w, 20)
        assert evictions(w) == []  # only the term with its own time is broken
        await delete(w, "s2")
        await pass_seconds(w, 4)
        assert evictions(w) == []
        await pass_seconds(w, 3)
        assert sorted(evictions(w)) == ["both", "hasty"]
        await pass_seconds(w, 20)
        assert len(evictions(w)) == 2
        await pass_seconds(w, 5)
        assert evictions(w)[2:] == ["s1"]
        await pass_seconds(w, 15)
        assert len(evictions(w)) == 3
        await pass_seconds(w, 5)
        assert evictions(w)[3:] == ["patient"]


async def test_p16_the_database_is_told_when_the_pods_own_time_is_over():
    async with world() as w:
        own = S1.require_affinity("host", matching(service="S2"), toleranceSeconds=7, **ENDURING)
        await apply(w, N1, own.on("n1"), S2.on("n1"))
        await delete(w, "s2")
        (timer,) = (await w.stored("Evictions", "", "state"))["timers"]
        await pass_seconds(w, 10)
        assert evictions(w) == ["s1"]
        (due,) = [each.not_before for each in w.store.commits_begun if each.not_before]
        assert due == datetime.fromisoformat(timer["since"]) + timedelta(seconds=7)


async def test_s0_s2_ends_and_s1_stays_if_its_rule_only_bound_scheduling():
    """D08, M10: what Kubernetes does, with the violation in plain sight."""
    async with world() as w:
        once = S1.require_affinity("host", matching(service="S2"))
        await apply(w, N1, once.on("n1"), S2.on("n1"))
        await delete(w, "s2")
        await pass_seconds(w, 60)
        assert evictions(w) == []
        assert [each.execution for each in await violations(w)] == ["Ignored"]


@pytest.mark.parametrize("first", ["s1", "s2"])
async def test_s0_the_owner_of_the_violated_rule_is_evicted_whoever_came_first(first):
    """M03: S1 must not run with S2, and S2 is told so by being put there."""
    async with world() as w:
        things = [AWAY.on("n1"), S2.on("n1")]
        await apply(w, N1, *(things if first == "s1" else things[::-1])[:1])
        await apply(w, *(things if first == "s1" else things[::-1])[1:])
        assert evictions(w) == ["s1"]
        told = await target_of(w, "s1")
        assert told["reason"] == "PodAntiAffinityViolated"
        assert told["message"] == (
            f"spec.affinity.podAntiAffinity.{RULE}[0] does not hold on node n1: "
            "default/s2 is in its domain."
        )


async def test_a_pod_relabelled_into_a_conflict_stays_and_the_owner_goes():
    """M03, M11."""
    async with world() as w:
        await apply(w, N1, AWAY.on("n1"), pod("q").label(service="S3").on("n1"))
        assert evictions(w) == []
        await apply(w, pod("q").label(service="S2").on("n1"))
        assert evictions(w) == ["s1"]


# Anti-affinity among several


def alone(name: str, priority: int = 0):
    made = pod(name).label(app="db").require_anti_affinity("host", matching(app="db"), **ENDURING)
    made["spec"]["priority"] = priority
    return made


async def test_of_two_that_exclude_each_other_one_goes():
    async with world() as w:
        await apply(w, N1, N2, alone("a").on("n1"), alone("b").on("n2"))
        await apply(w, N2.label(host="n1"))
        await pass_seconds(w, 60)
        assert len(evictions(w)) == 1


async def test_the_lowest_priority_goes_until_every_rule_holds():
    """M04: the owner of the rule is the most important, so all others go, the least first."""
    async with world() as w:
        await configure(w, antiAffinityVictim="LowestPriority", evictionsPerMinute=1)
        plain = [pod(f"p{i}").label(app="db").on("n1") for i in (1, 2)]
        for each, priority in zip(plain, (7, 3), strict=True):
            each["spec"]["priority"] = priority
        await apply(w, N1, alone("owner", 100).on("n1"), *plain)
        assert evictions(w) == ["p2"]
        await pass_seconds(w, 130)
        assert evictions(w) == ["p2", "p1"]
        told = await target_of(w, "p2")
        assert "of default/owner does not hold while this pod is on node n1." in told["message"]


async def test_the_youngest_goes_first_among_equals():
    async with world() as w:
        await configure(w, antiAffinityVictim="LowestPriority")
        await apply(w, N1, N2, alone("z").on("n1"))
        await pass_seconds(w, 10)
        await apply(w, alone("a").on("n2"))
        await apply(w, N2.label(host="n1"))
        assert evictions(w) == ["a"]


async def test_pods_of_daemon_namespaces_are_neither_cause_nor_victim():
    async with world() as w:
        everyone = {"namespaceSelector": {}, **ENDURING}
        mine = pod("mine").require_anti_affinity("host", matching(app="x"), **everyone)
        daemon = pod("daemon", "kube-system").label(app="x")
        theirs = daemon.require_anti_affinity("host", {}, **everyone)
        await apply(w, N1, mine.on("n1"), theirs.on("n1"))
        await pass_seconds(w, 60)
        assert evictions(w) == []


async def test_a_daemons_rule_has_it_evicted_for_another_daemon():
    async with world() as w:
        everyone = {"namespaceSelector": {}, **ENDURING}
        first = pod("first", "kube-system").require_anti_affinity("host", {}, **everyone)
        await apply(w, N1, first.on("n1"), pod("mine").on("n1"))
        await pass_seconds(w, 60)
        assert evictions(w) == []
        await apply(w, pod("second", "kube-system").on("n1"))
        assert evictions(w) == ["first"]


# What makes rules false


async def test_a_namespace_that_is_relabelled_takes_its_pods_out_of_a_rule():
    async with world() as w:
        red = {"namespaceSelector": matching(team="red"), **ENDURING}
        beside = S1.require_affinity("host", matching(service="S2"), **red)
        other = pod("s2", "shop").label(service="S2")
        await apply(w, namespace("shop").label(team="red"), N1, beside.on("n1"), other.on("n1"))
        await pass_seconds(w, 40)
        assert evictions(w) == []
        await apply(w, namespace("shop").label(team="blue"))
        await pass_seconds(w, 31)
        assert evictions(w) == ["s1"]


async def test_a_node_that_goes_takes_its_pods_out_of_rules_of_others():
    async with world() as w:
        zoned = [each.label(zone="a") for each in (N1, N2)]
        beside = S1.require_affinity("zone", matching(service="S2"), **ENDURING)
        await apply(w, *zoned, beside.on("n1"), S2.on("n2"))
        await w.ask(DeleteObject(kind="Node", name="n2"))
        await pass_seconds(w, 31)
        assert evictions(w) == ["s1"]


async def test_in_a_chain_each_pod_is_evicted_once_and_only_after_the_one_before_is_gone():
    """M11: C needs B needs A."""
    async with world() as w:
        a, b, c = (pod(name).label(app=name) for name in "abc")
        b = b.require_affinity("host", matching(app="a"), **ENDURING)
        c = c.require_affinity("host", matching(app="b"), **ENDURING)
        await apply(w, N1, a.on("n1"), b.on("n1"), c.on("n1"))
        await delete(w, "a")
        await pass_seconds(w, 100)
        assert evictions(w) == ["b"]
        await delete(w, "b")
        await pass_seconds(w, 100)
        assert evictions(w) == ["b", "c"]


async def test_p16_the_database_is_told_when_the_grace_is_over():
    """So that a worker with a fast clock cannot evict early."""
    async with world() as w:
        await apply(w, N1, BESIDE.on("n1"), S2.on("n1"))
        await delete(w, "s2")
        (timer,) = (await w.stored("Evictions", "", "state"))["timers"]
        await pass_seconds(w, 32)
        (due,) = [each.not_before for each in w.store.commits_begun if each.not_before]
        assert due == datetime.fromisoformat(timer["since"]) + timedelta(seconds=30)


def test_p16_a_batch_waits_for_the_latest_of_the_times_that_it_acts_on():
    batch, now = Batch(Replica(TemplateCache()).mark(), ""), datetime(2026, 1, 1, tzinfo=UTC)
    for seconds in (1, 3, 2):
        batch.hold_until(now + timedelta(seconds=seconds))
    batch.hold_until(None)
    assert batch.not_before == now + timedelta(seconds=3)


async def test_a_new_pod_of_the_same_name_has_a_grace_of_its_own():
    async with world() as w:
        await apply(w, N1, BESIDE.on("n1"), S2.on("n1"))
        await delete(w, "s2")
        await pass_seconds(w, 20)
        await delete(w, "s1")
        await apply(w, BESIDE.on("n1"))
        await pass_seconds(w, 20)
        assert evictions(w) == []
        await pass_seconds(w, 11)
        assert evictions(w) == ["s1"]


# The budget


async def test_one_wrong_label_cannot_empty_the_cluster():
    """P17: how many may go in a minute is state under a revision, so it is kept by all workers."""
    async with world() as w:
        await configure(w, evictionsPerMinute=2)
        await apply(w, N1, *(ON_SSD.named(f"p{i}").on("n1") for i in range(5)))
        await apply(w, N1.label(disk="hdd"))
        assert len(evictions(w)) == 2
        await pass_seconds(w, 30)
        await apply(w, N2)  # whatever changes has all rules looked at once more
        await pass_seconds(w, 29)
        assert len(evictions(w)) == 2
        await pass_seconds(w, 2)
        assert len(evictions(w)) == 4
        await pass_seconds(w, 60)
        assert len(set(evictions(w))) == len(evictions(w)) == 5


async def test_a_larger_budget_counts_at_once():
    async with world() as w:
        await configure(w, evictionsPerMinute=1)
        await apply(w, N1, *(ON_SSD.named(f"p{i}").on("n1") for i in range(3)))
        await apply(w, N1.label(disk="hdd"))
        assert len(evictions(w)) == 1
        await configure(w, evictionsPerMinute=60)
        assert len(evictions(w)) == 3


async def test_what_is_too_much_for_one_commit_follows_by_itself(monkeypatch):
    monkeypatch.setattr(violation_sweep, "EVICTIONS_MAX", 3)
    async with world() as w:
        await apply(w, N1, *(ON_SSD.named(f"p{i}").on("n1") for i in range(8)))
        await apply(w, N1.label(disk="hdd"))
        await pass_seconds(w, 3)
        assert len(set(evictions(w))) == len(evictions(w)) == 8


async def test_rules_are_not_looked_at_again_because_pods_are_evicted(monkeypatch):
    sweeps, sweep = [], EvictionController.sweep

    def counted(self):
        sweeps.append(self)
        sweep(self)

    monkeypatch.setattr(EvictionController, "sweep", counted)
    async with world() as w:
        await apply(w, N1, ON_SSD.on("n1"))
        sweeps.clear()
        await apply(w, N1.label(disk="hdd"))
        await pass_seconds(w, 5)
        assert (evictions(w), len(sweeps)) == (["s1"], 1)
        await apply(w, N1.label(disk="ssd"))
        assert len(sweeps) == 2


# Workers


async def test_without_such_rules_nothing_is_looked_at_and_no_lease_is_taken():
    async with world() as w:
        await apply(w, N1, S1.node_selector(disk="ssd").on("n1"))
        await apply(w, N1.label(disk="hdd"))
        await pass_seconds(w, 10)
        assert await w.store.leases.acquire(1, "evictions", "somebody", 1.0) is not None
        assert {change.kind for change in w.log()} == {"Cluster", "Node", "Pod"}


async def test_a_timer_goes_on_with_another_worker_from_where_it_was():
    """P17: what was begun by a worker that stops, or dies, is ended by one that knew nothing."""
    async with world() as w:
        await apply(w, N1, BESIDE.on("n1"), S2.on("n1"))
        await delete(w, "s2")
        await pass_seconds(w, 20)
        await w.schedulers[0].stop()
        heir = Scheduler(w.store, w.clock, CountedIds(9), None, TemplateCache())
        w.schedulers[0] = heir
        await heir.start()
        await pass_seconds(w, 9)
        assert evictions(w) == []
        await pass_seconds(w, 6)
        assert evictions(w) == ["s1"], "nobody asked it for anything"


async def test_a_start_finds_pods_that_have_to_go_without_any_lease():
    """P17: whoever stored the first such pod may have died before it took the lease."""

    async def refused(*_):
        return None

    async with world() as w:
        w.store.leases.acquire = refused  # type: ignore[method-assign]
        await apply(w, N1.label(disk="hdd"), ON_SSD.on("n1"))
        await w.schedulers[0].stop()
        del w.store.leases.acquire  # type: ignore[attr-defined]
        heir = w.schedulers[0] = Scheduler(w.store, w.clock, CountedIds(9), None, TemplateCache())
        await heir.start()
        await pass_seconds(w, 10)
        assert evictions(w) == ["s1"], "nobody asked it for anything"


async def test_timers_are_stored_and_stopped_by_commits():
    """P17: the commit that makes a rule false begins its timer, the one that makes it true ends it."""
    async with world() as w:
        await apply(w, N1, BESIDE.on("n1"), S2.on("n1"))
        await delete(w, "s2")
        await pass_seconds(w, 20)
        timers = (await w.stored("Evictions", "", "state"))["timers"]
        assert [each["name"] for each in timers] == ["s1"]
        await apply(w, S2.on("n1"))
        assert (await w.stored("Evictions", "", "state"))["timers"] == []
        await pass_seconds(w, 60)
        assert evictions(w) == []


@pytest.mark.parametrize("seed", range(12))
async def test_several_workers_evict_nobody_twice_and_nobody_in_vain(seed):
    """P17: each relabels and applies at the same time; whoever holds the lease sweeps in between."""
    async with world(workers=3, seed=seed) as w:
        pods = [alone(f"p{i}").on("n1" if i % 2 else "n2") for i in range(2)]
        await apply(w, N1, N2, *pods)
        for worker, thing in enumerate((N2.label(host="n1"), alone("p2").on("n1"), N1)):
            await w.apply(thing, worker=worker)
        await pass_seconds(w, 10)
        gone = evictions(w)
        assert len(gone) == len(set(gone)) == 2
        await w.assert_replicas_agree()


async def release_evictions(w: World) -> None:
    """The store has given the lease back, whatever its holder believes."""
    holder = w.store.states[1].leases["evictions"].holder
    await w.store.leases.release(1, "evictions", holder)


async def test_two_sweeps_of_one_state_evict_once():
    """A lease saves work and guarantees nothing: the second sweep sees what the first did."""
    async with world(workers=2) as w:
        await apply(w, N1, ON_SSD.on("n1"))
        await w.ask(ReadViolations(), worker=1)
        for scheduler in w.schedulers:
            await release_evictions(w)
            await scheduler.evictions.get(1).lease.acquire()
        await release_evictions(w)
        await apply(w, N1.label(disk="hdd"))
        await pass_seconds(w, 3)
        assert evictions(w) == ["s1"]


def test_what_is_remembered_reads_back():
    state = EvictionState()
    assert state.render() == b'{"timers":[],"recent":[],"blocked":[]}'
