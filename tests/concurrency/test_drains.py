"""Drains that race with planners, orchestrators and kills: what the log says of each eviction.

The run is repeatable from its seed. What is checked is asked of the slow reference: no disruption
budget is exceeded by an eviction, whoever is evicted has another node to go to, nobody is evicted twice,
and nobody whom a pod that stays needs beside it.
"""

import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from service.model.log.commit import Change
from service.scheduler.decide.disruption_budgets import Allowances
from service.scheduler.plans.broken_rules import BrokenRules
from service.scheduler.protocol.intents import (
    CordonNode,
    DeleteObject,
    DrainNode,
    SetPlanState,
)
from service.scheduler.protocol.limits import Limits
from tests.builders import HOST, matching, node, pod
from tests.concurrency.checker.state import State, unbound
from tests.concurrency.plan_run import PlanRun
from tests.reference.evictions import blocking_budget
from tests.reference.pipeline import evaluate_view
from tests.reference.view import Manifest, is_terminating, name_of, spec_of
from tests.scheduler.world import World, world
from tests.seeds import chance

ZONE = "zone"
NODES = ("n1", "n2", "n3", "n4", "n5")
DRAINED = ("n1", "n2")
ROUNDS = 40
PATIENCE_ROUNDS = 200
LIMITS = Limits(plan_evictions_max=3, plan_look_seconds=0.5)
MARK = b"Drain: node "


def wanted() -> dict[str, Any]:
    """The pods that the orchestrator keeps running, by name."""
    made: dict[str, Any] = {}
    for number in range(10):
        made[f"web-{number}"] = (
            pod(f"web-{number}")
            .label(app="web")
            .request(cpu="1")
            .spread(2, ZONE, matching(app="web"))
        )
    for number in range(3):
        made[f"db-{number}"] = (
            pod(f"db-{number}")
            .label(app="db")
            .request(cpu="1")
            .require_anti_affinity(HOST, matching(app="db"))
        )
    for number in range(4):
        made[f"job-{number}"] = pod(f"job-{number}").label(app="job").request(cpu="2")
    return made


def needing() -> Any:
    """A static pod on n1 that needs the cache beside it."""
    made = pod("needs").require_affinity(HOST, matching(app="cache")).on("n1")
    made["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "1"}
    return made


def budget(app: str, least: int) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"minAvailable": least, "selector": {"matchLabels": {"app": app}}},
    }


class Run(PlanRun):
    """One history: what orchestrators, planners and operators do, as chance has it."""

    def __init__(self, w: World, choices: random.Random) -> None:
        super().__init__(w, choices)
        self._pods = wanted()

    async def begin(self) -> None:
        names = {"n1": "a", "n2": "b", "n3": "a", "n4": "b", "n5": "b"}
        nodes = [
            node(name).label({HOST: name, ZONE: zone}).allocatable(cpu="16", pods="40")
            for name, zone in names.items()
        ]
        cache = pod("cache").label(app="cache").on("n1")
        await self.w.apply(*nodes, budget("web", 9), budget("db", 2), cache, needing())
        await self.w.place(*self._pods.values())

    async def go(self, kill_at: int) -> None:
        for number in range(ROUNDS):
            if number == kill_at:
                self.kill()
            if number in (2, 6):
                await self.attempt(DrainNode(name=DRAINED[number // 6]))
            if self.choices.random() < 0.2:
                self.w.store.trouble.append(self.choices.choice(("lose the answer", "refuse")))
            await self._orchestrate(eager=self.choices.random())
            await self._choose()()
            await self.w.pass_time(self.choices.choice((0.1, 1, 2)))

    async def end(self) -> dict[str, Manifest]:
        """Without trouble, until both drains have ended or nothing but the cache is left; their plans."""
        self.w.store.trouble.clear()
        for name in NODES[len(DRAINED) :]:
            await self.attempt(CordonNode(name=name, unschedulable=False))
        for name in DRAINED:
            await self.attempt(DrainNode(name=name))
            await self.attempt(SetPlanState(name=f"drain-{name}", state="Running"))
        plans: dict[str, Manifest] = {}
        for _ in range(PATIENCE_ROUNDS):
            await self._orchestrate(eager=1)
            await self.w.pass_time(1)
            plans = {name: await self._plan(name) for name in DRAINED}
            if all(_rests(each) for each in plans.values()):
                return plans
        raise AssertionError(f"The drains did not come to rest: {plans}")

    async def _plan(self, name: str) -> Manifest:
        found = await self.w.stored("Plan", "", f"drain-{name}")
        return found or {}

    async def _orchestrate(self, eager: float) -> None:
        await self.stop_and_start(await self.pods(), self._pods, eager)

    def _choose(self) -> Any:
        return self.choices.choice(
            (self._pause, self._resume, self._uncordon, self._more, self._nothing)
        )

    async def _pause(self) -> None:
        name = self.choices.choice(DRAINED)
        await self.attempt(SetPlanState(name=f"drain-{name}", state="Paused"))

    async def _resume(self) -> None:
        for name in DRAINED:
            await self.attempt(SetPlanState(name=f"drain-{name}", state="Running"))

    async def _uncordon(self) -> None:
        name = self.choices.choice(NODES)
        await self.attempt(CordonNode(name=name, unschedulable=self.choices.random() < 0.3))

    async def _more(self) -> None:
        name = f"job-{len(self._pods)}"
        self._pods[name] = pod(name).label(app="job").request(cpu="1")

    async def _nothing(self) -> None:
        pass


def _rests(plan: Manifest) -> bool:
    """Whether a plan has ended, or waits for nothing but the cache."""
    status = plan.get("status") or {}
    waiting = [each["reason"] for each in status.get("waitingPods") or ()]
    stuck = waiting == ["BreaksRule"] and status["waiting"] == 1 and not status["leaving"]
    return status.get("phase") == "Succeeded" or stuck


def wrongs(changes: list[Change]) -> Iterator[str]:
    """What is wrong with the evictions of a log, in its order."""
    state = State()
    for change in changes:
        stored = state.pod(("Pod", change.namespace, change.name))
        if change.kind == "Pod" and change.verb == "Put" and _evicts(stored, change):
            yield from _wrongs_of(state, change, stored)
        state.apply(change)


def _evicts(stored: Manifest | None, change: Change) -> bool:
    if stored is None or MARK not in change.body:
        return False
    return MARK not in msgspec.json.encode(stored)


def _wrongs_of(state: State, change: Change, stored: Manifest | None) -> Iterator[str]:
    assert stored is not None
    told = f"{change.name} at {change.revision}"
    if is_terminating(stored):
        yield f"{told} was leaving already"
    if change.name in ("cache", "needs"):
        yield f"{told} has to stay"
    exceeded = blocking_budget(state.view, stored, state.budgets.values())
    if exceeded is not None:
        yield f"{told} exceeds the budget {exceeded}"
    there = state.cluster.copy()
    there.delete_pod(change.namespace, change.name)
    feasible = evaluate_view(there.view(), unbound(stored))["feasible"]
    if not set(feasible) - {spec_of(stored)["nodeName"]}:
        yield f"{told} has no other node"


async def history(seed: int) -> tuple[list[Change], dict[str, Manifest]]:
    choices = chance(seed)
    async with world(workers=2, seed=seed, limits=LIMITS) as w:
        run = Run(w, choices)
        await run.begin()
        await run.go(kill_at=choices.randrange(3, ROUNDS))
        plans = await run.end()
        return w.log(), plans


@pytest.mark.parametrize("seed", range(20))
async def test_whatever_races_with_a_drain_no_eviction_is_wrong(seed: int) -> None:
    changes, plans = await history(seed)
    assert list(wrongs(changes)) == []
    state, evicted = State(), 0
    for change in changes:
        stored = state.pod(("Pod", change.namespace, change.name))
        evicted += change.kind == "Pod" and change.verb == "Put" and _evicts(stored, change)
        state.apply(change)
    assert evicted >= sum(each["status"].get("evicted", 0) for each in plans.values()) > 0
    left = {name_of(each) for name in DRAINED for each in state.view.pods_on[name]}
    assert left == {"cache", "needs"}
    assert plans["n2"]["status"]["phase"] == "Succeeded"


async def test_another_worker_goes_on_with_the_drain_of_one_that_was_killed() -> None:
    """The first has evicted one pod, as the budget allows; it gives nothing back."""
    async with world(workers=2, limits=LIMITS) as w:
        nodes = [node(name).label({HOST: name}) for name in ("n1", "n2")]
        pods = [pod(f"db-{number}").label(app="db").on("n1") for number in range(3)]
        await w.apply(*nodes, budget("db", 2), *pods)
        await w.ask(DrainNode(name="n1"), worker=0)
        await w.pass_time(1)
        plan = await w.stored("Plan", "", "drain-n1")
        assert plan is not None
        assert (plan["status"]["evicted"], plan["status"]["waiting"]) == (1, 2)
        for task in w.schedulers[0].tasks:
            task.cancel()
        for _ in range(60):
            page = await w.store.objects.list(1, "Pod", limit=10)
            for row in page.rows:
                if is_terminating(msgspec.json.decode(row.body)):
                    await w.ask(DeleteObject(kind="Pod", namespace="default", name=row.name), 1)
                    await w.place(pod(row.name).label(app="db"), worker=1)
            await w.pass_time(1)
        plan = await w.stored("Plan", "", "drain-n1")
        assert plan is not None
        assert (plan["status"]["phase"], plan["status"]["evicted"]) == ("Succeeded", 3)
        assert set((await w.nodes_of_pods()).values()) == {"n2"}
        assert list(wrongs(w.log())) == []


async def test_who_ignores_budgets_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Allowances, "blocking", lambda _self, _pods: None)
    changes, _ = await history(0)
    assert any("exceeds the budget" in each for each in wrongs(changes))


async def test_who_ignores_rules_of_others_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_self: BrokenRules, _moved: object) -> Iterator[None]:
        yield from ()
        return []

    monkeypatch.setattr(BrokenRules, "newly_broken", none)
    changes, _ = await history(0)
    assert any("cache" in each and "has to stay" in each for each in wrongs(changes))
