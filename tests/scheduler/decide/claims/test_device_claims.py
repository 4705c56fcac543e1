"""Claims get their devices in the commit that gives their pod a node; no device is given twice."""

from typing import Any

import pytest

from service.model.core.access import Grant, Principal
from service.model.core.errors import BindingRefused, Conflict, Denied, InvalidManifest
from service.model.registry.manifests import parse_declared
from service.scheduler.protocol.callers import Caller
from service.scheduler.protocol.intents import (
    BindPod,
    DeleteObject,
    EvictPod,
    PutConfig,
    PutObject,
)
from tests.builders import (
    GPU,
    Manifest,
    asking,
    claim_template,
    device,
    device_claim,
    device_class,
    namespace,
    node,
    pod,
    resource_slice,
)
from tests.scheduler.world import World, all_of, world

NODES = (node("n1"), node("n2"))
TWO_GPUS = resource_slice("n2", device("gpu-0"), device("gpu-1"))
ONE_GPU = resource_slice("n2", device("gpu-0"))
NOT_ALL = "cannot allocate all claims"


def user(name: str, *claims: str) -> Any:
    made = pod(name)
    for number, each in enumerate(claims or ("data",)):
        made = made.devices(each, name=f"gpu-{number}")
    return made


async def claim_of(w: World, name: str) -> Any:
    return await w.stored("ResourceClaim", "default", name)


async def given(w: World, name: str) -> list[str]:
    """The devices that a claim has."""
    allocation = (await claim_of(w, name)).get("status", {}).get("allocation", {})
    return [each["device"] for each in allocation.get("devices", {}).get("results", [])]


async def claims_in(w: World) -> list[str]:
    """The names of all claims."""
    page = await w.store.objects.list(1, "ResourceClaim", limit=1_000)
    return [row.name for row in page.rows]


async def delete(w: World, kind: str, name: str) -> None:
    await w.ask(DeleteObject(kind=kind, namespace="default", name=name))


async def test_a_claim_and_its_pod_are_placed_in_one_commit():
    async with world() as w:
        await w.apply(*NODES, device_class(), TWO_GPUS, device_claim("data", asking(2)))
        before = await w.head_revision()
        answer = await w.place(user("db"))
        assert [each.node_name for each in answer.results] == ["n2"]
        assert answer.revision == await w.head_revision() == before + 2
        claim, stored = await claim_of(w, "data"), await w.stored("Pod", "default", "db")
        results = [
            {"request": "gpu", "driver": GPU, "pool": "n2", "device": name}
            for name in ("gpu-0", "gpu-1")
        ]
        fields = [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]
        assert claim["status"] == {
            "allocation": {
                "devices": {"results": results},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
            },
            "reservedFor": [{"resource": "pods", "name": "db", "uid": stored["metadata"]["uid"]}],
        }


async def test_of_two_pods_that_want_one_device_one_gets_it():
    async with world() as w:
        await w.apply(*NODES, device_class(), ONE_GPU, device_claim("one"), device_claim("two"))
        answer = await w.place(user("a", "one"), user("b", "two"))
        assert [each.outcome for each in answer.results] == ["Placed", "Unschedulable"]
        assert answer.results[1].message == f"0/2 nodes are available: 2 {NOT_ALL}."
        assert [await given(w, "one"), await given(w, "two")] == [["gpu-0"], []]


@pytest.mark.parametrize("seed", range(5))
async def test_two_workers_never_give_one_device_to_two_pods(seed: int):
    async with world(workers=2, seed=seed) as w:
        await w.apply(*NODES, device_class(), ONE_GPU, device_claim("one"), claim_template("t"))
        answers = await all_of(
            w.place(user("a", "one"), worker=0),
            w.place(pod("b").devices(template="t"), worker=1),
        )
        outcomes = sorted(each.results[0].outcome for each in answers)
        assert outcomes == ["Placed", "Unschedulable"]
        await w.assert_replicas_agree()


async def test_pods_share_a_claim_on_the_node_of_its_devices():
    async with world() as w:
        await w.apply(*NODES, device_class(), ONE_GPU, device_claim("data"))
        answer = await w.place(user("a"), user("b"), user("c").on("n1"))
        assert [each.node_name for each in answer.results] == ["n2", "n2", None]
        assert "1 resourceclaim not available on the node" in answer.results[2].message
        consumers = (await claim_of(w, "data"))["status"]["reservedFor"]
        assert [each["name"] for each in consumers] == ["a", "b"]
        await delete(w, "Pod", "a")
        assert await given(w, "data") == ["gpu-0"]
        await delete(w, "Pod", "b")
        claim = await claim_of(w, "data")
        assert "status" not in claim
        assert "moorage.dev/allocated-devices" not in claim["metadata"].get("annotations", {})


async def test_a_claim_is_made_from_a_template_and_goes_with_the_pod():
    template = claim_template("t", asking(1))
    template["spec"]["metadata"] = {"labels": {"team": "red"}, "annotations": {"a": "b"}}
    async with world() as w:
        await w.apply(*NODES, device_class(), TWO_GPUS, template)
        await w.place(pod("a").devices(template="t"), pod("b").devices(template="t"))
        stored = await w.stored("Pod", "default", "a")
        (status,) = stored["status"]["resourceClaimStatuses"]
        assert status["name"] == "gpu"
        name = status["resourceClaimName"]
        assert name.startswith("a-gpu-")
        claim = await claim_of(w, name)
        metadata, uid = claim["metadata"], stored["metadata"]["uid"]
        assert metadata["labels"] == {"team": "red"}
        assert metadata["annotations"]["a"] == "b"
        assert metadata["annotations"]["resource.kubernetes.io/pod-claim-name"] == "gpu"
        (owner,) = metadata["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", uid, True)
        assert await given(w, name) == ["gpu-0"]
        assert (await w.place(pod("c").devices(template="t"))).results[0].node_name is None
        await delete(w, "Pod", "a")
        assert not await claim_of(w, name)
        assert (await w.place(pod("c").devices(template="t"))).results[0].node_name == "n2"


@pytest.mark.parametrize("end", ["deleted", "finished"])
async def test_a_waiting_pod_gets_the_device_of_one_that_ends(end: str):
    async with world() as w:
        await w.apply(*NODES, device_class(), ONE_GPU, claim_template("t"), device_claim("data"))
        await w.place(user("a"))
        waits = pod("b").devices(template="t")
        assert (await w.place(waits, queue=True)).results[0].outcome == "Queued"
        if end == "deleted":
            await delete(w, "Pod", "a")
        else:
            await w.apply(user("a").on("n2").phase("Succeeded"))
        assert "status" not in await claim_of(w, "data")
        await w.others(300)
        assert (await w.nodes_of_pods())["b"] == "n2"
        await w.assert_replicas_agree()


async def test_an_evicted_pod_keeps_its_devices_until_it_is_gone():
    async with world() as w:
        await w.apply(*NODES, device_class(), ONE_GPU, device_claim("data"))
        await w.place(user("a"))
        await w.ask(EvictPod(namespace="default", name="a"))
        assert await given(w, "data") == ["gpu-0"]
        await delete(w, "Pod", "a")
        assert await given(w, "data") == []


async def test_a_dry_run_gives_no_devices():
    async with world() as w:
        await w.apply(*NODES, device_class(), ONE_GPU, claim_template("t"))
        before = await w.head_revision()
        answer = await w.place(pod("a").devices(template="t"), dry_run=True, explain="Full")
        assert answer.results[0].explanation.filters == {"DynamicResources": {"n1": [NOT_ALL]}}
        assert answer.results[0].explanation.unresolvable == {"DynamicResources": ["n1"]}
        assert await w.head_revision() == before


async def test_the_members_of_a_group_get_devices_together_or_not_at_all():
    pods = [pod(name).devices(template="t").devices("data", name="shared") for name in "abc"]
    async with world() as w:
        await w.apply(*NODES, device_class(), TWO_GPUS, claim_template("t"), device_claim("data"))
        answer = await w.place(*pods[:2], all_or_nothing=True)
        assert {each.outcome for each in answer.results} == {"Unschedulable", "GroupRefused"}
        more = resource_slice("n2", *(device(f"gpu-{n}") for n in range(3)))
        await w.apply(more)
        answer = await w.place(*pods[:2], all_or_nothing=True)
        assert [each.node_name for each in answer.results] == ["n2", "n2"]
        devices = [name for each in await claims_in(w) for name in await given(w, each)]
        assert sorted(devices) == ["gpu-0", "gpu-1", "gpu-2"]
        assert len((await claim_of(w, "data"))["status"]["reservedFor"]) == 2


async def test_a_worker_that_loads_the_cluster_counts_devices_from_stored_claims():
    async with world(workers=2) as w:
        await w.apply(*NODES, device_class(), ONE_GPU, device_claim("one"), device_claim("two"))
        await w.place(user("a", "one"))
        # The other worker loads the cluster only now.
        assert (await w.place(user("b", "two"), worker=1)).results[0].message == (
            f"0/2 nodes are available: 2 {NOT_ALL}."
        )


async def test_a_binding_gives_devices_unless_it_is_forced():
    bind = BindPod(namespace="default", name="a", node_name="n1")
    async with world() as w:
        await w.ask(PutConfig(config={"placePendingPods": False}))
        await w.apply(*NODES, device_class(), ONE_GPU, claim_template("t"), device_claim("data"))
        await w.apply(user("a"), pod("b").devices(template="t"))
        with pytest.raises(BindingRefused, match=NOT_ALL):
            await w.ask(bind)
        await w.ask(BindPod(namespace="default", name="a", node_name="n1", force=True))
        assert "status" not in await claim_of(w, "data")
        await w.ask(BindPod(namespace="default", name="b", node_name="n2"))
        stored = await w.stored("Pod", "default", "b")
        (status,) = stored["status"]["resourceClaimStatuses"]
        assert await given(w, status["resourceClaimName"]) == ["gpu-0"]


async def test_a_claim_that_is_written_again_keeps_its_devices():
    data = device_claim("data")
    async with world() as w:
        await w.apply(*NODES, device_class(), ONE_GPU, data)
        await w.place(user("a"))
        before = (await claim_of(w, "data"))["status"]
        await w.apply(data.label(team="red"))
        claim = await claim_of(w, "data")
        assert claim["status"] == before
        assert claim["metadata"]["labels"] == {"team": "red"}
        with pytest.raises(InvalidManifest) as refused:
            await w.apply(device_claim("data", asking(2)))
        assert refused.value.errors[0].field == "items[0].spec"
        with pytest.raises(Conflict, match="The claim is reserved for the pod default/a"):
            await delete(w, "ResourceClaim", "data")


async def test_what_others_have_allocated_is_left_to_them():
    result = {"request": "gpu", "driver": GPU, "pool": "n2", "device": "gpu-0"}
    theirs = device_claim("theirs") | {
        "status": {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": "x", "uid": "x"}],
        }
    }
    async with world() as w:
        await w.apply(*NODES, device_class(), ONE_GPU, theirs, device_claim("data"))
        assert (await w.place(user("a"))).results[0].node_name is None
        await w.place(user("b", "theirs"))
        await delete(w, "Pod", "b")
        assert (await claim_of(w, "theirs"))["status"] == theirs["status"]


async def test_only_observers_say_what_a_claim_was_given():
    editor = Caller(Principal("e", (Grant("scheduler"),)), "main")
    result = {"request": "gpu", "driver": GPU, "pool": "n2", "device": "gpu-0"}
    sent = device_claim("mine") | {"status": {"allocation": {"devices": {"results": [result]}}}}
    async with world() as w:
        await w.ask(PutObject(manifest=parse_declared("ResourceClaim", sent), caller=editor))
        assert "status" not in await claim_of(w, "mine")


async def test_admin_access_is_for_labelled_namespaces():
    spying = asking(1, adminAccess=True)
    async with world() as w:
        await w.apply(*NODES, device_class(), ONE_GPU, device_claim("data"))
        await w.place(user("a"))
        for claim in (device_claim("spy", spying), claim_template("spy", spying)):
            with pytest.raises(Denied, match="adminAccess: admin access to devices requires"):
                await w.apply(claim)
        await w.apply(namespace("default").label({"resource.kubernetes.io/admin-access": "true"}))
        await w.apply(device_claim("spy", spying))
        assert (await w.place(user("b", "spy"))).results[0].node_name == "n2"
        (result,) = (await claim_of(w, "spy"))["status"]["allocation"]["devices"]["results"]
        assert result["adminAccess"] is True


async def test_drivers_are_told_what_class_and_claim_configure():
    opaque = {"opaque": {"driver": GPU, "parameters": {"mode": "fast"}}}
    of_class = device_class()
    of_class["spec"]["config"] = [opaque]
    requests = [asking(name="one"), asking(name="two")]
    config = [{"requests": ["two"], **opaque}, {"requests": ["one", "two"], **opaque}]
    async with world() as w:
        await w.apply(*NODES, of_class, TWO_GPUS, device_claim("data", *requests, config=config))
        await w.place(user("a"))
        assert (await claim_of(w, "data"))["status"]["allocation"]["devices"]["config"] == [
            {"source": "FromClass", **opaque},
            {"source": "FromClaim", "requests": ["two"], **opaque},
            {"source": "FromClaim", **opaque},
        ]


async def test_a_namespace_is_deleted_with_claims_that_were_made_in_it():
    template, user_of_it = claim_template("t"), pod("a").devices(template="t")
    template["metadata"]["namespace"] = user_of_it["metadata"]["namespace"] = "shop"
    async with world() as w:
        await w.apply(*NODES, device_class(), ONE_GPU, namespace("shop"), template)
        await w.place(user_of_it)
        await w.ask(DeleteObject(kind="Namespace", namespace="", name="shop"))
        assert not await claims_in(w)
        await w.assert_replicas_agree()


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("claim", 'could not find ResourceClaim "default/data"'),
        ("template", 'resourceclaimtemplate "t" not found'),
        ("class", f"request gpu: device class {GPU} does not exist"),
        ("slice", f"2 {NOT_ALL}"),
    ],
)
async def test_a_pod_waits_for_what_is_missing(missing: str, message: str):
    things: dict[str, Manifest] = {
        "claim": device_claim("data"),
        "template": claim_template("t"),
        "class": device_class(),
        "slice": resource_slice("n2", device("gpu-0"), device("gpu-1")),
    }
    last = things.pop(missing)
    async with world() as w:
        await w.apply(*NODES, *things.values())
        waits = user("a").devices(template="t", name="made")
        answer = await w.place(waits, queue=True)
        assert message in answer.results[0].message
        await w.apply(last)
        await w.others(300)
        assert (await w.nodes_of_pods())["a"] == "n2"
        assert await given(w, "data") == ["gpu-0"]
