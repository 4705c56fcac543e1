"""Pods that wait for each other, and get their nodes together or not at all."""

import msgspec
import pytest

from service.scheduler.protocol.intents import (
    DeleteObject,
    ExplainPod,
    PatchObject,
    PutConfig,
    ReadComputed,
)
from tests.builders import matching, node, pod
from tests.scheduler.controllers.test_pending_pods import (
    LEAVE_PENDING,
    condition,
    delete,
    put,
    settled,
)
from tests.scheduler.world import World, world

LABEL = "scheduling.x-k8s.io/pod-group"


def pod_group(name: str = "train", least: int = 3, **spec):
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": least, **spec},
    }


def member(name: str, group: str = "train", cpu: str = "1"):
    return pod(name).label({LABEL: group}).request(cpu=cpu)


def gated(manifest):
    return with_spec(manifest, schedulingGates=[{"name": "hold"}])


def with_spec(manifest, **fields):
    return {"kind": "Pod", **manifest, "spec": manifest["spec"] | fields}


def small(name: str, cpu: str = "1"):
    return node(name).allocatable(cpu=cpu, memory="8Gi", pods="110").label(host=name)


def commits_of(w: World, *names: str) -> set[object]:
    """The commits in which these pods got their nodes."""
    log = w.store.states[1]
    placed = {
        change.revision: change.name
        for change in log.changes
        if change.kind == "Pod" and change.node_name is not None
    }
    return {
        commit.commit_id
        for commit in log.commits
        for revision, name in placed.items()
        if commit.first <= revision <= commit.last and name in names
    }


async def status(w: World, name: str = "train", worker: int = 0):
    answer = await w.ask(ReadComputed(kind="PodGroup", namespace="default", name=name), worker)
    (shown,) = answer.objects
    return msgspec.json.decode(shown.body)["status"]


async def waiting_groups(w: World):
    return (await w.store.objects.list(1, "WaitingGroup", limit=10)).rows


async def test_members_that_arrive_one_by_one_are_placed_in_one_commit():
    async with world() as w:
        await w.apply(node("n1"))
        await put(w, pod_group())
        for arrived, name in enumerate(("m-0", "m-1"), 1):
            await put(w, member(name))
            assert set((await settled(w)).values()) == {None}
            told = ("False", "Unschedulable", f"{arrived} of 3 members of group train are here")
            assert await condition(w, "m-0") == told
            assert await condition(w, name) == told
            assert (await status(w))["phase"] == "Pending"
        await put(w, member("m-2"))
        assert set((await settled(w)).values()) == {"n1"}
        assert len(commits_of(w, "m-0", "m-1", "m-2")) == 1
        found = await status(w)
        assert (found["phase"], found["members"], found["scheduled"]) == ("Scheduling", 3, 3)


async def test_a_group_may_come_after_its_members_and_go_before_them():
    async with world() as w:
        await w.apply(node("n1"))
        await put(w, member("m-0"))
        await put(w, member("m-1"))
        assert set((await settled(w)).values()) == {None}
        assert (await condition(w, "m-1"))[2] == "group train does not exist"
        await put(w, pod_group(least=3))
        await settled(w)
        assert (await condition(w, "m-1"))[2] == "2 of 3 members of group train are here"
        await w.ask(DeleteObject(kind="PodGroup", namespace="default", name="train"))
        await put(w, member("m-2"))
        assert set((await settled(w)).values()) == {None}
        assert (await condition(w, "m-2"))[2] == "group train does not exist"
        await put(w, pod_group(least=3))
        assert set((await settled(w)).values()) == {"n1"}


async def test_min_member_may_shrink_and_grow_while_members_wait():
    async with world() as w:
        await w.apply(node("n1"))
        await put(w, pod_group(least=2))
        await put(w, member("m-0"))
        await put(w, pod_group(least=4))
        await put(w, member("m-1"))
        await settled(w)
        assert (await condition(w, "m-0"))[2] == "2 of 4 members of group train are here"
        patch = PatchObject(
            kind="PodGroup",
            namespace="default",
            name="train",
            patch_type="merge",
            patch={"spec": {"minMember": 2}},
        )
        await w.ask(patch)
        assert set((await settled(w)).values()) == {"n1"}
        await put(w, pod_group(least=4))
        await put(w, member("m-2"))
        assert (await settled(w))["m-2"] is None
        assert (await condition(w, "m-2"))[2] == "3 of 4 members of group train are here"
        await put(w, member("m-3"))
        assert set((await settled(w)).values()) == {"n1"}


async def test_a_group_without_room_for_all_takes_no_room_at_all():
    async with world() as w:
        await w.apply(small("n1"), small("n2"), pod_group())
        for number in range(3):
            await put(w, member(f"m-{number}"))
        assert set((await settled(w)).values()) == {None}
        told = (await condition(w, "m-0"))[2]
        assert told.startswith("0/2 nodes are available: 2 Insufficient cpu")
        assert "group train" in told
        await put(w, small("n3"))
        assert set((await settled(w)).values()) == {"n1", "n2", "n3"}
        assert len(commits_of(w, "m-0", "m-1", "m-2")) == 1


async def test_a_group_is_tried_again_after_any_change_that_can_help():
    async with world() as w:
        await w.apply(small("n1"), small("n2"), pod_group(least=2), pod("old").on("n2"))
        await w.apply(pod("old").on("n2").request(cpu="1"))
        for number in range(2):
            await put(w, member(f"m-{number}"))
        assert (await settled(w))["m-0"] is None
        await delete(w, "Pod", "old")
        found = await settled(w)
        assert {found["m-0"], found["m-1"]} == {"n1", "n2"}


async def test_more_members_than_the_group_needs_are_placed_as_far_as_there_is_room():
    async with world() as w:
        await w.apply(small("n1", "3"), pod_group(least=2))
        await w.apply(*(member(f"m-{number}") for number in range(5)))
        found = await settled(w)
        assert sorted(name for name, place in found.items() if place) == ["m-0", "m-1", "m-2"]
        assert len(commits_of(w, "m-0", "m-1", "m-2")) == 1
        assert "Insufficient cpu" in (await condition(w, "m-4"))[2]
        await put(w, small("n2"))
        assert (await settled(w))["m-3"] == "n2"
        await put(w, small("n3"))
        assert (await settled(w))["m-4"] == "n3"


async def test_a_member_that_fails_makes_way_for_another():
    async with world() as w:
        await w.apply(small("n1", "4"), pod_group(least=2))
        await w.apply(member("m-0", cpu="64"), member("m-1"), member("m-2"))
        assert await settled(w) == {"m-0": None, "m-1": "n1", "m-2": "n1"}


async def test_members_that_have_nodes_count():
    async with world() as w:
        await w.apply(node("n1"), pod_group(least=3), member("m-0").on("n1"))
        await put(w, member("m-1"))
        assert (await settled(w))["m-1"] is None
        assert (await condition(w, "m-1"))[2] == "2 of 3 members of group train are here"
        assert (await status(w))["phase"] == "Unknown"
        await put(w, member("m-2").on("n1"))
        assert set((await settled(w)).values()) == {"n1"}
        await put(w, member("m-3"))
        assert (await settled(w))["m-3"] == "n1"


async def test_a_deleted_member_is_no_longer_counted():
    async with world() as w:
        await w.apply(node("n1"), pod_group(least=3))
        await w.apply(member("m-0"), member("m-1"))
        await settled(w)
        await delete(w, "Pod", "m-0")
        await settled(w)
        assert (await condition(w, "m-1"))[2] == "1 of 3 members of group train are here"
        await w.apply(member("m-2"))
        assert set((await settled(w)).values()) == {None}
        await w.apply(member("m-0"))
        assert set((await settled(w)).values()) == {"n1"}


async def test_a_gated_member_holds_up_a_group_that_needs_it():
    async with world() as w:
        await w.apply(node("n1"), pod_group(least=2))
        await w.apply(gated(member("m-0")), member("m-1"))
        assert set((await settled(w)).values()) == {None}
        assert (await condition(w, "m-0"))[1] == "SchedulingGated"
        assert (await condition(w, "m-1"))[2] == (
            "2 of 2 members of group train are here, 1 of them with scheduling gates"
        )
        await w.apply(member("m-0"))
        assert set((await settled(w)).values()) == {"n1"}
        await w.apply(gated(member("m-2")), member("m-3"))
        assert (await settled(w))["m-3"] == "n1"


async def test_a_member_that_leaves_its_group_is_a_pod_like_others():
    async with world() as w:
        await w.apply(node("n1"), pod_group(least=2), member("m-0"))
        await settled(w)
        await put(w, pod("m-0").request(cpu="1"))
        assert (await settled(w))["m-0"] == "n1"


async def test_members_of_different_kinds_find_their_places_together():
    async with world() as w:
        await w.apply(*(small(f"n{n}", "2").label(zone=f"z{n % 2}") for n in range(4)))
        await w.apply(pod("full").on("n0").request(cpu="2"), pod_group(least=2))
        x = member("x", cpu="2").label(app="x").require_affinity("zone", matching(app="y"))
        y = member("y", cpu="2").label(app="y").require_affinity("zone", matching(app="x"))
        await put(w, x)
        await put(w, y)
        found = await settled(w)
        assert {found["x"], found["y"]} == {"n1", "n3"}


async def test_priority_and_age_decide_between_groups():
    async with world() as w:
        await w.ask(LEAVE_PENDING)
        await w.apply(pod_group("low", 2), pod_group("high", 2))
        for name in ("a", "b"):
            await w.apply(member(f"low-{name}", "low"))
        high = member("high-a", "high")
        await w.apply(with_spec(high, priority=10), member("high-b", "high"))
        await w.apply(small("n1"), small("n2"))
        await w.ask(PutConfig(config={"placePendingPods": True}))
        found = await settled(w)
        assert {name for name, place in found.items() if place} == {"high-a", "high-b"}


async def test_a_group_that_waits_too_long_is_told_so_and_goes_on_waiting():
    async with world() as w:
        await w.apply(node("n1"), pod_group(least=2, scheduleTimeoutSeconds=30))
        await put(w, member("m-0"))
        await settled(w)
        assert (await condition(w, "m-0"))[2] == "1 of 2 members of group train are here"
        assert (await status(w))["scheduleStartTime"] == "2026-01-01T00:00:00Z"
        for _ in range(35):
            await w.pass_time(1)
        told = (await condition(w, "m-0"))[2]
        assert told == (
            "1 of 2 members of group train are here; timed out after 30 s (scheduleTimeoutSeconds)"
        )
        await put(w, member("m-1"))
        assert set((await settled(w)).values()) == {"n1"}
        assert (await status(w))["scheduleStartTime"] is None


async def test_an_explanation_says_how_many_members_are_missing():
    async with world() as w:
        await w.apply(node("n1"), pod_group(least=3), member("m-0"))
        await settled(w)
        explanation = (await w.ask(ExplainPod(namespace="default", name="m-0"))).explanation
        assert explanation.message == "1 of 3 members of group train are here"
        assert explanation.feasible == ["n1"]


async def test_another_worker_finds_a_group_as_it_was_left():
    """Nothing about a group is known to one process only."""
    async with world(workers=2) as w:
        await w.apply(node("n1"), pod_group(least=3), member("m-0"), worker=0)
        await settled(w)
        await w.schedulers[0].stop()
        await w.apply(member("m-1"), worker=1)
        await w.pass_time(5)
        assert set((await settled(w)).values()) == {None}
        await w.apply(member("m-2"), worker=1)
        await w.pass_time(5)
        assert set((await settled(w)).values()) == {"n1"}
        assert len(commits_of(w, "m-0", "m-1", "m-2")) == 1


@pytest.mark.parametrize("seed", range(4))
async def test_of_two_workers_none_places_half_a_group(seed):
    """A9: members come by both workers, and each group has its nodes by one commit or none."""
    async with world(workers=2, seed=seed) as w:
        await w.apply(*(small(f"n{n}", "2") for n in range(3)))
        for group in ("a", "b", "c"):
            await put(w, pod_group(group, 3), worker=seed % 2)
        for number in range(9):
            await put(w, member(f"{'abc'[number % 3]}-{number}", "abc"[number % 3]), number % 2)
        for _ in range(4):
            await w.pass_time(1)
            await settled(w)
        found = await w.nodes_of_pods()
        for group in "abc":
            names = [name for name in found if name.startswith(group)]
            assert len({found[name] is None for name in names}) == 1
            assert len(commits_of(w, *names)) <= 1
        assert sum(place is not None for place in found.values()) == 6
        await w.assert_replicas_agree()


async def test_placing_all_members_at_once_places_them_together():
    async with world() as w:
        await w.apply(small("n1"), small("n2"), pod_group(least=2))
        await w.ask(LEAVE_PENDING)
        alone = await w.place(member("m-0"))
        assert [(each.outcome, each.message) for each in alone.results] == [
            ("Unschedulable", "1 of 2 members of group train are here")
        ]
        assert alone.committed is False
        both = await w.place(member("m-0"), member("m-1"))
        assert {each.outcome for each in both.results} == {"Placed"}
        assert {each.node_name for each in both.results} == {"n1", "n2"}
        assert all(each.uid for each in both.results)
        assert len(commits_of(w, "m-0", "m-1")) == 1


async def test_placing_the_last_member_places_those_that_wait_for_it():
    async with world() as w:
        await w.apply(node("n1"), pod_group(least=3))
        queued = await w.place(member("m-0"), member("m-1"), queue=True)
        assert [each.outcome for each in queued.results] == ["Queued", "Queued"]
        last = await w.place(member("m-2"))
        assert [each.outcome for each in last.results] == ["Placed"]
        assert set((await settled(w)).values()) == {"n1"}
        assert len(commits_of(w, "m-0", "m-1", "m-2")) == 1


async def test_all_or_nothing_does_not_undercut_a_pod_group():
    async with world() as w:
        await w.apply(node("n1"), pod_group(least=3))
        pair = [member("m-0"), member("m-1")]
        refused = await w.place(*pair, all_or_nothing=True)
        assert {each.outcome for each in refused.results} == {"Unschedulable"}
        assert refused.group is not None
        assert refused.group.message == "2 of 3 members of group train are here"
        placed = await w.place(*pair, member("m-2"), all_or_nothing=True)
        assert {each.outcome for each in placed.results} == {"Placed"}


async def test_a_refused_group_that_is_queued_waits_as_one():
    async with world() as w:
        await w.apply(small("n1"))
        pods = [pod(f"w-{n}").request(cpu="1") for n in range(3)]
        answer = await w.place(*pods, all_or_nothing=True, queue=True)
        assert answer.committed is True
        outcomes = sorted(each.outcome for each in answer.results)
        assert outcomes == ["GroupRefused", "GroupRefused", "Unschedulable"]
        assert all(each.uid for each in answer.results)
        assert set((await settled(w)).values()) == {None}
        await put(w, small("n2"))
        assert set((await settled(w)).values()) == {None}
        await put(w, small("n3"))
        assert set((await settled(w)).values()) == {"n1", "n2", "n3"}
        assert len(commits_of(w, "w-0", "w-1", "w-2")) == 1
        assert await waiting_groups(w) == []


async def test_another_worker_finds_a_queued_group_as_it_was_left():
    async with world(workers=2) as w:
        await w.apply(small("n1"))
        pods = [pod(f"w-{n}").request(cpu="1") for n in range(2)]
        await w.place(*pods, all_or_nothing=True, queue=True)
        await settled(w)
        await w.schedulers[0].stop()
        await w.apply(node("n2").label(host="n2").taint("dedicated", "db"), worker=1)
        for _ in range(3):
            await w.pass_time(5)
            assert set((await settled(w)).values()) == {None}
        await w.apply(small("n2"), worker=1)
        await w.pass_time(5)
        assert set((await settled(w)).values()) == {"n1", "n2"}
        assert len(commits_of(w, "w-0", "w-1")) == 1


async def test_a_member_of_another_scheduler_is_left_to_that():
    async with world() as w:
        await w.apply(node("n1"), pod_group(least=2))
        await w.apply(with_spec(member("m-0"), schedulerName="other"), member("m-1"))
        assert set((await settled(w)).values()) == {None}
        assert "status" not in (await w.stored("Pod", "default", "m-0"))
        assert (await condition(w, "m-1"))[2].startswith("group train fails at m-0: ")
        await put(w, member("m-0").on("n1"))
        assert set((await settled(w)).values()) == {"n1"}


async def test_a_queued_group_says_of_each_member_why_it_waits():
    async with world() as w:
        await w.apply(node("n1"))
        held = gated(pod("w-0").request(cpu="1"))
        answer = await w.place(held, pod("w-1").request(cpu="1"), all_or_nothing=True, queue=True)
        assert [each.outcome for each in answer.results] == ["Unschedulable", "GroupRefused"]
        assert all(each.uid for each in answer.results)
        assert set((await settled(w)).values()) == {None}
        assert (await condition(w, "w-0"))[1] == "SchedulingGated"
        status, reason, message = await condition(w, "w-1")
        assert (status, reason) == ("False", "Unschedulable")
        assert message.endswith(
            "members of the group of default/w-0 are here, 1 of them with scheduling gates"
        )
        await put(w, pod("w-0").request(cpu="1"))
        assert set((await settled(w)).values()) == {"n1"}
        assert len(commits_of(w, "w-0", "w-1")) == 1


async def test_a_queued_group_goes_on_without_a_member_that_is_deleted():
    async with world() as w:
        await w.apply(small("n1"), small("n2"))
        pods = [pod(f"w-{n}").request(cpu="1") for n in range(3)]
        await w.place(*pods, all_or_nothing=True, queue=True)
        assert set((await settled(w)).values()) == {None}
        await delete(w, "Pod", "w-1")
        assert set((await settled(w)).values()) == {"n1", "n2"}
        assert await waiting_groups(w) == []


async def test_what_is_kept_of_a_queued_group_ends_with_its_last_member():
    async with world() as w:
        pods = [pod(f"w-{n}") for n in range(2)]
        await w.place(*pods, all_or_nothing=True, queue=True)
        (before,) = await waiting_groups(w)
        again = await w.place(*pods, all_or_nothing=True, queue=True)
        assert all(each.uid for each in again.results)
        (after,) = await waiting_groups(w)
        assert after.name == before.name
        await w.place(*pods[:1], pod("w-3"), all_or_nothing=True, queue=True)
        assert len(await waiting_groups(w)) == 2
        for name in ("w-0", "w-1", "w-3"):
            await delete(w, "Pod", name)
        assert await waiting_groups(w) == []


async def test_a_dry_run_of_a_group_leaves_nothing_behind():
    async with world() as w:
        pods = [pod(f"w-{n}") for n in range(2)]
        answer = await w.place(*pods, all_or_nothing=True, queue=True, dry_run=True)
        assert {each.uid for each in answer.results} == {None}
        assert await waiting_groups(w) == []
        assert await w.nodes_of_pods() == {}


async def test_a_group_of_which_nobody_was_let_in_leaves_nothing_that_waits():
    async with world() as w:
        spec = {"hard": {"pods": "0"}}
        metadata = {"name": "full", "namespace": "default"}
        await put(w, {"kind": "ResourceQuota", "metadata": metadata, "spec": spec})
        pods = [pod(f"w-{i}").request(cpu="1") for i in range(2)]
        answer = await w.place(*pods, all_or_nothing=True, queue=True)
        assert {each.outcome for each in answer.results} == {"Denied"}
        assert not answer.committed
        assert await waiting_groups(w) == []
