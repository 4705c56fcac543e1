"""Pods without a node are placed without being asked for again."""

from itertools import pairwise

import pytest

from service.scheduler.commit.metrics import NoMeter
from service.scheduler.protocol.intents import (
    DeleteObject,
    PatchConfig,
    PatchObject,
    PutConfig,
    PutObject,
)
from service.scheduler.protocol.limits import Limits
from tests.builders import matching, namespace, node, pod
from tests.scheduler.world import World, world

LEAVE_PENDING = PutConfig(config={"placePendingPods": False})


async def put(w: World, manifest, worker: int = 0):
    (parsed,) = w.parsed(manifest)
    return await w.ask(PutObject(manifest=parsed), worker)


async def delete(w: World, kind: str, name: str, worker: int = 0):
    space = "default" if kind == "Pod" else ""
    return await w.ask(DeleteObject(kind=kind, namespace=space, name=name), worker)


async def settled(w: World) -> dict[str, str | None]:
    """The nodes of all pods, after everything has happened that needs no time."""
    await w.others(300)
    return await w.nodes_of_pods()


async def condition(w: World, name: str):
    stored = await w.stored("Pod", "default", name)
    (told,) = stored["status"]["conditions"]
    return told["status"], told["reason"], told["message"]


async def test_a_pod_that_is_put_is_placed_at_once():
    async with world() as w:
        await w.apply(node("n1"))
        await put(w, pod("a"))
        assert await settled(w) == {"a": "n1"}


class Deaths:
    """Workers that died of pods in a namespace, and the pods that are decided."""

    def __init__(self) -> None:
        self.by_namespace: dict[str, int] = {}
        self.decided_pods: list[str] = []

    def refresh(self) -> int:
        return sum(self.by_namespace.values())

    def deaths(self, cluster_id: int, namespace: str, spec: bytes) -> int:
        return self.by_namespace.get(namespace, 0)

    def deciding(self, cluster_id: int, namespace: str, name: str, spec: bytes) -> int:
        self.decided_pods.append(name)
        return self.deaths(cluster_id, namespace, spec)

    def decided(self) -> None:
        self.decided_pods.append("")

    def pause(self) -> None:
        pass

    def resume(self) -> None:
        pass


async def test_a_pod_of_which_two_workers_died_is_set_aside():
    deaths = Deaths()
    deaths.by_namespace["default"] = 2
    async with world(apart=lambda _world, _worker: {"suspects": deaths}) as w:
        await w.apply(node("n1"))
        await put(w, pod("a"))
        assert await settled(w) == {"a": None}
        status, reason, message = await condition(w, "a")
        assert (status, reason) == ("False", "SchedulerError")
        assert message.startswith("The pod is set aside: two worker processes ended")
        (result,) = (await w.place(pod("b"))).results
        assert (result.outcome, result.reason) == ("Denied", "SchedulerError")
        # Each is noted only until it is refused.
        after = dict(pairwise(deaths.decided_pods))
        assert after["a"] == after["b"] == ""
        deaths.by_namespace.clear()
        await w.pass_time(10)
        assert await settled(w) == {"a": "n1"}


async def test_it_is_noted_which_pod_is_decided():
    deaths = Deaths()
    async with world(apart=lambda _world, _worker: {"suspects": deaths}) as w:
        await w.apply(node("n1"))
        await w.place(pod("a"), pod("b"))
        await put(w, pod("c"))
        await settled(w)
        named = [name for name in deaths.decided_pods if name]
        assert named == ["a", "b", "c"]
        assert deaths.decided_pods[-1] == ""


class Missed(NoMeter):
    """Counts the pods that no change had woken."""

    def __init__(self) -> None:
        self.pods = 0

    def missed_wakeups(self, pods: int) -> None:
        self.pods += pods


async def test_a_pod_that_no_change_wakes_is_placed_late_and_reported(monkeypatch, caplog):
    missed = Missed()
    async with world(apart=lambda _world, _worker: {"meter": missed}) as w:
        await w.apply(node("n1").cordon())
        await put(w, pod("a"))
        assert await settled(w) == {"a": None}
        monkeypatch.setattr("service.scheduler.pending.queue.events_of", lambda _: [])
        await w.apply(node("n1"))
        assert await settled(w) == {"a": None}
        await w.pass_time(Limits().pending_retry_seconds + 20)
        assert await settled(w) == {"a": "n1"}
    assert missed.pods == 1
    (told,) = [each for each in caplog.records if "no change had woken it" in each.message]
    assert (told.levelname, vars(told)["pod"]) == ("WARNING", "a")
    assert vars(told)["plugins"] == "NodeUnschedulable"


async def test_service_a_is_placed_in_the_zone_of_b_once_b_is():
    async with world() as w:
        await w.apply(node("n1").label(zone="z1"), node("n2").label(zone="z2"))
        for name in ("a1", "a2", "a3"):
            await put(w, pod(name).label(app="a").require_affinity("zone", matching(app="b")))
        assert set((await settled(w)).values()) == {None}
        assert await condition(w, "a2") == (
            "False",
            "Unschedulable",
            "0/2 nodes are available: 2 node(s) didn't match pod affinity rules.",
        )
        await w.place(pod("b").label(app="b").node_selector(zone="z1"))
        assert await settled(w) == dict.fromkeys(("a1", "a2", "a3", "b"), "n1")


async def test_a_pending_b_does_not_help_a():
    async with world() as w:
        await w.apply(node("n1").label(zone="z1"))
        await put(w, pod("a").require_affinity("zone", matching(app="b")))
        await put(w, pod("b").label(app="b").node_selector(zone="elsewhere"))
        assert await settled(w) == {"a": None, "b": None}


WAITING = {
    "room": (pod("p").request(cpu="3"), node("n1").allocatable(cpu="2", pods="9")),
    "a label": (pod("p").node_selector(disk="ssd"), node("n1")),
    "a taint": (pod("p"), node("n1").taint("dedicated", "db")),
    "a cordon": (pod("p"), node("n1").cordon()),
}
HELP = {
    "room": node("n1").allocatable(cpu="4", pods="9"),
    "a label": node("n1").label(disk="ssd"),
    "a taint": node("n1"),
    "a cordon": node("n1"),
}


@pytest.mark.parametrize("missing", sorted(WAITING))
async def test_a_changed_node_wakes_what_waits_for_it(missing):
    async with world() as w:
        waiting, before = WAITING[missing]
        await w.apply(before)
        await put(w, waiting)
        assert await settled(w) == {"p": None}
        await put(w, HELP[missing])
        assert await settled(w) == {"p": "n1"}


async def test_a_pod_that_goes_makes_room_and_frees_its_port():
    async with world() as w:
        await w.apply(node("n1").allocatable(cpu="2", pods="9"))
        await w.place(pod("old").request(cpu="2").host_port(80))
        await put(w, pod("big").request(cpu="2"))
        await put(w, pod("web").host_port(80))
        assert (await settled(w))["big"] is None
        await delete(w, "Pod", "old")
        assert await settled(w) == {"big": "n1", "web": "n1"}


async def test_a_relabelled_namespace_wakes_affinity():
    async with world() as w:
        await w.apply(node("n1").label(zone="z"), namespace("shop"))
        await w.place(pod("b", "shop").label(app="b"))
        selector = {"matchLabels": {"team": "red"}}
        wants = pod("a").require_affinity("zone", matching(app="b"), namespaceSelector=selector)
        await put(w, wants)
        assert (await settled(w))["a"] is None
        await put(w, namespace("shop").label(team="red"))
        assert (await settled(w))["a"] == "n1"


async def test_spreading_goes_on_when_there_is_a_pod_more_elsewhere():
    async with world() as w:
        await w.apply(
            node("n1").label(zone="a"), node("n2").label(zone="b").allocatable(pods="1", cpu="9")
        )
        one = pod("p1").label(app="x").spread(1, "zone", matching(app="x"))
        await w.place(one, one.named("p2"))
        await put(w, one.named("p3"))
        await put(w, one.named("p4"))
        nodes = await settled(w)
        assert sorted(str(n) for n in nodes.values()) == ["None", "n1", "n1", "n2"]
        await put(w, node("n2").label(zone="b").allocatable(pods="5", cpu="9"))
        assert sorted(str(n) for n in (await settled(w)).values()) == ["n1", "n1", "n2", "n2"]


async def test_the_highest_priority_goes_first_then_the_oldest():
    async with world() as w:
        for name, priority in (("low", 1), ("old", 5), ("young", 5), ("high", 9)):
            one = pod(name).request(cpu="1")
            one["spec"]["priority"] = priority
            await put(w, one)
            await w.pass_time(1)
        for number, name in enumerate(("high", "old", "young", "low")):
            assert (await settled(w))[name] is None
            await put(w, node(f"n{number}").allocatable(cpu="1", pods="9"))
            assert (await settled(w))[name] == f"n{number}"


async def test_what_is_refused_again_and_again_backs_off():
    async with world(limits=Limits(pending_early_tries=0)) as w:
        await put(w, pod("a").require_affinity("zone", matching(app="b")))
        for _ in range(5):
            await put(w, node("n").label(zone="z"))
            await settled(w)
            await delete(w, "Node", "n")
            await settled(w)
        await w.apply(node("n").label(zone="z"))
        await w.place(pod("b").label(app="b"))
        assert (await settled(w))["a"] is None
        assert w.schedulers[0].pending_pods()["default"]["backoff"] == 1
        for _ in range(45):
            await w.pass_time(0.25)
        assert (await settled(w))["a"] == "n"


async def test_gated_pods_and_unknown_schedulers_stay_out():
    async with world() as w:
        await w.apply(node("n1"))
        gated, strange = pod("gated"), pod("strange")
        gated["spec"]["schedulingGates"] = [{"name": "quota"}]
        strange["spec"]["schedulerName"] = "mine"
        await put(w, gated)
        await put(w, strange)
        assert await settled(w) == {"gated": None, "strange": None}
        assert (await condition(w, "gated"))[1] == "SchedulingGated"
        assert "status" not in await w.stored("Pod", "default", "strange")
        counts = w.schedulers[0].pending_pods()["default"]
        assert counts == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 1}
        await put(w, pod("gated"))
        assert (await settled(w))["gated"] == "n1"
        patch = {"profiles": [{"schedulerName": "mine"}]}
        await w.ask(PatchConfig(patch_type="merge", patch=patch))
        assert (await settled(w))["strange"] == "n1"


async def test_nothing_is_placed_where_the_setting_is_off():
    async with world() as w:
        await w.ask(LEAVE_PENDING)
        await w.apply(node("n1"), pod("a"))
        assert await settled(w) == {"a": None}
        await w.ask(PutConfig(config={}))
        assert await settled(w) == {"a": "n1"}


async def test_p18_pods_that_wait_are_not_rewritten_for_another_count_of_nodes():
    async with world() as w:
        await w.apply(*(pod(f"p{i}").request(cpu="9") for i in range(50)), node("n0"))
        await settled(w)
        before = await w.head_revision()
        for number in range(1, 6):
            await w.apply(node(f"n{number}"))
            await settled(w)
        assert await w.head_revision() == before + 5


async def test_p18_equal_pods_are_told_other_reasons_at_most_once_a_minute():
    async with world() as w:
        await w.apply(*(pod(f"p{i}").request(cpu="9") for i in range(50)), node("n0"))
        await settled(w)
        assert (await condition(w, "p49"))[2] == "0/1 nodes are available: 1 Insufficient cpu."
        before = await w.head_revision()
        await w.apply(node("n1").cordon())
        await settled(w)
        await w.pass_time(1)
        await settled(w)
        # One for the node, one for the pod that was tried.
        assert await w.head_revision() <= before + 2
        for _ in range(62):
            await w.pass_time(1)
        await settled(w)
        assert "unschedulable" in (await condition(w, "p49"))[2]


async def test_equal_pods_cost_one_attempt():
    async with world() as w:
        await w.apply(node("n0"), *(pod(f"p{i}").request(cpu="9") for i in range(400)))
        await settled(w)
        counts = w.schedulers[0].pending_pods()["default"]
        assert counts["unschedulable"] == 400
        commits = len(w.store.commits_begun)
        await w.apply(node("n1"))
        await settled(w)
        assert len(w.store.commits_begun) == commits + 1


async def test_a_big_pod_is_not_starved_by_a_stream_of_small_ones():
    """Two nodes of 4 cpu; whenever a small pod ends, another one is waiting for its place."""
    async with world() as w:
        await w.apply(*(node(f"n{i}").allocatable(cpu="4", pods="20") for i in range(2)))
        small = pod("small").request(cpu="1")
        await w.place(*(small.named(f"s{i}") for i in range(8)))
        await put(w, pod("big").request(cpu="4"))
        await settled(w)
        for number in range(8, 60):
            await w.pass_time(1)
            await put(w, small.named(f"s{number}"))
            nodes = await settled(w)
            if nodes["big"]:
                break
            oldest = next(f"s{i}" for i in range(number) if nodes.get(f"s{i}"))
            await delete(w, "Pod", oldest)
        assert nodes["big"] is not None


async def test_of_two_workers_the_holder_of_the_lease_places():
    async with world(workers=2) as w:
        w.store.hints = True
        await put(w, pod("a"), worker=0)
        await settled(w)
        await put(w, pod("b"), worker=1)
        await w.apply(node("n1"), worker=1)
        await w.pass_time(0.5)
        assert await settled(w) == {"a": "n1", "b": "n1"}
        assert w.store.states[1].leases["pending"].holder.startswith("00000001")
        await w.assert_replicas_agree()


@pytest.mark.parametrize("seed", range(20))
async def test_a_second_holder_by_mistake_is_merely_wasteful(seed):
    async with world(workers=2, seed=seed) as w:

        async def always(cluster_id, name, holder, seconds):
            return True

        w.store.leases.acquire = always  # type: ignore[method-assign, assignment]
        pods = [
            pod(f"p{i}").label(app="x").require_anti_affinity("host", matching(app="x"))
            for i in range(6)
        ]
        for number, each in enumerate(pods):
            await put(w, each, worker=number % 2)
        for number in range(4):
            await put(w, node(f"n{number}").label(host=f"h{number}"), worker=number % 2)
        for _ in range(60):
            await w.pass_time(0.5)
        nodes = [name for name in (await settled(w)).values() if name]
        assert sorted(nodes) == ["n0", "n1", "n2", "n3"]
        await w.assert_replicas_agree()


async def test_another_worker_takes_over_when_one_dies():
    async with world(workers=2) as w:
        await w.apply(pod("a"), pod("b"))
        await settled(w)
        _kill(w, 0)
        await w.apply(node("n1"), worker=1)
        assert await settled(w) == {"a": None, "b": None}
        for _ in range(20):
            await w.pass_time(0.25)
        assert await settled(w) == {"a": "n1", "b": "n1"}


async def test_clusters_that_nobody_asks_for_are_found_after_a_crash():
    async with world(workers=2) as w:
        await w.apply(pod("a"), worker=0)
        await settled(w)
        w.store.mute = True
        _kill(w, 0)
        parsed = w.parsed(node("n1"))
        assert parsed
        for _ in range(20):
            await w.pass_time(0.25)
        assert w.store.states[1].leases["pending"].holder.startswith("00000002")
        assert "default" in w.schedulers[1].replicas()


async def test_a_worker_that_stops_hands_over_at_once():
    async with world(workers=2) as w:
        await w.apply(pod("a"), worker=0)
        await settled(w)
        await w.schedulers[0].stop()
        await w.apply(node("n1"), worker=1)
        assert await settled(w) == {"a": "n1"}


async def test_a_start_finds_pods_that_wait_without_any_lease():
    async with world() as w:
        await w.ask(LEAVE_PENDING)
        await w.apply(node("n1"), pod("a"))
        other = World()
        other.store.state.states = w.store.states
        await w.store.leases.release(1, "pending", "")
        await w.ask(PutConfig(config={}))
        assert await settled(w) == {"a": "n1"}


@pytest.mark.parametrize("trouble", ["lose the answer", "hold", "refuse"])
async def test_commits_that_fail_lose_no_pending_pod(trouble):
    async with world() as w:
        await w.apply(node("n1"), pod("big").request(cpu="100"))
        await settled(w)
        w.store.trouble = [None, trouble]  # type: ignore[list-item]
        await put(w, pod("a"))
        for _ in range(60):
            await w.pass_time(0.5)
            await w.others(50)
        assert (await settled(w))["a"] == "n1"


def _kill(w: World, worker: int) -> None:
    """Let a worker do nothing any more, as if its process had gone."""
    scheduler = w.schedulers[worker]
    for task in scheduler.tasks:
        task.cancel()
    scheduler.loops.clear()
    scheduler.pending.drop(1)


async def test_a_patched_pod_is_tried_as_what_it_is_now():
    async with world() as w:
        await w.apply(node("n1").allocatable(cpu="2", pods="9"))
        await put(w, pod("a").node_selector(disk="ssd"))
        assert await settled(w) == {"a": None}
        patch = PatchObject(
            kind="Pod",
            namespace="default",
            name="a",
            patch_type="merge",
            patch={"spec": {"nodeSelector": None}},
        )
        await w.ask(patch)
        assert await settled(w) == {"a": "n1"}


ONE_CPU = node("n1").allocatable(cpu="1", memory="8Gi", pods="9")


async def test_freed_room_goes_to_the_pod_for_which_it_was_kept_and_not_to_an_older_equal_one():
    async with world() as w:
        await w.apply(ONE_CPU)
        await w.place(pod("running").request(cpu="1"))
        await put(w, pod("a").request(cpu="1"))
        await put(w, pod("b").request(cpu="1").nominated("n1"))
        assert await settled(w) == {"running": "n1", "a": None, "b": None}
        await delete(w, "Pod", "running")
        assert await settled(w) == {"a": None, "b": "n1"}
        assert "nominatedNodeName" not in (await w.stored("Pod", "default", "b"))["status"]


async def test_who_gives_up_the_room_that_was_kept_helps_others():
    async with world() as w:
        await w.apply(ONE_CPU)
        await put(w, pod("keeping").request(cpu="1").nominated("n1").scheduler_name("another"))
        await put(w, pod("a").request(cpu="1"))
        assert await settled(w) == {"keeping": None, "a": None}
        await delete(w, "Pod", "keeping")
        assert await settled(w) == {"a": "n1"}


PREEMPTING = PutConfig(config={"queuePreemption": "Evict"})


def urgent(name: str, priority: int = 1000):
    return pod(name).request(cpu="1").priority(priority)


async def full(w: World, *names: str) -> None:
    """Nodes with room for one pod of one cpu, each with one that may be evicted."""
    for name in names:
        await w.apply(node(name).allocatable(cpu="1", memory="8Gi", pods="9"))
        await put(w, pod(f"low-{name}").request(cpu="1").priority(0).on(name))


async def leaving(w: World) -> list[str]:
    stored = [await w.stored("Pod", "default", name) for name in await w.nodes_of_pods()]
    marked = [each["metadata"] for each in stored if "deletionTimestamp" in each["metadata"]]
    return sorted(each["name"] for each in marked)


async def nominated(w: World, name: str) -> str | None:
    status = (await w.stored("Pod", "default", name))["status"]
    return status.get("nominatedNodeName")


async def test_pending_pods_evict_nobody_unless_the_setting_says_so():
    async with world() as w:
        await full(w, "n1")
        await put(w, urgent("urgent"))
        await settled(w)
        assert (await leaving(w), await nominated(w, "urgent")) == ([], None)
        await w.ask(PREEMPTING)
        await settled(w)
        assert (await leaving(w), await nominated(w, "urgent")) == (["low-n1"], "n1")


async def test_a_pod_that_preempted_waits_for_its_victim_and_is_placed_then():
    async with world() as w:
        await w.ask(PREEMPTING)
        await full(w, "n1", "n2")
        await put(w, urgent("urgent"))
        await settled(w)
        node_name = await nominated(w, "urgent")
        assert await leaving(w) == [f"low-{node_name}"]
        await w.pass_time(600)
        await settled(w)
        assert await leaving(w) == [f"low-{node_name}"]
        await delete(w, "Pod", f"low-{node_name}")
        assert (await settled(w))["urgent"] == node_name
        assert await nominated(w, "urgent") is None


async def test_equal_pods_preempt_one_node_each():
    async with world() as w:
        await w.ask(PREEMPTING)
        await full(w, "n1", "n2")
        for name in ("a", "b", "c"):
            await put(w, urgent(name))
        await settled(w)
        assert await leaving(w) == ["low-n1", "low-n2"]
        nodes = [await nominated(w, name) for name in ("a", "b", "c")]
        assert set(nodes) == {None, "n1", "n2"}
        for name in ("n1", "n2"):
            await delete(w, "Pod", f"low-{name}")
        placed = await settled(w)
        assert sorted(str(placed[name]) for name in ("a", "b", "c")) == ["None", "n1", "n2"]


async def test_the_queue_evicts_no_more_pods_in_a_minute_than_allowed():
    async with world() as w:
        await w.ask(PutConfig(config={"queuePreemption": "Evict", "evictionsPerMinute": 1}))
        await full(w, "n1", "n2")
        for name in ("a", "b"):
            await put(w, urgent(name))
        await settled(w)
        assert len(await leaving(w)) == 1
        await w.pass_time(59)
        await settled(w)
        assert len(await leaving(w)) == 1
        await w.pass_time(2)
        await settled(w)
        assert await leaving(w) == ["low-n1", "low-n2"]


async def test_pending_pods_evict_pods_on_other_nodes_of_a_domain_if_the_setting_says_so():
    async with world() as w:
        await w.ask(PREEMPTING)
        for name in ("n1", "n2"):
            made = node(name).label(host=name, zone="a")
            await w.apply(made.allocatable(cpu="1", memory="8Gi", pods="9"))
        await put(w, pod("low").label(app="low").priority(0).on("n2"))
        rule = urgent("urgent").require_anti_affinity("zone", matching(app="low"))
        await put(w, rule.node_selector(host="n1"))
        await settled(w)
        assert await leaving(w) == []
        await w.ask(PutConfig(config=PREEMPTING.config | {"queuePreemptionScope": "Domains"}))
        await settled(w)
        assert (await leaving(w), await nominated(w, "urgent")) == (["low"], "n1")
        await w.pass_time(600)
        await delete(w, "Pod", "low")
        assert (await settled(w))["urgent"] == "n1"


async def test_a_pod_that_never_preempts_waits_in_the_queue():
    async with world() as w:
        await w.ask(PREEMPTING)
        await full(w, "n1")
        meek = urgent("meek")
        meek["spec"]["preemptionPolicy"] = "Never"
        await put(w, meek)
        await settled(w)
        assert await leaving(w) == []


async def test_of_two_exclusive_pods_for_one_node_the_higher_priority_wins():
    """K10: too many exclusive nodes are undone by priority. N06: the lower one has to go."""

    def exclusive(name: str, priority: int):
        alone = urgent(name, priority)
        return alone.require_anti_affinity("kubernetes.io/hostname", {}, namespaceSelector={})

    async with world() as w:
        await w.ask(PREEMPTING)
        await w.apply(node("n1").label({"kubernetes.io/hostname": "n1"}))
        await put(w, exclusive("hog", 1))
        assert await settled(w) == {"hog": "n1"}
        await put(w, exclusive("important", 2))
        await settled(w)
        assert await leaving(w) == ["hog"]
        await delete(w, "Pod", "hog")
        assert await settled(w) == {"important": "n1"}
