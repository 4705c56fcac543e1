"""What one request, or one client after another, may have of anything is bounded, and the bound is told."""

import asyncio
from collections import Counter

import msgspec
import pytest

from service.model.core.errors import Denied, Overloaded
from service.scheduler.protocol.limits import Limits
from tests.api.conftest import MakeHarness
from tests.api.following import Stream
from tests.api.harness import CLUSTER, Harness, node, pod, problem

MANY = 1_000_000
PLACE = f"{CLUSTER}/placements"
SIMULATE = "/v1/simulations"
JSON = {"content-type": "application/json"}


def list_of(item: bytes, count: int) -> bytes:
    return b"[%b]" % b",".join([item] * count)


def template(replicas: int, **options: object) -> bytes:
    return msgspec.json.encode({"template": pod("web"), "replicas": replicas, **options})


def body_with(field: str, items: bytes) -> bytes:
    others = (
        b""
        if field in ("pods", "items", "podRefs")
        else b',"pod":%b' % msgspec.json.encode(pod("p"))
    )
    return b'{"%b":%b%b}' % (field.encode(), items, others)


@pytest.mark.parametrize("count", [4, MANY], ids=["small", "large"])
@pytest.mark.parametrize(
    ("path", "field"),
    [(PLACE, "pods"), (f"{CLUSTER}/apply", "items"), (SIMULATE, "nodes"), (SIMULATE, "namespaces")],
)
async def test_a_list_may_have_so_many_items(make_harness: MakeHarness, path, field, count) -> None:
    """A million empty ones are not looked at either: a worker was busy with them for 51 s."""
    harness = await make_harness(request_items_max=3, apply_objects_max=3)
    answer = await harness.client.post(
        path, content=body_with(field, list_of(b"{}", count)), headers=JSON
    )
    assert problem(answer, 422) == "InvalidManifest"
    (error,) = answer.json()["errors"]
    assert (error["field"], error["message"].split(";")[0]) == (field, "has more than 3 items")


async def test_pods_may_be_named_so_many_at_once(make_harness: MakeHarness) -> None:
    harness = await make_harness(request_items_max=3)
    references = [{"namespace": "shop", "name": f"p-{n}"} for n in range(4)]
    answer = await harness.client.post(PLACE, json={"podRefs": references})
    assert problem(answer, 422) == "InvalidManifest"
    assert answer.json()["errors"][0]["field"] == "podRefs"


@pytest.mark.parametrize(("replicas", "status"), [(3, 200), (4, 422), (2**31, 422)])
async def test_so_many_replicas_may_be_asked_for(make_harness, replicas, status) -> None:
    harness = await make_harness(request_items_max=3)
    answer = await harness.client.post(PLACE, content=template(replicas), headers=JSON)
    assert answer.status_code == status
    if status == 422:
        assert [each["field"] for each in answer.json()["errors"]] == ["replicas"]


async def test_a_large_body_is_read_as_a_small_one_is(harness: Harness) -> None:
    await harness.put_node("n")
    wide = pod("web-0")
    wide["metadata"]["annotations"] = {"note": "x" * 200_000}
    pods = [{**wide, "metadata": {**wide["metadata"], "name": f"web-{n}"}} for n in range(6)]
    answer = await harness.place(*pods, dryRun=True)
    outcomes = [each["outcome"] for each in answer["results"]]
    assert outcomes == ["Placed"] * 4 + ["Unschedulable"] * 2


@pytest.mark.parametrize(
    "body",
    [
        b'{"pods":["' + b'\\"[' * 400_000 + b'"]}',
        b'{"other":"' + b'\\"[' * 400_000 + b'"}',
        b"[" * 40 + b'1e999,"' + b'\\"[' * 400_000,
        b'{"pods":[' + b"[" * 1_200_000,
    ],
    ids=["an item", "a member", "no object", "brackets"],
)
async def test_of_a_large_body_nothing_is_read_in_one_step_that_is_large(harness, body) -> None:
    answer = await harness.client.post(PLACE, content=body, headers=JSON)
    assert problem(answer, 422) == "InvalidManifest"


@pytest.mark.parametrize(("explain", "status"), [("Full", 422), ("Summary", 200), ("None", 200)])
async def test_a_full_explanation_may_speak_of_so_many_pods_and_nodes(
    make_harness, explain, status
) -> None:
    harness = await make_harness(limits=Limits(explained_pairs_max=5))
    await harness.put_node("a")
    await harness.put_node("b")
    asked = {"explain": explain, "dryRun": True}
    answer = await harness.client.post(PLACE, content=template(3, **asked), headers=JSON)
    assert answer.status_code == status
    if status == 422:
        (error,) = answer.json()["errors"]
        assert error["field"] == "explain"
        assert "3 pods on 2 nodes" in error["message"]
        assert "limit of 5" in error["message"]
    answer = await harness.client.post(PLACE, content=template(2, **asked), headers=JSON)
    assert answer.status_code == 200


async def test_a_simulation_which_is_explained_in_full_has_the_same_limit(make_harness) -> None:
    harness = await make_harness(limits=Limits(explained_pairs_max=5))
    body = {"nodes": [node("a"), node("b")], "place": [pod(f"p-{n}") for n in range(3)]}
    answer = await harness.client.post(SIMULATE, json=body)
    assert problem(answer, 422) == "InvalidManifest"
    assert answer.json()["errors"][0]["field"] == "place"


async def opened(harness: Harness, count: int) -> list[Stream]:
    """So many watches, asked for at the same time."""
    streams = [Stream(harness.app, {}) for _ in range(count)]
    for each in streams:
        await each.until_answered()
    return streams


async def test_watches_that_are_opened_at_once_are_counted(make_harness: MakeHarness) -> None:
    """Each counts before it is looked for in the log; so do those that are only asked about with HEAD."""
    harness = await make_harness(limits=Limits(watchers_max=3))
    for _ in range(4):
        assert (await harness.client.head(f"{CLUSTER}/watch")).status_code == 200
        assert (await harness.client.get(f"{CLUSTER}/watch?sinceRevision=99")).status_code == 503
        assert (await harness.client.get("/v1/clusters/none/watch")).status_code == 404
    streams = await opened(harness, 8)
    assert Counter(each.status for each in streams) == {200: 3, 503: 5}
    for each in streams:
        each.left.set()
        await each.task
    assert harness.scheduler.watching.watchers == 0


async def test_one_caller_has_no_more_than_a_share_of_the_watches(make_harness) -> None:
    limits = Limits(watchers_max=3, watchers_of_one_max=2)
    watching = (await make_harness(limits=limits)).scheduler.watching
    mine = [await watching.open("default", None, "me") for _ in range(2)]
    with pytest.raises(Denied) as refused:
        await watching.open("default", None, "me")
    assert refused.value.reason == "TooManyWatches"
    await watching.open("default", None, "others")
    with pytest.raises(Overloaded):
        await watching.open("default", None, "others")
    mine[0].close()
    mine[0].close()
    await watching.open("default", None, "me")
    with pytest.raises(Overloaded):
        await watching.open("default", None)


async def test_clusters_that_are_created_at_once_are_counted(
    make_harness: MakeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one is there from the start. Those that there are may still be configured."""
    harness = await make_harness(limits=Limits(clusters_max=3))
    count = harness.store.clusters.ids

    async def counted_slowly() -> list[int]:
        found = await count()
        for _ in range(20):
            await asyncio.sleep(0)
        return found

    monkeypatch.setattr(harness.store.clusters, "ids", counted_slowly)
    creating = (harness.client.put(f"/v1/clusters/c-{n}", json={"config": {}}) for n in range(6))
    answers = await asyncio.gather(*creating)
    assert Counter(each.status_code for each in answers) == {201: 2, 403: 4}
    assert {problem(each, 403) for each in answers if each.is_error} == {"TooManyClusters"}
    await harness.configure(hardPodAffinityWeight=2)


async def test_a_cluster_may_have_so_many_objects(make_harness: MakeHarness) -> None:
    """What is there may be changed and removed; what makes them more is refused as a whole."""
    harness = await make_harness(limits=Limits(objects_max=4))
    paths = [f"{CLUSTER}/nodes/n-{number}" for number in range(6)]
    statuses = [
        (await harness.client.put(path, json=node(path[-3:]))).status_code for path in paths
    ]
    created = statuses.count(201)
    assert 0 < created <= 4
    assert statuses == [201] * created + [403] * (6 - created)
    refused = await harness.client.put(paths[-1], json=node("n-5"))
    assert problem(refused, 403) == "TooManyObjects"
    changed = await harness.client.put(paths[0], json=node("n-0", zone="a"))
    assert changed.status_code == 200
    assert (await harness.client.delete(paths[0])).status_code == 200
    assert (await harness.client.put(paths[-1], json=node("n-5"))).status_code == 201
    queued = template(2, onUnschedulable="Queue")
    answer = await harness.client.post(PLACE, content=queued, headers=JSON)
    assert problem(answer, 403) == "TooManyObjects"
    assert (await harness.client.get(f"{CLUSTER}/pods")).json()["items"] == []
