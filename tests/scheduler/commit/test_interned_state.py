"""Decisions that store nothing leave nothing in the engine: no rules, counters, columns or cached rows."""

import asyncio

import pytest

from service.engine.integrity.footprint import footprint
from service.model.core.errors import MoorageError
from service.model.registry.manifests import Limits, TemplateCache
from service.scheduler.protocol.intents import (
    DeleteObject,
    DryRun,
    ExplainPod,
    FindCapacity,
    FindRepairs,
    MakePlan,
    PutObject,
)
from service.scheduler.protocol.plans import Place
from tests.builders import HOST, matching, node, pod
from tests.scheduler.world import all_of, world

NODES = 40
RAISED = Limits(pod_terms_max=1_000, pod_topology_keys_max=1_000, pod_expressions_max=10_000)


def asked(number, **labels):
    """A pod of which hardly anything is known to the engine."""
    return (
        pod(f"asked-{number}")
        .label(app=f"a{number}", **labels)
        .request(cpu=f"{number + 1}m")
        .tolerate(f"key-{number}")
        .host_port(8_000 + number)
        .require_anti_affinity(f"key-{number}", matching(app="web"))
        .prefer_affinity(2, HOST, matching(app=f"a{number}"))
        .spread(1, "zone", matching(app=f"a{number}"))
    )


def nowhere(number):
    return asked(number).request(cpu=f"{number + 100}")


async def filled(w):
    w.templates = TemplateCache(limits=RAISED)
    await w.apply(*(node(f"n{n}").label({HOST: f"n{n}"}, zone=f"z{n % 3}") for n in range(NODES)))
    for number in range(12):
        web = pod(f"web-{number}").label(app="web").spread(2, "zone")
        assert (await w.place(web)).results[0].outcome == "Placed"


def engine_of(w, worker=0):
    return w.schedulers[worker].loops["default"].follower.replica.cluster


async def dry_run(w, number):
    answer = await w.place(asked(number), asked(number + 1_000), dry_run=True, explain="Full")
    assert [each.outcome for each in answer.results] == ["Placed", "Placed"]


async def dry_run_of_a_group(w, number):
    members = (asked(number), nowhere(number + 1_000))
    answer = await w.place(*members, dry_run=True, all_or_nothing=True)
    assert "Placed" not in {each.outcome for each in answer.results}


async def dry_run_with_preemption(w, number):
    pods = (nowhere(number).priority(10), asked(number + 1_000).priority(10))
    await w.place(*pods, dry_run=True, preemption="Propose")


async def rejected(w, number):
    answer = await w.place(nowhere(number))
    assert answer.results[0].outcome == "Unschedulable"


async def rejected_beside_one_that_is_placed(w, number):
    web = pod(f"more-{number}").label(app="web").spread(2, "zone")
    answer = await w.place(nowhere(number), web)
    assert [each.outcome for each in answer.results] == ["Unschedulable", "Placed"]
    await delete(w, f"more-{number}")


async def denied(w, number):
    unknown = asked(number).scheduler_name("unknown")
    answer = await w.place(unknown)
    assert answer.results[0].outcome == "Denied"


async def dry_run_of_a_write(w, number):
    await w.ask(DryRun(intent=PutObject(manifest=w.pod(asked(number)))))


async def small_plan(w, number):
    await w.ask(MakePlan(goal=Place(pods=w.placing(asked(number)).pods)))


DECISIONS = [
    dry_run,
    dry_run_of_a_group,
    dry_run_with_preemption,
    rejected,
    rejected_beside_one_that_is_placed,
    denied,
    dry_run_of_a_write,
    small_plan,
]


async def delete(w, name):
    await w.ask(DeleteObject(kind="Pod", namespace="default", name=name))


@pytest.mark.parametrize("decide", DECISIONS)
async def test_decisions_that_store_nothing_leave_nothing(decide):
    async with world() as w:
        await filled(w)
        await decide(w, 50)
        before = footprint(engine_of(w))
        for number in range(3):
            await decide(w, number)
        assert footprint(engine_of(w)) == before


async def test_a_refused_decision_leaves_nothing():
    async with world() as w:
        await filled(w)
        await dry_run(w, 50)
        before = footprint(engine_of(w))
        other = pod("web-0").label(app="web").require_anti_affinity("other", matching(app="x"))
        with pytest.raises(MoorageError):
            await w.ask(w.placing(asked(1), other))
        assert footprint(engine_of(w)) == before


async def explained(w, number):
    await w.ask(ExplainPod(namespace="default", name="waiting"))


async def large_plan(w, number):
    pods = w.placing(*(asked(n) for n in range(number, number + 3))).pods
    await w.schedulers[0].planners.plan(
        "default", MakePlan(goal=Place(pods=pods), explain="Summary")
    )


async def capacity(w, number):
    alike = [asked(number).named(f"alike-{n}") for n in range(3)]
    await w.schedulers[0].planners.capacity("default", FindCapacity(pods=w.placing(*alike).pods))


async def repaired(w, number):
    await w.schedulers[0].planners.repairs(
        "default",
        FindRepairs(namespace="default", name="waiting", changes_max=2, repairs_max=3),
    )


@pytest.mark.parametrize("decide", [explained, large_plan, capacity, repaired])
async def test_plans_repairs_and_explanations_leave_nothing(decide):
    async with world() as w:
        await filled(w)
        answer = await w.place(nowhere(7))
        assert answer.results[0].outcome == "Unschedulable"
        await w.ask(PutObject(manifest=w.pod(nowhere(7).named("waiting"))))
        for number in (50, 60):
            await decide(w, number)
        before = [footprint(each) for each in (engine_of(w), planning_engine(w))]
        for number in (0, 20):
            await decide(w, number)
        assert [footprint(each) for each in (engine_of(w), planning_engine(w))] == before


def planning_engine(w):
    """The engine of the replica that plans are made on."""
    scheduler = w.schedulers[0]
    replica = scheduler.loops["default"].follower.replica
    steps = scheduler.planners.of(1).replica.catching_up(replica)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value.cluster


async def test_a_lost_race_leaves_nothing():
    """Both workers decide on the same revision; the one that loses decides again, and refuses its pod."""
    async with world(workers=2, seed=1) as w:
        await filled(w)
        before = [await without_idle(w, worker) for worker in (0, 1)]
        gate, same = w.close_gate(), asked(3).host_port(9_000).on("n1")
        calls = [
            w.place(same.named(f"p{worker}").label(of=f"{worker}"), worker=worker)
            for worker in (0, 1)
        ]
        answers = await opened(w, gate, *calls)
        results = [each.results[0] for each in answers]
        assert sorted(each.outcome for each in results) == ["Placed", "Unschedulable"]
        assert max(each.attempts for each in answers) > 1
        (placed,) = [each.name for each in results if each.outcome == "Placed"]
        await delete(w, placed)
        assert [await without_idle(w, worker) for worker in (0, 1)] == before


async def without_idle(w, worker):
    """The footprint of a worker's engine that has caught up, without rules of pods that are gone."""
    await w.place(pod("other"), dry_run=True, worker=worker)
    engine = engine_of(w, worker)
    engine.forget_idle()
    return footprint(engine)


async def opened(w, gate, *calls):
    tasks = [asyncio.ensure_future(each) for each in calls]
    await w.others()
    w.open_gate(gate)
    return await all_of(*tasks)


async def test_dry_runs_with_a_thousand_terms_cost_pods_that_follow_nothing():
    """The counts of comparisons tell, not the time."""
    async with world() as w:
        await filled(w)
        terms = [
            {
                "labelSelector": {"matchExpressions": [{"key": f"k{n}", "operator": "Exists"}]},
                "topologyKey": HOST,
                "namespaceSelector": {},
            }
            for n in range(1_000)
        ]
        many = pod("many")
        many["spec"]["affinity"] = {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        }
        known = engine_of(w).interned()
        answer = await w.place(many, dry_run=True)
        assert answer.results[0].outcome == "Placed"
        assert engine_of(w).interned() == known
        assert not [each for each in engine_of(w).matchers() if engine_of(w).is_wide(each)]
