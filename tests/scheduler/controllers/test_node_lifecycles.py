"""Nodes that fall silent, are not ready, tainted or deleted: what becomes of them and of their pods."""

import asyncio
import re
from datetime import datetime, timedelta
from typing import Any

import pytest

from service.model.core.errors import Conflict, StorageUnavailable
from service.model.registry.manifests import TemplateCache
from service.scheduler.protocol.intents import (
    ApplyObjects,
    BindPod,
    DeleteObject,
    EvictPod,
    PatchConfig,
    PlacePods,
)
from service.scheduler.protocol.placements import PodRef
from service.scheduler.scheduler import Scheduler
from tests.builders import node, pod
from tests.scheduler.world import START, CountedIds, World, world

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
ZONE = "topology.kubernetes.io/zone"


def tainted(name: str, *taints: dict, zone: str = "", ready: str | None = None) -> dict:
    made = node(name)
    made["spec"] = {"taints": list(taints)}
    if zone:
        made["metadata"].setdefault("labels", {})[ZONE] = zone
    if ready is not None:
        made["status"]["conditions"] = [{"type": "Ready", "status": ready}]
    return made


def taint(key: str = "maintenance", effect: str = "NoExecute", **other) -> dict:
    return {"key": key, "effect": effect, **other}


def tolerating(name: str, *tolerations: dict, on: str = "n1") -> dict:
    made = pod(name).on(on)
    made["spec"]["tolerations"] = list(tolerations)
    return made


def toleration(key: str = "maintenance", **other) -> dict:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", **other}


async def configure(w: World, **settings) -> None:
    await w.ask(PatchConfig(patch_type="merge", patch=settings))
    await w.others()


async def apply(w: World, *things, worker: int = 0) -> None:
    await w.apply(*things, worker=worker)
    await w.others()


async def delete(w: World, kind: str, name: str, worker: int = 0) -> None:
    namespace = "default" if kind == "Pod" else ""
    await w.ask(DeleteObject(kind=kind, namespace=namespace, name=name), worker)
    await w.others()


async def pass_seconds(w: World, seconds: int, reporting: tuple[str, ...] = ()) -> None:
    """In steps, as time passes for timers and leases; some nodes report every five seconds."""
    for second in range(seconds):
        if reporting and second % 5 == 0:
            await w.schedulers[0].report_nodes("default", reporting)
        await w.pass_time(1)


def evicted(w: World) -> dict[str, datetime]:
    """The pods that were marked as to be stopped, each with the time of the commit that did it."""
    times: dict[str, datetime] = {}
    commits = w.store.states[1].commits
    for change in w.log():
        if change.kind == "Pod" and change.verb == "Put" and b"deletionTimestamp" in change.body:
            at = next(each.at for each in commits if each.first <= change.revision <= each.last)
            times.setdefault(change.name, at)
    return times


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


async def taints_of(w: World, name: str) -> set[tuple[str, str]]:
    stored = await w.stored("Node", "", name)
    return {(each["key"], each["effect"]) for each in stored.get("spec", {}).get("taints", [])}


async def ready_of(w: World, name: str) -> str | None:
    stored = await w.stored("Node", "", name)
    conditions = stored["status"].get("conditions", [])
    return next((each["status"] for each in conditions if each["type"] == "Ready"), None)


BOTH = {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}


# Taints that evict


async def test_a_taint_evicts_whoever_does_not_tolerate_it_at_once_and_others_when_their_time_is_over():
    async with world() as w:
        await apply(
            w,
            node("n1"),
            tolerating("stays", toleration()),
            tolerating("any", {"operator": "Exists"}),
            tolerating("soon", toleration(tolerationSeconds=20)),
            tolerating("never", toleration(tolerationSeconds=0)),
            tolerating("other", toleration("another", tolerationSeconds=20)),
            pod("plain").on("n1"),
        )
        await apply(w, tainted("n1", taint()))
        assert sorted(evicted(w)) == ["never", "other", "plain"]
        told = (await w.stored("Pod", "default", "plain"))["status"]["conditions"]
        assert [(each["type"], each["reason"]) for each in told] == [
            ("DisruptionTarget", "DeletionByTaintManager")
        ]
        await pass_seconds(w, 19)
        assert "soon" not in evicted(w)
        await pass_seconds(w, 3)
        assert sorted(evicted(w)) == ["never", "other", "plain", "soon"]
        assert evicted(w)["soon"] >= after(20)
        await pass_seconds(w, 60)
        assert len(evicted(w)) == 4


async def test_the_first_toleration_for_each_taint_counts_and_the_least_of_these():
    async with world() as w:
        first = (toleration(tolerationSeconds=40), toleration(tolerationSeconds=5))
        await apply(
            w,
            tainted("n1", taint(), taint("memory")),
            tolerating("first", *first, toleration("memory")),
            tolerating("least", toleration(), toleration("memory", tolerationSeconds=10)),
            tolerating(
                "less", toleration(tolerationSeconds=25), toleration("memory", tolerationSeconds=9)
            ),
        )
        await pass_seconds(w, 12)
        assert sorted(evicted(w)) == ["least", "less"]
        await pass_seconds(w, 27)
        assert sorted(evicted(w)) == ["least", "less"]
        await pass_seconds(w, 3)
        assert sorted(evicted(w)) == ["first", "least", "less"]


async def test_a_taint_that_is_removed_evicts_nobody_and_one_that_comes_again_begins_anew():
    async with world() as w:
        await apply(w, tainted("n1", taint()), tolerating("p", toleration(tolerationSeconds=20)))
        await pass_seconds(w, 15)
        await apply(w, tainted("n1"))
        await pass_seconds(w, 30)
        await apply(w, tainted("n1", taint()))
        await pass_seconds(w, 15)
        assert evicted(w) == {}
        await pass_seconds(w, 7)
        assert sorted(evicted(w)) == ["p"]


async def test_the_time_is_counted_from_when_the_taint_was_added_whoever_writes_the_node_again():
    async with world() as w:
        await apply(w, tainted("n1", taint()), tolerating("p", toleration(tolerationSeconds=20)))
        for _ in range(3):
            await pass_seconds(w, 5)
            await apply(w, tainted("n1", taint(), zone="a"))
        await pass_seconds(w, 7)
        assert sorted(evicted(w)) == ["p"]


async def test_a_taint_that_says_when_it_was_added_is_believed():
    async with world() as w:
        before = (START - timedelta(seconds=15)).strftime("%Y-%m-%dT%H:%M:%SZ")
        old = tolerating("p", toleration(tolerationSeconds=20))
        old["metadata"]["creationTimestamp"] = before
        await apply(w, tainted("n1", taint(timeAdded=before)), old)
        await pass_seconds(w, 4)
        assert evicted(w) == {}
        await pass_seconds(w, 3)
        assert sorted(evicted(w)) == ["p"]


async def test_a_pod_that_comes_to_a_tainted_node_has_its_whole_time_from_then_on():
    async with world() as w:
        await apply(w, tainted("n1", taint()))
        await pass_seconds(w, 100)
        asked = tolerating("p", toleration(tolerationSeconds=20))
        del asked["spec"]["nodeName"]
        (result,) = (await w.place(asked)).results
        assert result.outcome == "Placed"
        await w.others()
        await pass_seconds(w, 18)
        assert evicted(w) == {}
        await pass_seconds(w, 4)
        assert sorted(evicted(w)) == ["p"]


async def test_disruption_budgets_and_the_minutes_limit_hold_back_no_taint():
    async with world() as w:
        await configure(w, evictionsPerMinute=1)
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "kept", "namespace": "default"},
            "spec": {"minAvailable": "100%", "selector": {}},
        }
        await apply(w, node("n1"), budget, *(pod(f"p{each}").on("n1") for each in range(5)))
        await apply(w, tainted("n1", taint()))
        assert len(evicted(w)) == 5


async def test_whoever_has_a_taint_manager_of_its_own_switches_this_one_off():
    async with world() as w:
        await configure(w, noExecuteTaints="Ignore")
        await apply(w, tainted("n1", taint()), pod("p").on("n1"))
        await pass_seconds(w, 60)
        assert evicted(w) == {}
        assert (await w.stored("Node", "", "n1"))["spec"]["taints"] == [taint()]
        await configure(w, noExecuteTaints="Evict")
        assert sorted(evicted(w)) == ["p"]


async def test_pods_that_have_ended_or_are_leaving_are_let_be():
    async with world() as w:
        done = pod("done").on("n1")
        done["status"] = {"phase": "Succeeded"}
        leaving = pod("leaving").on("n1")
        leaving["metadata"]["deletionTimestamp"] = "2025-12-31T23:00:00Z"
        await apply(w, tainted("n1", taint()), done, leaving)
        assert b"DisruptionTarget" not in b"".join(each.body for each in w.log())


# The condition Ready


async def test_a_node_that_says_it_is_not_ready_gets_both_taints_and_pods_leave_after_their_default_time():
    async with world() as w:
        await configure(w, defaultNotReadyTolerationSeconds=60)
        patient = tolerating("patient", toleration(NOT_READY, tolerationSeconds=100))
        quick = tolerating("quick", toleration(NOT_READY, tolerationSeconds=5))
        forever = tolerating("forever", toleration(""))
        odd = tolerating("odd", toleration(NOT_READY, operator="Equal", value="other"))
        await apply(w, node("n2"), node("n1"), pod("p").on("n1"), patient, quick, forever, odd)
        await apply(w, tainted("n1", ready="False"))
        assert sorted(evicted(w)) == ["odd"]  # it says something of the taint, so it has no default
        await delete(w, "Pod", "odd")
        assert await taints_of(w, "n1") == {(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")}
        assert (await w.place(pod("new"))).results[0].node_name == "n2"
        await pass_seconds(w, 58)
        assert sorted(evicted(w)) == ["odd", "quick"]
        await pass_seconds(w, 5)
        assert sorted(evicted(w)) == ["odd", "p", "quick"]
        await apply(w, tainted("n1", ready="True"))
        assert await taints_of(w, "n1") == set()
        await pass_seconds(w, 60)
        assert sorted(evicted(w)) == ["odd", "p", "quick"]


async def test_another_bad_condition_swaps_the_taints_and_time_goes_on():
    async with world() as w:
        await configure(
            w, defaultNotReadyTolerationSeconds=60, defaultUnreachableTolerationSeconds=60
        )
        await apply(w, node("n2"), tainted("n1", ready="False"), pod("p").on("n1"))
        await pass_seconds(w, 30)
        await apply(w, tainted("n1", ready="Unknown"))
        assert await taints_of(w, "n1") == BOTH
        await pass_seconds(w, 25)
        assert evicted(w) == {}
        await pass_seconds(w, 8)
        assert sorted(evicted(w)) == ["p"]


async def test_taints_of_nodes_without_the_condition_are_their_owners():
    async with world() as w:
        await apply(w, tainted("n1", taint(NOT_READY, "NoSchedule"), zone="a"))
        await apply(w, tainted("n2", ready="False"))
        await pass_seconds(w, 60)
        assert await taints_of(w, "n1") == {(NOT_READY, "NoSchedule")}
        await apply(w, tainted("n1"))
        assert await taints_of(w, "n1") == set()


async def test_conditions_can_be_left_to_others():
    async with world() as w:
        await configure(w, nodeConditions="Ignore")
        await apply(w, node("n2"), tainted("n1", ready="False"))
        await pass_seconds(w, 10)
        assert await taints_of(w, "n1") == set()
        await configure(w, nodeConditions="Taint")
        assert len(await taints_of(w, "n1")) == 2


async def test_no_pending_pod_goes_to_a_node_that_registers_as_not_ready():
    """There is no moment between the node and its taint in which the queue could see the node."""
    async with world() as w:
        await apply(w, pod("waiting"))
        await apply(w, tainted("n1", ready="False"))
        await pass_seconds(w, 30)
        assert await w.nodes_of_pods() == {"waiting": None}
        await apply(w, tainted("n1", ready="True"))
        await pass_seconds(w, 30)
        assert await w.nodes_of_pods() == {"waiting": "n1"}


async def test_a_pod_that_was_placed_leaves_no_node_for_a_taint_of_its_pressure():
    async with world() as w:
        pressed = node("n1")
        pressed["status"]["conditions"] = [{"type": "MemoryPressure", "status": "True"}]
        await apply(w, node("n1"), pod("p").on("n1"))
        await apply(w, pressed)
        assert await taints_of(w, "n1") == {("node.kubernetes.io/memory-pressure", "NoSchedule")}
        await pass_seconds(w, 400)
        assert evicted(w) == {}


async def test_a_node_that_is_not_ready_is_written_once_more_only_for_the_taint_that_evicts():
    async with world() as w:
        await some_nodes(w, 4)
        await apply(w, tainted("n0", ready="False"))
        await apply(w, tainted("n0", ready="Unknown"))
        await apply(w, tainted("n0", ready="True"))
        puts = [change for change in w.log() if change.name == "n0"]
        keys = [set(re.findall(rb'"key":"node.kubernetes.io/([a-z-]+)"', e.body)) for e in puts]
        assert keys == [set(), {b"not-ready"}, {b"not-ready"}, {b"unreachable"}, set()]


async def test_a_silent_node_is_not_tainted_any_more_once_conditions_are_ignored():
    async with world() as w:
        names = await some_nodes(w, 3)
        await pass_seconds(w, 60, names)
        await apply(w, tainted("n0", ready="False"))
        await pass_seconds(w, 60, names[1:])
        assert await taints_of(w, "n0") == BOTH
        await configure(w, nodeConditions="Ignore")
        await pass_seconds(w, 10, names[1:])
        assert (await ready_of(w, "n0"), await taints_of(w, "n0")) == ("False", set())


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ({"nodeConditions": "Ignore"}, False),
        ({"nodeConditions": "Ignore", "placePendingPods": False}, False),
        ({"placePendingPods": False}, True),
    ],
)
async def test_taints_of_all_conditions_end_with_the_setting_unless_placing_is_only_paused(
    settings: dict[str, Any], left: Any
) -> None:
    async with world() as w:
        pressed = tainted("n2", ready="True")
        pressed["status"]["conditions"].append({"type": "DiskPressure", "status": "True"})
        await apply(w, tainted("n1", ready="False"), tainted("n3", ready="Unknown"), pressed)
        await configure(w, **settings)
        for name in ("n1", "n2", "n3"):
            assert bool(await taints_of(w, name)) is left


# Reports


async def some_nodes(w: World, number: int, *zones: str) -> tuple[str, ...]:
    names = tuple(f"n{each}" for each in range(number))
    zone_of = dict(zip(names, (zones or ("",)) * number, strict=False))
    await apply(w, *(tainted(each, zone=zone_of[each], ready="True") for each in names))
    return names


async def test_a_node_that_stops_reporting_is_unreachable_and_is_ready_again_with_its_next_report():
    async with world() as w:
        await configure(w, defaultUnreachableTolerationSeconds=30)
        names = await some_nodes(w, 4)
        await apply(w, pod("p").on("n0"), pod("q").on("n1"))
        await pass_seconds(w, 60, names)
        await pass_seconds(w, 30, names[1:])
        assert await ready_of(w, "n0") == "True"
        await pass_seconds(w, 20, names[1:])
        assert (await ready_of(w, "n0"), await taints_of(w, "n0")) == ("Unknown", BOTH)
        conditions = (await w.stored("Node", "", "n0"))["status"]["conditions"]
        assert conditions[0]["reason"] == "NodeStatusUnknown"
        await pass_seconds(w, 10, names)
        assert (await ready_of(w, "n0"), await taints_of(w, "n0")) == ("True", set())
        await pass_seconds(w, 40, names)
        assert evicted(w) == {}
        await pass_seconds(w, 90, names[1:])
        assert sorted(evicted(w)) == ["p"]


async def test_a_node_that_never_reported_is_not_watched():
    async with world() as w:
        names = await some_nodes(w, 3)
        await pass_seconds(w, 200, names[:2])
        assert await taints_of(w, "n2") == set()


async def test_a_silent_node_stays_so_though_it_is_written_again_and_what_was_written_holds_later():
    async with world() as w:
        names = await some_nodes(w, 3)
        await pass_seconds(w, 60, names)
        await pass_seconds(w, 60, names[1:])
        before = (await w.stored("Node", "", "n0"))["spec"]["taints"]
        await apply(w, tainted("n0", ready="False", zone="z"))
        await pass_seconds(w, 20, names[1:])
        assert (await w.stored("Node", "", "n0"))["spec"]["taints"] == before
        assert await ready_of(w, "n0") == "Unknown"
        await pass_seconds(w, 10, names)
        assert await ready_of(w, "n0") == "False"
        assert {key for key, _ in await taints_of(w, "n0")} == {NOT_READY}


async def test_a_silent_node_that_never_said_whether_it_is_ready_has_no_taints_once_it_reports():
    async with world() as w:
        await apply(w, node("n0"))
        await some_others(w)
        names = ("n0", "m0", "m1", "m2")
        await pass_seconds(w, 60, names)
        await pass_seconds(w, 60, names[1:])
        assert await taints_of(w, "n0") == BOTH
        await pass_seconds(w, 10, names)
        assert (await ready_of(w, "n0"), await taints_of(w, "n0")) == (None, set())


async def test_a_new_node_of_the_name_of_a_silent_one_is_not_silent():
    async with world() as w:
        names = await some_nodes(w, 3)
        await pass_seconds(w, 60, names)
        await pass_seconds(w, 60, names[1:])
        await delete(w, "Node", "n0")
        await pass_seconds(w, 10, names[1:])
        await apply(w, tainted("n0", ready="True"))
        await pass_seconds(w, 100, names[1:])
        assert await taints_of(w, "n0") == set()


async def test_a_node_that_is_made_again_at_once_is_watched_only_from_its_own_first_report():
    async with world() as w:
        names = await some_nodes(w, 3)
        await pass_seconds(w, 60, names)
        await delete(w, "Node", "n0")
        await pass_seconds(w, 7, names[1:])
        await apply(w, tainted("n0", ready="True"))
        await pass_seconds(w, 100, names[1:])
        assert await taints_of(w, "n0") == set()


async def test_while_no_node_reports_nobody_is_evicted_and_then_all_have_their_time_anew():
    """It is more likely that nobody hears them than that all have died."""
    async with world() as w:
        await configure(w, defaultUnreachableTolerationSeconds=10)
        names = await some_nodes(w, 6, "a", "b")
        await apply(w, *(pod(f"p-{each}").on(each) for each in names))
        await pass_seconds(w, 60, names)
        await pass_seconds(w, 300)
        assert await taints_of(w, "n0") == {(UNREACHABLE, "NoSchedule")}
        assert evicted(w) == {}
        await pass_seconds(w, 30, names[:3])
        assert evicted(w) == {}
        await pass_seconds(w, 100, names)
        assert evicted(w) == {}
        assert await taints_of(w, "n5") == set()


async def test_a_service_that_was_away_gives_all_nodes_time_to_report():
    async with world() as w:
        await configure(w, defaultUnreachableTolerationSeconds=10)
        names = await some_nodes(w, 4, "a", "b")
        await apply(w, *(pod(f"p-{each}").on(each) for each in names))
        await pass_seconds(w, 60, names)
        await w.schedulers[0].stop()
        w.clock.advance(600)
        heir = w.schedulers[0] = Scheduler(w.store, w.clock, CountedIds(9), None, TemplateCache())
        await heir.start()
        await pass_seconds(w, 35, ("n1",))
        assert evicted(w) == {}
        assert await ready_of(w, "n0") == "True"
        await pass_seconds(w, 100, ("n1", "n2"))
        assert sorted(evicted(w)) == ["p-n0", "p-n3"]


async def test_a_successor_watches_though_nobody_asks_it_for_anything():
    async with world() as w:
        names = await some_nodes(w, 3)
        await pass_seconds(w, 60, names)
        await w.schedulers[0].stop()
        heir = w.schedulers[0] = Scheduler(w.store, w.clock, CountedIds(9), None, TemplateCache())
        await heir.start()
        await pass_seconds(w, 60)
        assert await ready_of(w, "n0") == "Unknown"


async def test_a_database_that_was_away_gives_all_nodes_time_to_report():
    async with world() as w:
        await configure(w, defaultUnreachableTolerationSeconds=10)
        names = await some_nodes(w, 4, "a", "b")
        await apply(w, *(pod(f"p-{each}").on(each) for each in names))
        await pass_seconds(w, 60, names)
        w.clock.advance(600)  # nothing ran meanwhile
        await pass_seconds(w, 30, ("n1",))
        assert evicted(w) == {}
        await pass_seconds(w, 60, names)
        assert evicted(w) == {}


async def test_reports_that_nobody_could_read_for_a_while_are_not_missed_at_once(monkeypatch):
    async with world() as w:
        names = await some_nodes(w, 4, "a", "b")
        await pass_seconds(w, 60, names)

        async def fail(*_):
            raise StorageUnavailable("No connection.")

        with monkeypatch.context() as patch:
            patch.setattr(w.store.heartbeats, "check", fail)
            await pass_seconds(w, 60)
        await pass_seconds(w, 35, names[1:])
        assert await ready_of(w, "n0") == "True"
        await pass_seconds(w, 30, names[1:])
        assert await ready_of(w, "n0") == "Unknown"


# Zones


async def test_nodes_of_a_zone_get_the_taint_that_evicts_one_after_the_other():
    async with world() as w:
        names = await some_nodes(w, 6)
        bad = [tainted(each, ready="False") for each in names[:2]]
        await apply(w, *bad)
        assert [len(await taints_of(w, each)) for each in names[:2]] == [2, 1]
        await pass_seconds(w, 9)
        assert [len(await taints_of(w, each)) for each in names[:2]] == [2, 1]
        await pass_seconds(w, 3)
        assert [len(await taints_of(w, each)) for each in names[:2]] == [2, 2]


async def test_a_small_zone_of_which_most_is_not_ready_loses_nobody_more():
    async with world() as w:
        names = await some_nodes(w, 5, "a")
        await some_others(w)
        await apply(w, *(tainted(each, zone="a", ready="False") for each in names[:3]))
        await pass_seconds(w, 60)
        assert [len(await taints_of(w, each)) for each in names[:3]] == [1, 1, 1]
        await configure(w, largeZoneNodes=4, secondaryNodeEvictionRate=0.05)
        await pass_seconds(w, 50)
        assert [len(await taints_of(w, each)) for each in names[:3]] == [2, 2, 2]


async def test_a_zone_that_is_down_is_emptied_at_the_usual_rate():
    async with world() as w:
        names = await some_nodes(w, 4, "a")
        await some_others(w)
        await apply(w, *(tainted(each, zone="a", ready="False") for each in names))
        await pass_seconds(w, 25)
        assert [len(await taints_of(w, each)) for each in names] == [2, 2, 2, 1]
        await pass_seconds(w, 10)
        assert [len(await taints_of(w, each)) for each in names] == [2, 2, 2, 2]


async def test_once_all_zones_are_down_the_taints_that_evict_go():
    async with world() as w:
        names = await some_nodes(w, 3, "a", "b", "c")
        await apply(w, tainted("n0", zone="a", ready="False"), pod("p").on("n0"))
        assert len(await taints_of(w, "n0")) == 2
        await apply(w, *(tainted(each, ready="False") for each in names))
        assert [len(await taints_of(w, each)) for each in names] == [1, 1, 1]
        await pass_seconds(w, 400)
        assert evicted(w) == {}
        await apply(w, tainted("n2", zone="c", ready="True"))
        await pass_seconds(w, 12)
        assert [len(await taints_of(w, each)) for each in names] == [2, 2, 0]


async def some_others(w: World) -> None:
    await apply(w, *(tainted(f"m{each}", zone="b", ready="True") for each in range(3)))


# Deleted nodes


async def test_pods_of_a_deleted_node_end_as_failed_after_their_grace():
    async with world() as w:
        done = pod("done").on("n1")
        done["status"] = {"phase": "Succeeded"}
        await apply(w, node("n1"), pod("p").on("n1"), done)
        await delete(w, "Node", "n1")
        await pass_seconds(w, 9)
        assert "phase" not in (await w.stored("Pod", "default", "p")).get("status", {})
        await pass_seconds(w, 3)
        status = (await w.stored("Pod", "default", "p"))["status"]
        (condition,) = status["conditions"]
        assert status["phase"] == "Failed"
        assert condition["reason"] == "DeletionByPodGC"
        assert (await w.stored("Pod", "default", "done"))["status"] == {"phase": "Succeeded"}
        assert await remembered(w) == []


LIVES = {"phase": "Running"}


@pytest.mark.parametrize(
    ("is_back", "on", "status", "lives"),
    [
        (True, None, None, False),
        (False, "n1", None, False),
        (True, "n1", None, True),
        (False, "n2", None, True),
        (False, "not-there-yet", None, True),
        (False, None, LIVES, True),
        (True, "n1", {"phase": "Failed"}, False),
        (False, None, {"phase": None}, False),
    ],
)
async def test_who_ended_with_a_node_stays_ended_unless_somebody_says_otherwise(
    is_back, on, status, lives
):
    async with world() as w:
        await end_with_its_node(w, pod("p").on("n1"))
        await apply(w, node("n2"), *([node("n1")] if is_back else []))
        written = pod("p").label(x="y")
        if on is not None:
            written = written.on(on)
        if status is not None:
            written["status"] = status
        await apply(w, written)
        kept = await w.stored("Pod", "default", "p")
        told = kept.get("status", {})
        reasons = [each.get("reason") for each in told.get("conditions", [])]
        assert kept["metadata"]["labels"] == {"x": "y"}
        assert (told.get("phase") != "Failed") == lives
        assert ("DeletionByPodGC" not in reasons) == lives


async def end_with_its_node(w: World, *pods: Any) -> None:
    await apply(w, node("n1"), *pods)
    await delete(w, "Node", "n1")
    await pass_seconds(w, 12)


async def test_who_lives_again_ends_again_with_the_node():
    async with world() as w:
        await end_with_its_node(w, pod("p").on("n1"))
        first = await condition_of_end(w, "p")
        again = pod("p").on("n1")
        again["status"] = LIVES
        await end_with_its_node(w, again)
        second = await condition_of_end(w, "p")
        assert first["lastTransitionTime"] < second["lastTransitionTime"]


async def condition_of_end(w: World, name: str) -> Any:
    status = (await w.stored("Pod", "default", name))["status"]
    assert status["phase"] == "Failed"
    (condition,) = (each for each in status["conditions"] if each["type"] == "DisruptionTarget")
    return condition


async def test_an_eviction_leaves_a_pod_ended():
    async with world() as w:
        await end_with_its_node(w, pod("p").on("n1"))
        await w.ask(EvictPod(namespace="default", name="p"))
        await apply(w, pod("p").label(x="y"))
        assert (await condition_of_end(w, "p"))["reason"] == "DeletionByPodGC"
        assert "deletionTimestamp" in (await w.stored("Pod", "default", "p"))["metadata"]


async def test_a_pod_that_ended_with_its_node_is_not_placed_though_the_node_is_back():
    async with world() as w:
        await end_with_its_node(w, pod("p").on("n1"))
        await apply(w, node("n1"))
        (result,) = (await w.place(pod("p"))).results
        assert (result.outcome, result.reason) == ("Denied", "PodNotActive")
        with pytest.raises(Conflict):
            await w.ask(BindPod(namespace="default", name="p", node_name="n1"))


async def remembered(w: World) -> list[str]:
    rows = (await w.store.objects.list(1, "NodeState", limit=10)).rows
    return [row.name for row in rows]


async def test_a_node_that_is_made_again_in_time_keeps_its_pods():
    async with world() as w:
        await apply(w, node("n1"), pod("p").on("n1"))
        await delete(w, "Node", "n1")
        await pass_seconds(w, 8)
        await apply(w, node("n1"))
        await pass_seconds(w, 60)
        assert "phase" not in (await w.stored("Pod", "default", "p")).get("status", {})
        assert await remembered(w) == []
        await delete(w, "Node", "n1")
        await pass_seconds(w, 12)
        assert (await w.stored("Pod", "default", "p"))["status"]["phase"] == "Failed"


async def test_a_node_that_goes_twice_at_once_is_remembered_once():
    async with world() as w:
        await w.apply(node("n1"), pod("p").on("n1"))
        gate = w.close_gate()
        going = [DeleteObject(kind="Node", name="n1"), ApplyObjects(manifests=w.parsed(node("n1")))]
        calls = [w.ask(each) for each in (*going, going[0])]
        asked = asyncio.gather(*calls)
        await w.others()
        w.open_gate(gate)
        await asked
        states = [each for each in w.log() if each.kind == "NodeState"]
        assert [each.verb for each in states] == ["Put"]
        await pass_seconds(w, 12)
        assert (await w.stored("Pod", "default", "p"))["status"]["phase"] == "Failed"


async def test_pods_on_a_node_that_has_not_come_yet_wait_for_it():
    async with world() as w:
        await apply(w, pod("p").on("n1"))
        await pass_seconds(w, 60)
        assert "phase" not in (await w.stored("Pod", "default", "p")).get("status", {})


async def test_pods_of_deleted_nodes_can_be_kept():
    async with world() as w:
        await configure(w, deletedNodePods="Keep")
        await apply(w, node("n1"), pod("p").on("n1"))
        await delete(w, "Node", "n1")
        await pass_seconds(w, 60)
        assert "phase" not in (await w.stored("Pod", "default", "p")).get("status", {})
        assert await remembered(w) == []


@pytest.mark.parametrize("seconds", [0, 15])
async def test_nobody_is_told_that_a_pod_has_its_place_on_a_node_that_is_not_there(seconds):
    async with world() as w:
        await apply(w, node("n1"), node("n2"), pod("p").on("n1"), pod("q").on("n2"))
        await delete(w, "Node", "n1")
        await pass_seconds(w, seconds)
        refs = tuple(PodRef(namespace="default", name=each) for each in ("p", "q"))
        gone, there = (await w.ask(PlacePods(pod_refs=refs))).results
        assert (gone.outcome, gone.reason) == ("Denied", "NodeNotFound")
        assert gone.message == "The pod is on n1, which is not there: delete it to place it anew."
        assert there.outcome == "AlreadyPlaced"
        await delete(w, "Pod", "p")
        assert (await w.place(pod("p"))).results[0].node_name == "n2"


# Workers come and go


@pytest.mark.parametrize("seed", range(6))
async def test_whichever_worker_dies_when_others_go_on_where_it_was(seed):
    async with world(workers=2, seed=seed) as w:
        soon = tolerating("soon", toleration(tolerationSeconds=20))
        await apply(w, node("n0"), node("n1"), node("n2"), soon, pod("r").on("n2"))
        await apply(w, tainted("n1", taint()), worker=0)
        await delete(w, "Node", "n2")
        await pass_seconds(w, seed)
        await w.schedulers[0].stop()
        await pass_seconds(w, 30)
        assert sorted(evicted(w)) == ["soon"]
        assert (await w.stored("Pod", "default", "r"))["status"]["phase"] == "Failed"
        assert (
            sum(each.name == "soon" and b"deletionTimestamp" in each.body for each in w.log()) == 1
        )
