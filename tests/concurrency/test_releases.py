"""Rolling releases that race with orchestrators and kills: what the log says of each wave.

The run is repeatable from its seed, and its whole history is judged by the slow reference.
"""

from typing import Any

import pytest

from service.model.log.commit import Change
from service.scheduler.plans.replace.rollout import PodReadiness
from service.scheduler.protocol.intents import (
    DeleteObject,
    PutObject,
    ReportLine,
    ReportStatus,
    SetPlanState,
    StatusReport,
)
from service.scheduler.protocol.limits import Limits
from tests.builders import HOST, matching, node, pod
from tests.concurrency.checker.releases import Bounds, counted, is_ready, wrongs
from tests.concurrency.plan_run import PlanRun
from tests.reference.view import Manifest, is_terminating, spec_of
from tests.scheduler.world import world
from tests.seeds import chance

ZONE = "zone"
LOST = ("n1", "n2")
NODES = {"n1": "a", "n2": "a", "n3": "b", "n4": "b", "n5": "c", "n6": "c"}
BOUNDS = Bounds(most=10, least=7)
"""The bounds of eight pods, with `maxSurge` 2 and `maxUnavailable` 1."""
LIMITS = Limits(plan_look_seconds=0.5)
READY = b'{"conditions":[{"type":"Ready","status":"True"}]}'
PATIENCE_ROUNDS = 200


def web(name: str, version: str) -> Any:
    made = pod(name).label(app="web", version=version).request(cpu="1")
    return made.spread(1, ZONE, matching(app="web"), matchLabelKeys=["version"])


class Run(PlanRun):
    """One history: orchestrators, an operator and a zone that is lost, as chance has it."""

    async def begin(self) -> None:
        nodes = [
            node(name).label({HOST: name, ZONE: zone}).allocatable(cpu="16", pods="40")
            for name, zone in NODES.items()
        ]
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"minAvailable": 6, "selector": matching(app="web")},
        }
        await self.w.apply(*nodes, budget)
        await self.w.place(*(web(f"v1-{number}", "1") for number in range(8)))
        await self._report(eager=1)
        goal = {
            "type": "Replace",
            "namespace": "default",
            "selector": matching(app="web"),
            "template": web("v2", "2"),
            "replicas": 8,
            "maxSurge": 2,
            "maxUnavailable": 1,
        }
        made = {"apiVersion": "moorage.dev/v1alpha1", "kind": "Plan", "spec": {"goal": goal}}
        (plan,) = self.w.parsed({**made, "metadata": {"name": "to-v2"}})
        await self.w.ask(PutObject(manifest=plan))

    async def go(self, rounds: int) -> Manifest:
        """Carry on; a worker is killed and a zone is lost on the way. Returns the plan."""
        kill, loss = (self.choices.randrange(1, rounds) for _ in range(2))
        for number in range(rounds):
            if number == kill:
                self.kill()
            if number == loss:
                for name in LOST:
                    await self.attempt(DeleteObject(kind="Node", namespace="", name=name))
            if self.choices.random() < 0.2:
                self.w.store.trouble.append(self.choices.choice(("lose the answer", "refuse")))
            state = self.choices.choice(("Paused", "Running", "Running"))
            await self.attempt(SetPlanState(name="to-v2", state=state))
            await self._orchestrate(eager=self.choices.random())
            await self.w.pass_time(self.choices.choice((0.1, 1, 2)))
        self.w.store.trouble.clear()
        for _ in range(PATIENCE_ROUNDS):
            await self.attempt(SetPlanState(name="to-v2", state="Running"))
            await self._orchestrate(eager=1)
            await self.w.pass_time(1)
            plan = await self.w.stored("Plan", "", "to-v2")
            assert plan is not None
            if plan.get("status", {}).get("phase") == "Succeeded":
                return plan
        raise AssertionError(f"The release did not end: {plan}")

    async def _orchestrate(self, eager: float) -> None:
        """Stop pods that are to leave, forget those whose node is gone, and report what runs."""
        page = await self.w.store.objects.list(1, "Node", limit=1000)
        there = {row.name for row in page.rows}
        for name, found in sorted((await self.pods()).items()):
            gone = is_terminating(found) or spec_of(found).get("nodeName") not in there
            if gone and self.choices.random() < eager:
                await self.attempt(DeleteObject(kind="Pod", namespace="default", name=name))
        await self._report(eager)

    async def _report(self, eager: float) -> None:
        for name, found in sorted((await self.pods()).items()):
            if not is_ready(found) and self.choices.random() < eager:
                report = StatusReport(namespace="default", name=name, status=READY)
                await self.attempt(ReportStatus(lines=(ReportLine(line=1, report=report),)))


async def history(seed: int, rounds: int = 20) -> tuple[list[Change], Manifest, list[str]]:
    choices = chance(seed)
    async with world(workers=2, seed=seed, limits=LIMITS) as w:
        run = Run(w, choices)
        await run.begin()
        plan = await run.go(rounds)
        return w.log(), plan, sorted(await run.pods())


def judged(changes: list[Change]) -> list[str]:
    return list(wrongs(changes, "v1-", "v2-", BOUNDS))


@pytest.mark.exploration
@pytest.mark.parametrize("seed", range(20))
async def test_whatever_races_with_a_release_no_wave_is_wrong_nor_taken_twice(seed: int) -> None:
    changes, plan, left = await history(seed)
    assert judged(changes) == []
    status = plan["status"]
    assert counted(changes, "v2-") == (status["evicted"], status["placed"])
    assert left
    assert all(each.startswith("v2-") for each in left)


async def test_another_worker_goes_on_with_the_release_of_one_that_was_killed() -> None:
    changes, plan, _ = await history(0, rounds=6)
    assert judged(changes) == []
    assert plan["status"]["updated"] == plan["status"]["ready"] == 8


async def test_who_does_not_wait_for_readiness_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PodReadiness, "of", lambda _self, pod: pod.pod.node_name is not None)
    changes, _, _ = await history(0, rounds=6)
    assert any("not ready" in each for each in judged(changes))
