"""Claims are bound in the commit that gives their pod a node; their volumes are never given twice."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from service.engine import Placement
from service.model.core.errors import BindingRefused, Conflict
from service.scheduler.decide.claims.volume_bindings import VolumesMissingError
from service.scheduler.decide.placing import pod_placement as one_pod
from service.scheduler.protocol.intents import ApplyObjects, BindPod, DeleteObject, PatchConfig
from tests.builders import HOST, Manifest, claim, node, pod, requirement, storage_class, volume
from tests.scheduler.world import World, all_of, world

DELETE_CLAIM = DeleteObject(kind="PersistentVolumeClaim", namespace="default", name="data")
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
NODES = (node("n1").label({HOST: "n1"}), node("n2").label({HOST: "n2"}))


def user(name: str, *claims: str) -> Any:
    made = pod(name)
    for each in claims or ("data",):
        made = made.claim(each)
    return made


def on_hosts(size: str, *hosts: str) -> Any:
    """A volume, named by its size, that can be used on these nodes."""
    terms = [{"matchExpressions": [requirement(HOST, "In", *hosts)]}]
    return volume(size.lower(), size, nodeAffinity={"required": {"nodeSelectorTerms": terms}})


def available(disk: Manifest) -> Manifest:
    return disk | {"status": {"phase": "Available"}}


async def delete_pod_and_claim(w: World) -> None:
    await w.ask(DeleteObject(kind="Pod", namespace="default", name="db"))
    await w.ask(DELETE_CLAIM)


async def stored(w: World, thing: Manifest) -> Any:
    namespace = thing["metadata"].get("namespace", "")
    return await w.stored(thing["kind"], namespace, thing["metadata"]["name"])


async def test_a_claim_its_volume_and_the_pod_are_bound_in_one_commit():
    disk, data = volume("disk", node="n2"), claim("data")
    async with world() as w:
        await w.apply(*NODES, storage_class(), disk, data)
        before = await w.head_revision()
        answer = await w.place(user("db"))
        assert [each.node_name for each in answer.results] == ["n2"]
        assert answer.revision == await w.head_revision() == before + 3
        bound, taken = await stored(w, data), await stored(w, disk)
        assert bound["spec"]["volumeName"] == "disk"
        assert bound["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] == "yes"
        assert bound["status"]["phase"] == taken["status"]["phase"] == "Bound"
        reference = taken["spec"]["claimRef"]
        assert (reference["namespace"], reference["name"]) == ("default", "data")
        assert reference["uid"] == bound["metadata"]["uid"]


async def test_a_volume_that_is_to_be_made_is_asked_for_on_the_node():
    data = claim("data", storageClassName="fast")
    async with world() as w:
        await w.apply(NODES[0], storage_class("fast", "csi.example.com"), data)
        await w.place(user("db"))
        annotations = (await stored(w, data))["metadata"]["annotations"]
        assert annotations["volume.kubernetes.io/selected-node"] == "n1"
        assert "volumeName" not in (await stored(w, data))["spec"]


async def test_of_two_pods_that_want_one_volume_one_gets_it():
    disk = volume("disk")
    async with world() as w:
        await w.apply(*NODES, storage_class(), disk, claim("one"), claim("two"))
        answer = await w.place(user("a", "one"), user("b", "two"))
        assert [each.outcome for each in answer.results] == ["Placed", "Unschedulable"]
        assert "didn't find available persistent volumes to bind" in answer.results[1].message
        assert (await stored(w, disk))["spec"]["claimRef"]["name"] == "one"


async def test_two_workers_never_give_one_volume_to_two_pods():
    disk = volume("disk")
    async with world(workers=2, seed=7) as w:
        await w.apply(*NODES, storage_class(), disk, claim("one"), claim("two"))
        answers = await all_of(
            w.place(user("a", "one"), worker=0), w.place(user("b", "two"), worker=1)
        )
        outcomes = sorted(each.results[0].outcome for each in answers)
        assert outcomes == ["Placed", "Unschedulable"]
        placed = [name for name, place in (await w.nodes_of_pods()).items() if place]
        assert len(placed) == 1
        owner = {"a": "one", "b": "two"}[placed[0]]
        assert (await stored(w, disk))["spec"]["claimRef"]["name"] == owner
        await w.assert_replicas_agree()


async def test_a_dry_run_binds_nothing():
    disk, data = volume("disk"), claim("data")
    async with world() as w:
        await w.apply(*NODES, storage_class(), disk, data)
        before = await w.head_revision()
        answer = await w.place(user("db"), dry_run=True, explain="Full")
        explanation = answer.results[0].explanation
        assert explanation.bindings == {"n1": {"data": "disk"}, "n2": {"data": "disk"}}
        assert await w.head_revision() == before


async def test_a_claim_that_a_placed_pod_uses_is_not_deleted():
    disk, data = volume("disk"), claim("data")
    async with world() as w:
        await w.apply(*NODES, storage_class(), disk, data)
        await w.place(user("db"))
        with pytest.raises(Conflict, match="The pod default/db is on a node and uses the claim"):
            await w.ask(DELETE_CLAIM)
        assert (await stored(w, data))["spec"]["volumeName"] == "disk"


async def test_a_claim_is_deleted_that_finished_or_waiting_pods_name():
    data = claim("data", storageClassName="none")
    finished = user("done").on("n1").phase("Succeeded")
    async with world() as w:
        await w.apply(*NODES, data, finished, user("waits"))
        await w.ask(DELETE_CLAIM)
        assert not await w.stored("PersistentVolumeClaim", "default", "data")


async def test_what_others_have_bound_they_may_unbind_and_delete_whoever_uses_it():
    bound = claim("data", volumeName="disk")
    bound["metadata"]["annotations"] = {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
    async with world() as w:
        await w.apply(*NODES, storage_class(), volume("disk"), bound, user("db").on("n1"))
        await w.apply(claim("data"))
        assert "volumeName" not in (await stored(w, bound))["spec"]
        await w.ask(DELETE_CLAIM)
        assert not await w.stored("PersistentVolumeClaim", "default", "data")


async def test_claims_go_together_with_their_pods():
    disk, data = volume("disk"), claim("data")
    async with world() as w:
        await w.apply(*NODES, storage_class(), disk)
        kept = w.parsed(NODES[0])
        for gone in (
            ApplyObjects(manifests=kept, prune=frozenset({"Pod", "PersistentVolumeClaim"})),
            DeleteObject(kind="Namespace", namespace="", name="default"),
        ):
            await w.apply(data, available(disk))
            answer = await w.place(user("db"))
            assert answer.results[0].outcome == "Placed"
            await w.ask(gone)
            assert not await w.stored("PersistentVolumeClaim", "default", "data")
            assert (await stored(w, disk))["status"]["phase"] == "Released"


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
async def test_the_volume_of_a_claim_that_is_deleted_is_released_and_for_nobody_else(policy: str):
    disk, data = volume("disk", persistentVolumeReclaimPolicy=policy), claim("data")
    async with world() as w:
        await w.apply(*NODES, storage_class(), disk, data, claim("other"))
        await w.place(user("db"))
        await delete_pod_and_claim(w)
        released = await stored(w, disk)
        assert released["status"]["phase"] == "Released"
        assert released["spec"]["claimRef"]["name"] == "data"
        await w.apply(data, disk)
        answer = await w.place(user("next", "other"), user("again", "data"))
        assert [each.outcome for each in answer.results] == ["Unschedulable"] * 2


async def test_a_released_volume_is_free_again_once_an_observer_says_so():
    disk, data = volume("disk"), claim("data")
    async with world() as w:
        await w.apply(*NODES, storage_class(), disk, data, claim("other"))
        await w.place(user("db"))
        await delete_pod_and_claim(w)
        await w.apply(available(disk))
        assert "claimRef" not in (await stored(w, disk))["spec"]
        answer = await w.place(user("next", "other"))
        assert answer.results[0].outcome == "Placed"


async def test_a_claim_that_is_written_again_stays_bound():
    disk, data = volume("disk"), claim("data")
    async with world() as w:
        await w.apply(*NODES, storage_class(), disk, data, claim("other"))
        await w.place(user("db"))
        bound, taken = await stored(w, data), await stored(w, disk)
        await w.apply(data)
        assert await stored(w, data) == bound
        assert await stored(w, disk) == taken
        await w.apply(data.label({"tier": "db"}))
        assert (await stored(w, data))["spec"] == bound["spec"]
        answer = await w.place(user("next", "other"))
        assert answer.results[0].outcome == "Unschedulable"


async def test_a_volume_that_is_written_again_stays_bound():
    reference = {"namespace": "default", "name": "data"}
    disk, data = volume("disk"), claim("data")
    async with world() as w:
        await w.apply(*NODES, storage_class(), disk, data)
        await w.place(user("db"))
        bound = await stored(w, disk)
        for again in (disk, volume("disk", claimRef=reference), available(disk)):
            await w.apply(again)
            assert await stored(w, disk) == bound


async def test_a_volume_that_is_written_for_another_claim_is_for_that():
    reference = {"namespace": "default", "name": "other"}
    disk, data = volume("disk"), claim("data")
    async with world() as w:
        await w.apply(*NODES, storage_class(), disk, data)
        await w.place(user("db"))
        await w.apply(volume("disk", claimRef=reference))
        assert (await stored(w, disk))["spec"]["claimRef"] == reference


async def test_a_volume_that_a_stored_claim_is_bound_to_is_free_only_when_that_claim_is_gone():
    bound = claim("data", volumeName="disk")
    bound["metadata"]["annotations"] = {BIND_COMPLETED: "yes"}
    async with world() as w:
        await w.apply(*NODES, storage_class(), volume("disk"), bound, claim("other"))
        answer = await w.place(user("next", "other"))
        assert answer.results[0].outcome == "Unschedulable"
        await w.ask(DELETE_CLAIM)
        answer = await w.place(user("last", "other"))
        assert answer.results[0].outcome == "Placed"


async def test_a_volume_that_was_kept_for_a_claim_was_not_given_to_it_by_a_controller():
    reference = {"namespace": "default", "name": "data"}
    kept, free = volume("kept", claimRef=reference), volume("free")
    async with world() as w:
        await w.apply(*NODES, storage_class(), kept, free, claim("data"), claim("other"))
        await w.place(user("db", "data", "other"))
        for disk, by_controller in ((kept, False), (free, True)):
            annotations = (await stored(w, disk))["metadata"]["annotations"]
            assert (BOUND_BY_CONTROLLER in annotations) == by_controller


async def test_a_volume_that_others_have_bound_is_left_to_them():
    reference = {"namespace": "default", "name": "data"}
    disk, data = volume("disk", claimRef=reference), claim("data", volumeName="disk")
    async with world() as w:
        await w.apply(disk, data)
        await w.ask(DELETE_CLAIM)
        assert (await stored(w, disk))["spec"]["claimRef"] == reference


async def test_members_of_a_group_get_a_volume_each():
    volumes = volume("here", node="n1"), volume("there", node="n2")
    async with world() as w:
        await w.apply(*NODES, storage_class(), *volumes, claim("one"), claim("two"))
        answer = await w.place(user("a", "one"), user("b", "two"), all_or_nothing=True)
        assert sorted(each.node_name for each in answer.results) == ["n1", "n2"]
        names = [(await stored(w, each))["spec"]["claimRef"]["name"] for each in volumes]
        assert sorted(names) == ["one", "two"]


async def test_after_a_lost_race_members_get_the_volumes_that_they_were_checked_with():
    """The member that keeps its node has its volume; the other one, asked first, takes no other's."""
    nodes = [node(name).label({HOST: name}) for name in ("n1", "n2", "n3")]
    volumes = on_hosts("2Gi", "n3"), on_hosts("5Gi", "n1", "n2"), on_hosts("10Gi", "n2")
    mover = user("mover", "moved").prefer_node(100, requirement(HOST, "In", "n3"))
    keeper = user("keeper", "kept").node_selector(**{HOST: "n1"})
    async with world(workers=2) as w:
        await w.apply(*nodes, storage_class(), *volumes, claim("moved"), claim("kept"))
        await w.place(pod("warm"), worker=0)
        gate = w.close_gate()
        placing = asyncio.create_task(w.place(mover, keeper, all_or_nothing=True))
        await w.others(50)
        w.store.gate = None
        await w.apply(nodes[2].cordon(), worker=1)
        w.open_gate(gate)
        answer = await placing
        assert [each.node_name for each in answer.results] == ["n2", "n1"]
        assert answer.attempts == 2
        taken = [
            (await stored(w, claim(name)))["spec"].get("volumeName") for name in ("moved", "kept")
        ]
        assert taken == ["10gi", "5gi"]


async def test_where_claims_find_no_volume_a_pod_is_placed_by_force_alone():
    async with world() as w:
        await w.apply(NODES[0], storage_class(), claim("data"))
        await w.place(user("db"), queue=True)
        binding = BindPod(namespace="default", name="db", node_name="n1")
        with pytest.raises(BindingRefused):
            await w.ask(binding)
        await w.ask(replace(binding, force=True))
        assert "volumeName" not in (await stored(w, claim("data")))["spec"]


async def test_a_pod_whose_claims_find_no_volume_is_not_stored_even_if_a_node_was_found(
    monkeypatch,
):
    monkeypatch.setattr(one_pod, "place", lambda *_: Placement("n1", 0))
    async with world() as w:
        await w.apply(NODES[0], storage_class(), claim("data"))
        with pytest.raises(VolumesMissingError):
            await w.place(user("db"))
        assert await w.stored("Pod", "default", "db") is None


async def test_where_volumes_are_ignored_nothing_is_asked_of_them():
    async with world() as w:
        await w.ask(PatchConfig(patch_type="merge", patch={"volumes": "Ignore"}))
        await w.apply(NODES[0])
        answer = await w.place(user("db", "missing"))
        assert answer.results[0].outcome == "Placed"
