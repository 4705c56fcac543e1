"""Plans that eight planners commit at once: what the log says, asked of the slow reference.

After each commit no required rule of any pod is broken, nothing is half done, and of several planners
who have seen the same plan one carries it out.
"""

import random
from typing import Any

import pytest

from service.model.core.errors import Conflict, MoorageError
from service.model.core.primitives import LabelSelector
from service.model.registry.manifests import parse_pod
from service.scheduler.protocol.intents import CommitPlan, Intent, MakePlan
from service.scheduler.protocol.plans import (
    Place,
    Planned,
    PlanStepKey,
    Remove,
    RemovePods,
    Selection,
)
from tests.builders import HOST, matching, node, pod
from tests.concurrency.checker.state import State
from tests.reference.view import is_terminating
from tests.reference.violations import violations
from tests.scheduler.world import World, all_of, encoded, world
from tests.seeds import chance

ZONE = "zone"
WORKERS, PLANNERS, ROUNDS = 4, 8, 4
NODES = {"n1": "a", "n2": "b", "n3": "a", "n4": "b", "n5": "c"}


def web(number: int) -> Any:
    return (
        pod(f"web-{number}")
        .label(app="web")
        .request(cpu="1")
        .spread(1, ZONE, matching(app="web"))
        .require_anti_affinity(HOST, matching(app="db"))
    )


def db(name: str) -> Any:
    return pod(name).label(app="db").require_anti_affinity(HOST, matching(app="db"))


async def begin(w: World) -> None:
    nodes = [
        node(name).label({HOST: name, ZONE: zone}).allocatable(cpu="16", pods="40")
        for name, zone in NODES.items()
    ]
    guard = pod("guard").require_affinity(ZONE, matching(app="web")).on("n5")
    await w.apply(*nodes, db("db-0").on("n1"), db("db-1").on("n2"))
    await w.place(*(web(number) for number in range(9)))
    await w.apply(guard)


def removal(count: int, expected: tuple[PlanStepKey, ...] | None = None) -> CommitPlan:
    selector = LabelSelector(match_labels={"app": "web"})
    goal = Remove(pods=Selection(selector=selector, namespace="default"), count=count)
    return CommitPlan(plan=MakePlan(goal=goal), expected=expected)


def replacement(w: World, old: str, new: str) -> CommitPlan:
    made = parse_pod(encoded(db(new)), w.templates, to_place=True)
    gone = RemovePods(Selection(names=(old,), namespace="default"))
    return CommitPlan(plan=MakePlan(changes=(gone,), goal=Place(pods=(made,))))


class Planners:
    """Eight planners, each of whom has one request under way at a time."""

    def __init__(self, w: World, choices: random.Random) -> None:
        self._w = w
        self._choices = choices
        self._made = 100
        self.committed: list[tuple[Intent[Any], Planned]] = []

    async def round(self) -> None:
        await all_of(*(self._ask(worker % WORKERS) for worker in range(PLANNERS)))

    async def _ask(self, worker: int) -> None:
        intent = self._intent()
        try:
            answer = await self._w.ask(intent, worker)
        except MoorageError:
            return
        if isinstance(answer, Planned) and answer.status == "Committed":
            self.committed.append((intent, answer))

    def _intent(self) -> Intent[Any]:
        self._made += 1
        kind = self._choices.choice(("remove", "replace", "place"))
        if kind == "remove":
            return removal(self._choices.randint(1, 2))
        if kind == "place":
            return self._w.placing(web(self._made))
        return replacement(self._w, self._choices.choice(("db-0", "db-1")), f"db-{self._made}")


def broken(state: State) -> list[tuple[str, str]]:
    """The rules that do not hold of pods that are not about to leave."""
    found = [(each.name, each.rule) for each in violations(state.view)]
    pods = {name: state.pod(("Pod", "default", name)) for name, _ in found}
    return [each for each in found if not is_terminating(pods[each[0]] or {})]


@pytest.mark.parametrize("seed", range(6))
async def test_whoever_races_no_commit_of_a_plan_breaks_a_rule_or_is_half_done(seed: int) -> None:
    async with world(workers=WORKERS, seed=seed) as w:
        await begin(w)
        planners = Planners(w, chance(seed))
        for _ in range(ROUNDS):
            await planners.round()
        changes = w.log()
    ends = {answer.revision: (intent, answer) for intent, answer in planners.committed}
    assert len(ends) == len(planners.committed) > 0
    state, marked = State(), 0
    for change in changes:
        before = state.pod(("Pod", change.namespace, change.name))
        state.apply(change)
        after = state.pod(("Pod", change.namespace, change.name))
        if before is not None and after is not None:
            assert not is_terminating(before)
            marked += is_terminating(after)
        if change.revision not in ends:
            continue
        intent, answer = ends[change.revision]
        assert broken(state) == []
        for step in answer.steps:
            found = state.pod(("Pod", step.namespace or "", step.name))
            assert found is not None
            if step.action == "Place":
                assert found["spec"]["nodeName"] == step.to
                old = intent.plan.changes[0].pods.names[0]
                assert state.pod(("Pod", "default", old)) is None
            else:
                assert is_terminating(found)
    steps = [each for _, answer in planners.committed for each in answer.steps]
    assert {each.action for each in steps} == {"Place", "Delete"}
    assert marked == sum(each.action == "Delete" for each in steps)


async def test_a_plan_that_eight_have_seen_is_carried_out_once() -> None:
    async with world(workers=WORKERS) as w:
        await begin(w)
        seen = await w.ask(removal(2).plan)
        intent = removal(2, tuple(PlanStepKey.of(each) for each in seen.steps))

        async def commit(worker: int) -> str:
            try:
                return str((await w.ask(intent, worker % WORKERS)).status)
            except Conflict:
                return "Conflict"

        told = await all_of(*(commit(worker) for worker in range(PLANNERS)))
        assert sorted(told) == ["Committed"] + ["Conflict"] * (PLANNERS - 1)
