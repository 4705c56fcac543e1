"""Rebalancing that races with orchestrators, operators and kills: what the log says of each move.

The run is repeatable from its seed, and its whole history is judged by the slow reference.
"""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from service.model.log.commit import Change
from service.scheduler.decide.disruption_budgets import Allowances
from service.scheduler.plans.broken_rules import BrokenRules
from service.scheduler.plans.rebalance.rebalance import RebalancePlan
from service.scheduler.protocol.intents import CordonNode, PutObject, SetPlanState
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.plans import PlanStep
from service.scheduler.replica.replica import Replica
from service.scheduler.replica.stored_kinds import MoveReservation
from tests.builders import HOST, matching, node, pod
from tests.concurrency.checker.rebalances import Rebalances
from tests.concurrency.plan_run import PlanRun
from tests.concurrency.test_drains import budget, needing
from tests.reference.view import Manifest, is_terminating
from tests.scheduler.world import World, world
from tests.seeds import chance, examples

ZONE = "zone"
NODES = {"n1": "a", "n2": "a", "n3": "b", "n4": "b", "n5": "c"}
CPU = {"a": "14", "b": "6", "c": "6"}
ROUNDS = 30
PATIENCE_ROUNDS = 150
LIMITS = Limits(plan_moves_max=3, plan_look_seconds=0.5, plan_reservation_seconds=20)
NEVER = ("cache1", "needs")
PLAN = "balance"


def spread(made: Any, app: str) -> Any:
    return made.label(app=app).spread(1, ZONE, matching(app=app), soft=True)


def owned(name: str) -> Any:
    """A pod of a controller, which gives those that come in place of others names of their own."""
    made = spread(pod(name).request(cpu="1"), "api")
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "api", "uid": "api"}
    made["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    return made


def wanted() -> dict[str, Any]:
    """The pods that the orchestrator keeps running under the same names."""
    made = {f"web-{n}": spread(pod(f"web-{n}").request(cpu="2"), "web") for n in range(6)}
    for number in range(3):
        database = spread(pod(f"db-{number}").request(cpu="1"), "db")
        made[f"db-{number}"] = database.require_anti_affinity(HOST, matching(app="db"))
    return made


class Run(PlanRun):
    """One history: what orchestrators, planners and operators do, as chance has it."""

    def __init__(self, w: World, choices: random.Random, objectives: list[str]) -> None:
        super().__init__(w, choices)
        self._objectives = objectives
        self._pods = wanted()
        self._owned = 4
        self._made = 0
        self._pods["cache2"] = spread(pod("cache2"), "cache")

    async def begin(self) -> None:
        """All is on the nodes of one zone; there is little room elsewhere."""
        nodes = [
            node(name).label({HOST: name, ZONE: zone}).allocatable(cpu=CPU[zone], pods="40")
            for name, zone in NODES.items()
        ]
        caches = [spread(pod(f"cache{n}"), "cache").on(f"n{n}") for n in (1, 2)]
        placed = [each.on(f"n{1 + n % 2}") for n, each in enumerate(wanted().values()) if n < 6]
        owned_ones = [self._new().on("n1") for _ in range(self._owned)]
        await self.w.apply(*nodes, budget("web", 5), budget("db", 2), *caches, needing())
        await self.w.apply(*placed, *owned_ones)
        await self.w.place(*[self._pods[f"db-{n}"] for n in range(3)])
        await self._plan()

    async def go(self, kill_at: int) -> None:
        for number in range(ROUNDS):
            if number == kill_at:
                self.kill()
            if self.choices.random() < 0.2:
                self.w.store.trouble.append(self.choices.choice(("lose the answer", "refuse")))
            await self._orchestrate(eager=self.choices.random())
            await self._choose()()
            await self.w.pass_time(self.choices.choice((0.1, 1, 2)))

    async def end(self) -> Manifest:
        """Without trouble, until the plan has ended; return it."""
        self.w.store.trouble.clear()
        for name in NODES:
            await self.attempt(CordonNode(name=name, unschedulable=False))
        await self._resume()
        for _ in range(PATIENCE_ROUNDS):
            await self._orchestrate(eager=1)
            await self.w.pass_time(1)
            plan = await self.w.stored("Plan", "", PLAN) or {}
            if plan["status"]["phase"] == "Succeeded":
                return plan
        raise AssertionError(f"The plan did not end: {plan}")

    async def _plan(self) -> None:
        spec = {
            "goal": {"type": "Rebalance", "objectives": self._objectives},
            "bounds": {"protect": {"priority": 1000}},
        }
        made = {"apiVersion": "moorage.dev/v1alpha1", "kind": "Plan", "metadata": {"name": PLAN}}
        await self.w.ask(PutObject(manifest=self.w.parsed({**made, "spec": spec})[0]))

    def _new(self) -> Any:
        self._made += 1
        return owned(f"api-{self._made}")

    async def _orchestrate(self, eager: float) -> None:
        """Stop pods that are to leave, and have those placed that are missing.

        Those of a controller come before the old ones are gone, all others afterwards.
        """
        pods = await self.pods()
        staying = [name for name, each in pods.items() if not is_terminating(each)]
        for _ in range(self._owned - sum(name.startswith("api-") for name in staying)):
            if self.choices.random() < eager:
                await self.attempt(self.w.placing(self._new()))
        await self.stop_and_start(pods, self._pods, eager)

    def _choose(self) -> Any:
        return self.choices.choice((self._pause, self._resume, self._cordon, self._more))

    async def _pause(self) -> None:
        await self.attempt(SetPlanState(name=PLAN, state="Paused"))

    async def _resume(self) -> None:
        await self.attempt(SetPlanState(name=PLAN, state="Running"))

    async def _cordon(self) -> None:
        name = self.choices.choice(list(NODES))
        await self.attempt(CordonNode(name=name, unschedulable=self.choices.random() < 0.5))

    async def _more(self) -> None:
        name = f"job-{len(self._pods)}"
        self._pods[name] = pod(name).label(app="job").request(cpu="1")


async def history(seed: int, *objectives: str) -> tuple[list[Change], Manifest]:
    choices = chance(seed)
    async with world(workers=2, seed=seed, limits=LIMITS) as w:
        run = Run(w, choices, list(objectives or ("Violations", "Skew")))
        await run.begin()
        await run.go(kill_at=choices.randrange(3, ROUNDS))
        plan = await run.end()
        await w.pass_time(1)
        return w.log(), plan


@pytest.mark.parametrize("seed", range(examples(6)))
async def test_whatever_races_with_a_rebalance_no_move_is_wrong(seed: int) -> None:
    changes, plan = await history(seed)
    checker = Rebalances(never=NEVER)
    assert list(checker.wrongs(changes)) == []
    status = plan["status"]
    assert checker.evicted == status["evicted"] > 0
    assert status["evicted"] == status["moved"] + status["elsewhere"] + status["missing"]
    assert checker.moved == status["moved"]
    assert not any(each.kind == "MoveReservation" for each in changes[-1:])
    now = [each["now"] for each in status["objectives"]]
    assert now <= [each["before"] for each in status["objectives"]]


async def test_who_ignores_budgets_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Allowances, "blocking", lambda _self, _pods: None)
    changes, _ = await history(1)
    assert any("exceeds the budget" in each for each in Rebalances(NEVER).wrongs(changes))


async def test_who_ignores_rules_of_others_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that would have a pod move that another one needs, and nobody who judges that."""

    def none(_self: BrokenRules, _moved: object) -> Iterator[None]:
        yield from ()
        return []

    targets = ["n3", "n4", "n5"]

    def search(rebalancing: RebalancePlan) -> Iterator[None]:
        yield
        rebalancing.complete = True
        if targets:
            move = {"namespace": "default", "name": "cache1", "from_node": "n1", "reason": ""}
            rebalancing.steps = [PlanStep(action="Evict", to=targets.pop(), wave=1, **move)]

    monkeypatch.setattr(RebalancePlan, "rebalance", search)
    changes, _ = await history(0, "Skew")
    assert not any("has to stay" in each for each in Rebalances(NEVER).wrongs(changes))

    monkeypatch.setattr(BrokenRules, "newly_broken", none)
    targets = ["n3", "n4", "n5"]
    changes, _ = await history(0, "Skew")
    assert any("has to stay" in each for each in Rebalances(NEVER).wrongs(changes))


async def test_who_keeps_no_room_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The room is kept by what the engine is told of reservations."""
    enter = Replica.enter

    def forgetful(replica: Replica, manifest: Any) -> Any:
        if isinstance(manifest, MoveReservation):
            return manifest.namespace, manifest.name
        return enter(replica, manifest)

    monkeypatch.setattr(Replica, "enter", forgetful)
    found = []
    for seed in range(4):
        changes, _ = await history(seed)
        found += Rebalances(NEVER).wrongs(changes)
    assert any("takes room" in each or "has no room" in each for each in found)
