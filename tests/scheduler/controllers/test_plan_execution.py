"""Plans that are kept: when steps are taken, and how long a plan is there after its end."""

from typing import Any

import msgspec

from service.scheduler.protocol.intents import (
    DeleteObject,
    DrainNode,
    PutObject,
    ReportLine,
    ReportStatus,
    SetPlanState,
    StatusReport,
)
from service.scheduler.protocol.limits import Limits
from tests.builders import HOST, matching, node, pod
from tests.scheduler.world import World, world

READY = b'{"conditions":[{"type":"Ready","status":"True"}]}'
N1, N2 = (node(name).label({HOST: name}) for name in ("n1", "n2"))


async def plan(w: World, name: str = "drain-n1") -> dict[str, Any]:
    return await w.stored("Plan", "", name) or {}


async def test_a_plan_that_has_ended_is_deleted_after_an_hour() -> None:
    async with world(limits=Limits(plan_kept_seconds=3600)) as w:
        await w.apply(N1, N2)
        await w.ask(DrainNode(name="n1"))
        await w.pass_time(1)
        assert (await plan(w))["status"]["phase"] == "Succeeded"
        for _ in range(3590):
            await w.pass_time(1)
        assert await plan(w)
        for _ in range(20):
            await w.pass_time(1)
        assert not await plan(w)
        head = await w.head_revision()
        for _ in range(20):
            await w.pass_time(1)
        assert await w.head_revision() == head


async def test_a_plan_at_rest_commits_nothing_whatever_else_happens() -> None:
    """The pod waits for another node, and its message changes in numbers alone."""
    async with world() as w:
        large = pod("large").request(cpu="64").on("n1")
        await w.apply(N1, N2, large)
        await w.ask(DrainNode(name="n1"))
        await w.pass_time(5)
        before = await plan(w)
        assert [each["reason"] for each in before["status"]["waitingPods"]] == ["Unschedulable"]
        for number in range(5):
            more = node(f"m{number}").label({HOST: f"m{number}"})
            await w.apply(more, pod(f"p{number}").on(f"m{number}"))
            await w.pass_time(5)
        assert await plan(w) == before
        assert sum(change.kind == "Plan" for change in w.log()) == 2  # made, and begun


async def test_a_step_evicts_at_most_so_many_and_the_next_one_follows() -> None:
    async with world(limits=Limits(plan_evictions_max=2)) as w:
        await w.apply(N1, N2, *(pod(f"p{number}").on("n1") for number in range(5)))
        await w.ask(DrainNode(name="n1"))
        for _ in range(5):
            await w.pass_time(1)
        status = (await plan(w))["status"]
        assert (status["evicted"], status["leaving"], status["waiting"]) == (5, 5, 0)
        told = [msgspec.json.decode(each.body) for each in w.log() if each.kind == "Plan"]
        assert [each["status"]["evicted"] for each in told[1:]] == [2, 4, 5]


async def test_the_bounds_of_a_drain_hold_from_its_beginning_to_its_end() -> None:
    async with world(limits=Limits(plan_evictions_max=2)) as w:
        kept = pod("kept").label(app="kept").on("n1")
        await w.apply(N1, N2, kept, *(pod(f"p{number}").on("n1") for number in range(5)))
        bounds = {"evictionsMax": 3, "protect": {"selector": matching(app="kept")}}
        goal = {"type": "Drain", "nodes": {"names": ["n1"]}}
        spec = {"goal": goal, "bounds": bounds, "whenUnschedulable": "Evict"}
        made = {"apiVersion": "moorage.dev/v1alpha1", "kind": "Plan", "spec": spec}
        (manifest,) = w.parsed({**made, "metadata": {"name": "drain-n1"}})
        await w.ask(PutObject(manifest=manifest))
        for _ in range(5):
            await w.pass_time(1)
        status = (await plan(w))["status"]
        assert (status["phase"], status["evicted"], status["waiting"]) == ("Running", 3, 3)
        told = {each["name"]: each["reason"] for each in status["waitingPods"]}
        assert told == {"kept": "Protected", "p3": "EvictionsMax", "p4": "EvictionsMax"}


async def test_a_group_that_is_larger_than_a_step_leaves_whole() -> None:
    async with world(limits=Limits(plan_evictions_max=2)) as w:
        group = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 3}}
        grouped = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", **group}
        label = {"scheduling.x-k8s.io/pod-group": "g"}
        members = (pod(f"g{number}").label(label).on("n1") for number in range(3))
        await w.apply(N1, N2, grouped, *members)
        await w.ask(DrainNode(name="n1"))
        for _ in range(3):
            await w.pass_time(1)
        told = [msgspec.json.decode(each.body) for each in w.log() if each.kind == "Plan"]
        assert [each["status"]["evicted"] for each in told[1:]] == [3]


async def test_room_is_kept_for_what_comes_in_place_of_pods_that_are_leaving() -> None:
    """There is room for one of two; the second waits although the first is still on its node."""
    async with world() as w:
        fits_one = N2.allocatable(cpu="1500m", pods="10")
        pods = (pod(f"p{number}").request(cpu="1").on("n1") for number in range(2))
        await w.apply(N1, fits_one, *pods)
        await w.ask(DrainNode(name="n1"))
        for _ in range(5):
            await w.pass_time(1)
        status = (await plan(w))["status"]
        assert (status["evicted"], status["leaving"], status["waiting"]) == (1, 1, 1)
        assert [each["reason"] for each in status["waitingPods"]] == ["Unschedulable"]


async def test_pods_that_are_leaving_do_not_count_for_their_budgets_twice() -> None:
    """What will come in place of a pod that is leaving is not there yet."""
    async with world() as w:
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"minAvailable": 2, "selector": matching(app="w")},
        }
        pods = (pod(f"w{number}").label(app="w").on("n1") for number in range(3))
        await w.apply(N1, N2, budget, *pods)
        await w.ask(DrainNode(name="n1"))
        for _ in range(5):
            await w.pass_time(1)
        assert (await plan(w))["status"]["evicted"] == 1
        await w.ask(DeleteObject(kind="Pod", namespace="default", name="w0"))
        for _ in range(5):
            await w.pass_time(1)
        assert (await plan(w))["status"]["evicted"] == 1
        await w.place(pod("w0").label(app="w"))
        for _ in range(5):
            await w.pass_time(1)
        assert (await plan(w))["status"]["evicted"] == 2


async def test_two_plans_share_what_a_budget_allows() -> None:
    async with world() as w:
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"maxUnavailable": 1, "selector": matching(app="w")},
        }
        n3 = node("n3").label({HOST: "n3"})
        pods = (pod(f"w{number}").label(app="w").on(f"n{number}") for number in (1, 2))
        await w.apply(N1, N2, n3, budget, *pods)
        await w.ask(DrainNode(name="n1"))
        await w.ask(SetPlanState(name="drain-n1", state="Paused"))
        await w.ask(DrainNode(name="n2"))
        await w.ask(SetPlanState(name="drain-n1", state="Running"))
        for _ in range(5):
            await w.pass_time(1)
        statuses = [(await plan(w, f"drain-{name}"))["status"] for name in ("n1", "n2")]
        assert sorted(each["evicted"] for each in statuses) == [0, 1]


async def test_a_plan_for_a_node_that_is_not_there_has_nothing_to_do() -> None:
    async with world() as w:
        spec = {"goal": {"type": "Drain", "nodes": {"names": ["gone"]}}}
        made = {"apiVersion": "moorage.dev/v1alpha1", "kind": "Plan", "spec": spec}
        (manifest,) = w.parsed({**made, "metadata": {"name": "gone"}})
        await w.ask(PutObject(manifest=manifest))
        await w.pass_time(1)
        assert (await plan(w, "gone"))["status"]["phase"] == "Succeeded"


async def put_release(w: World, template: Any, bounds: Any = None, **goal: Any) -> None:
    spec = {
        "goal": {
            "type": "Replace",
            "namespace": "default",
            "selector": matching(app="w"),
            "template": template,
            **goal,
        }
    } | ({"bounds": bounds} if bounds else {})
    made = {"apiVersion": "moorage.dev/v1alpha1", "kind": "Plan", "spec": spec}
    (manifest,) = w.parsed({**made, "metadata": {"name": "to-v2"}})
    await w.ask(PutObject(manifest=manifest))


async def test_a_release_without_progress_says_so_and_goes_on() -> None:
    async with world() as w:
        old = pod("w0").label(app="w").on("n1")
        await w.apply(N1, N2, old)
        template = pod("w-v2").label(app="w").request(cpu="64")
        await put_release(w, template, replicas=1, maxUnavailable=0, progressDeadlineSeconds=60)
        for _ in range(58):
            await w.pass_time(1)
        status = (await plan(w, "to-v2"))["status"]
        assert [each["reason"] for each in status["waitingPods"]] == ["Unschedulable"]
        assert "reason" not in status
        for _ in range(5):
            await w.pass_time(1)
        late = (await plan(w, "to-v2"))["status"]
        assert (late["reason"], late["phase"]) == ("ProgressDeadlineExceeded", "Running")
        assert (late["evicted"], late["waiting"]) == (0, 1)
        head = await w.head_revision()
        await w.pass_time(5)
        assert await w.head_revision() == head
        await w.apply(node("n3").label({HOST: "n3"}).allocatable(cpu="64", pods="9"))
        await w.pass_time(2)
        now = (await plan(w, "to-v2"))["status"]
        assert (now["placed"], now["waves"]) == (1, 1)
        assert "reason" not in now


async def test_the_bounds_of_a_release_hold_from_its_beginning_to_its_end() -> None:
    """One may be evicted, and one is protected; the third waits until the bound is raised."""
    async with world() as w:
        kept = pod("w9").label(app="w", role="first").on("n1")
        await w.apply(
            N1, N2, kept, *(pod(f"w{number}").label(app="w").on("n1") for number in range(2))
        )
        bounds = {"evictionsMax": 1, "protect": {"selector": matching(role="first")}}
        kept_before = await w.stored("Pod", "default", "w9")
        template = pod("w-v2").label(app="w")
        await put_release(w, template, bounds, replicas=1, maxSurge=3, maxUnavailable=0)
        await w.pass_time(1)
        status = StatusReport(namespace="default", name="w-v2-0", status=READY)
        await w.ask(ReportStatus(lines=(ReportLine(line=1, report=status),)))
        for _ in range(4):
            await w.pass_time(1)
        told = (await plan(w, "to-v2"))["status"]
        assert (told["evicted"], told["waiting"]) == (1, 2)
        assert [each["reason"] for each in told["waitingPods"]] == ["EvictionsMax"]
        assert await w.stored("Pod", "default", "w9") == kept_before
