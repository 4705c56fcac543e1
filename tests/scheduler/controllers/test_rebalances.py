"""Plans that rebalance and are kept: who moves when, for whom room is kept, and when they end."""

from typing import Any

from service.scheduler.protocol.intents import CordonNode, DeleteObject, PutObject, SetPlanState
from service.scheduler.protocol.limits import Limits
from tests.builders import HOST, matching, node, pod
from tests.scheduler.world import Manifest, World, world

ZONE = "zone"
ZONES = {"a-1": "a", "a-2": "a", "b-1": "b", "b-2": "b"}


def web(number: int, *, owner: str | None = None) -> Any:
    made = (
        pod(f"web-{number}")
        .label(app="web")
        .spread(1, ZONE, matching(app="web"), soft=True)
        .request(cpu="1")
    )
    if owner is not None:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner}
        made["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    return made


async def crowded(w: World, count: int = 4, **options: Any) -> None:
    nodes = (
        node(name).label({HOST: name, ZONE: zone}).allocatable(cpu="8", pods="20")
        for name, zone in ZONES.items()
    )
    await w.apply(*nodes, *(web(number, **options).on("a-1") for number in range(count)))


async def begin(
    w: World, name: str = "balance", bounds: Manifest | None = None, **goal: Any
) -> None:
    spec = {"goal": {"type": "Rebalance", **goal}} | ({"bounds": bounds} if bounds else {})
    made = {
        "apiVersion": "moorage.dev/v1alpha1",
        "kind": "Plan",
        "metadata": {"name": name},
        "spec": spec,
    }
    await w.ask(PutObject(manifest=w.parsed(made)[0]))
    await w.pass_time(1)
    await w.pass_time(1)


async def status(w: World, name: str = "balance") -> dict[str, Any]:
    return (await w.stored("Plan", "", name) or {}).get("status") or {}


async def follow(w: World, **options: Any) -> None:
    """What an orchestrator does: stop the pods that are to leave, and place others of their names."""
    page = await w.store.objects.list(1, "Pod", limit=100)
    for row in page.rows:
        if b"deletionTimestamp" in row.body:
            await w.ask(DeleteObject(kind="Pod", namespace="default", name=row.name))
            await w.place(web(int(row.name[4:]), **options))
    await w.pass_time(1)


async def test_pods_move_and_the_plan_ends_when_nothing_is_better() -> None:
    async with world() as w:
        await crowded(w)
        await begin(w)
        told = await status(w)
        assert (told["phase"], told["evicted"], len(told["moves"])) == ("Running", 2, 2)
        assert {each["to"][0] for each in told["moves"]} == {"b"}
        assert told["objectives"] == [
            {"name": "Violations", "before": 0, "now": 0},
            {"name": "Skew", "before": 3, "now": 0},
        ]
        await follow(w)
        await w.pass_time(2)
        told = await status(w)
        assert (told["phase"], told["moved"], told.get("reason")) == ("Succeeded", 2, None)
        nodes = (await w.nodes_of_pods()).values()
        assert sorted(each[0] for each in nodes if each) == ["a", "a", "b", "b"]
        await w.assert_replicas_agree()


async def test_room_is_kept_for_the_pod_that_comes_in_place_of_one_that_moves() -> None:
    """By its name, though the old pod is gone; nobody else gets the room meanwhile."""
    async with world(limits=Limits(plan_moves_max=1)) as w:
        await crowded(w, 2)
        await w.apply(
            *(
                node(f"b-{n}").label({HOST: f"b-{n}", ZONE: "b"}).allocatable(cpu="1", pods="20")
                for n in (1, 2)
            )
        )
        await w.apply(pod("full").request(cpu="1").on("b-2"))
        await begin(w)
        (move,) = (await status(w))["moves"]
        assert move["to"] == "b-1"
        other = await w.place(pod("other").request(cpu="1").node_selector(zone="b"), queue=True)
        assert [each.outcome for each in other.results] == ["Queued"]
        await w.ask(DeleteObject(kind="Pod", namespace="default", name=move["name"]))
        await w.pass_time(1)
        assert (await w.nodes_of_pods())["other"] is None
        came = await w.place(web(int(move["name"][4:])))
        assert came.results[0].node_name == "b-1"
        await w.ask(DeleteObject(kind="Pod", namespace="default", name="full"))
        await w.pass_time(2)
        told = await status(w)
        assert (told["phase"], told["moved"]) == ("Succeeded", 1)
        assert (await w.nodes_of_pods())["other"] == "b-2"
        await w.assert_replicas_agree()


async def test_a_pod_of_the_same_controller_comes_where_room_is_kept() -> None:
    """It has another name, and comes while the old one is still there, as a ReplicaSet has it."""
    async with world(limits=Limits(plan_moves_max=1)) as w:
        await crowded(w, owner="web")
        await begin(w)
        (move,) = (await status(w))["moves"]
        stranger = await w.place(web(8, owner="other"))
        came = await w.place(web(9, owner="web"))
        assert came.results[0].node_name == move["to"] != stranger.results[0].node_name
        await w.pass_time(1)
        assert (await status(w))["moved"] == 1


async def test_a_pod_that_is_told_to_be_on_a_node_has_come_too() -> None:
    """Whoever runs the pods may place them by itself, and tell where they are."""
    async with world(limits=Limits(plan_moves_max=1)) as w:
        await crowded(w)
        await begin(w)
        (move,) = (await status(w))["moves"]
        await w.ask(DeleteObject(kind="Pod", namespace="default", name=move["name"]))
        await w.apply(web(int(move["name"][4:])).on("a-2"))
        await w.pass_time(1)
        told = await status(w)
        assert (told["elsewhere"], told["moved"]) == (1, 0)


async def test_whoever_comes_elsewhere_is_counted_and_planned_anew() -> None:
    async with world(limits=Limits(plan_moves_max=1)) as w:
        await crowded(w)
        await begin(w)
        (move,) = (await status(w))["moves"]
        await w.ask(CordonNode(name=move["to"], unschedulable=True))
        await follow(w)
        for _ in range(8):
            await follow(w)
        told = await status(w)
        assert (told["phase"], told["elsewhere"]) == ("Succeeded", 1)
        assert [each["now"] for each in told["objectives"]] == [0, 0]


async def test_room_is_kept_no_longer_than_it_may_be_nor_for_a_plan_that_is_over() -> None:
    async with world(limits=Limits(plan_moves_max=1, plan_reservation_seconds=5)) as w:
        await crowded(w)
        await begin(w)
        assert await reserved(w)
        await w.ask(SetPlanState(name="balance", state="Paused"))
        await w.pass_time(2)
        assert await reserved(w)
        for _ in range(5):
            await w.pass_time(1)
        told = await status(w)
        assert (told["phase"], told["missing"], told["evicted"]) == ("Paused", 1, 1)
        assert not await reserved(w)
        await w.ask(SetPlanState(name="balance", state="Running"))
        await w.pass_time(1)
        await w.pass_time(1)
        assert await reserved(w)
        await w.ask(SetPlanState(name="balance", state="Cancelled"))
        await w.pass_time(1)
        assert not await reserved(w)
        await begin(w, "second")
        assert await reserved(w)
        await w.ask(DeleteObject(kind="Plan", namespace="", name="second"))
        await w.pass_time(1)
        assert not await reserved(w)


async def test_a_plan_moves_no_more_than_it_may_and_nobody_who_is_protected() -> None:
    async with world() as w:
        await crowded(w)
        await begin(w, "protected", {"protect": {"selector": matching(app="web")}})
        assert (await status(w, "protected"))["phase"] == "Succeeded"
        await begin(w, "one", movesMax=1)
        await follow(w)
        told = await status(w, "one")
        assert (told["phase"], told["moved"], told["reason"]) == ("Succeeded", 1, "MovesMax")
        await w.ask(DeleteObject(kind="Pod", namespace="default", name="web-3"))
        await w.apply(web(3).on("a-1"), web(4).on("a-1"))
        await begin(w, "two", {"evictionsMax": 1})
        await follow(w)
        told = await status(w, "two")
        assert (told["phase"], told["moved"], told["reason"]) == ("Succeeded", 1, "EvictionsMax")


async def test_a_budget_is_heeded_as_long_as_nobody_has_come() -> None:
    async with world() as w:
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"maxUnavailable": 1, "selector": matching(app="web")},
        }
        await crowded(w)
        await w.apply(budget)
        await begin(w)
        told = await status(w)
        assert (told["evicted"], len(told["moves"])) == (1, 1)
        assert [each["reason"] for each in told["waitingPods"]] == ["DisruptionBudget"]
        for _ in range(3):
            await follow(w)
        assert (await status(w))["moved"] == 2


async def reserved(w: World) -> int:
    return len((await w.store.objects.list(1, "MoveReservation", limit=10)).rows)
