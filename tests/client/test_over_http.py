"""Both clients against a real server: what an orchestrator does all day."""

from collections.abc import Iterator
from contextlib import aclosing
from itertools import islice
from typing import Any

import pytest

from moorage import (
    AsyncCache,
    AsyncClient,
    Cache,
    Client,
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    PreconditionError,
    UnauthenticatedError,
)
from tests.api.harness import node, pod
from tests.api.live import live_server

TOKEN = "a-token-that-only-these-tests-know"


@pytest.fixture(scope="module")
def url(module_database_url: str) -> Iterator[str]:
    with live_server(module_database_url, token=TOKEN) as url:
        yield url


@pytest.fixture
def moorage(url: str, request: pytest.FixtureRequest) -> Iterator[Client]:
    """A client of a cluster that only this test has."""
    cluster = request.node.name.replace("_", "-")[:50].rstrip("-")
    with Client(url, token=TOKEN, cluster=cluster) as client:
        client.put_cluster({})
        yield client


def stocked(moorage: Client, nodes: int = 2) -> None:
    moorage.apply(
        [{"kind": "Namespace", "metadata": {"name": "shop"}}]
        + [node(f"node-{number}", zone=str(number)) for number in range(nodes)]
    )


def test_names_are_made_once_for_a_key(moorage: Client):
    moorage.configure(placePendingPods=False)
    unnamed = pod("any")
    del unnamed["metadata"]["name"]
    unnamed["metadata"]["generateName"] = "web-"
    made = moorage.pods.create(unnamed, idempotency_key="k")
    assert made["metadata"]["name"].startswith("web-")
    assert moorage.pods.create(unnamed, idempotency_key="k") == made
    assert (
        moorage.pods.create(unnamed, dry_run=True)["metadata"]["name"] != made["metadata"]["name"]
    )
    with pytest.raises(ConflictError):
        moorage.pods.create(made)
    assert len(list(moorage.pods.list())) == 1
    node_made = moorage.nodes.create({"metadata": {"generateName": "n-"}})
    assert moorage.nodes.get(node_made["metadata"]["name"])


def test_placements_of_all_sorts(moorage: Client):
    stocked(moorage)
    answer = moorage.place([pod("a"), pod("b")], policy="AllOrNothing", explain="Summary")
    assert [each["outcome"] for each in answer["results"]] == ["Placed", "Placed"]
    assert moorage.place([pod("a")])["results"][0]["outcome"] == "AlreadyPlaced"

    template = {"metadata": {"name": "web", "namespace": "shop"}, "spec": pod("x")["spec"]}
    copies = moorage.place_copies(template, 3, dry_run=True)
    assert [each["name"] for each in copies["results"]] == ["web-0", "web-1", "web-2"]

    huge = pod("huge", nodeSelector={"zone": "none"})
    assert moorage.place([huge], on_unschedulable="Queue")["results"][0]["outcome"] == "Queued"
    assert moorage.place_stored([("shop", "huge")])["results"][0]["outcome"] == "Unschedulable"
    assert moorage.explain("huge", namespace="shop")["message"]

    moorage.configure(placePendingPods=False)
    moorage.pods.put(pod("bound"))
    assert moorage.bind("bound", "node-1", namespace="shop")["spec"]["nodeName"] == "node-1"
    stored = moorage.pods.get("bound", namespace="shop")
    assert moorage.confirm_binding(stored, "node-1")["revision"] >= 1
    with pytest.raises(ConflictError) as conflict:
        moorage.bind("bound", "node-0", namespace="shop")
    assert conflict.value.code == "Conflict"
    assert moorage.evict("bound", namespace="shop")["metadata"]["deletionTimestamp"]
    assert moorage.violations()["items"] == []
    assert len(moorage.topology("zone")["domains"]) == 2


def test_one_key_is_one_placement(moorage: Client):
    stocked(moorage)
    first = moorage.place([pod("a")], idempotency_key="the-first")
    assert moorage.place([pod("a")], idempotency_key="the-first") == first
    with pytest.raises(InvalidRequestError) as reused:
        moorage.place([pod("b")], idempotency_key="the-first")
    assert reused.value.code == "IdempotencyKeyReused"


def test_what_is_read_changed_and_put_back_loses_nothing_and_overwrites_nobody(moorage: Client):
    moorage.configure(placePendingPods=False)
    manifest = pod("a", volumes=[{"name": "v", "emptyDir": {}}], unheardOf={"kept": [1, None]})
    manifest["metadata"]["finalizers"] = ["example.com/f"]
    moorage.pods.put(manifest)
    read = moorage.pods.get("a", namespace="shop")
    other = moorage.pods.get("a", namespace="shop")

    read["metadata"]["labels"] = {"app": "changed"}
    written = moorage.pods.put(read)
    assert written["spec"]["unheardOf"] == {"kept": [1, None]}
    assert written["metadata"]["finalizers"] == ["example.com/f"]

    with pytest.raises(ConflictError) as conflict:
        moorage.pods.put(other)
    assert conflict.value.code == "RevisionConflict"
    with pytest.raises(PreconditionError):
        moorage.pods.put(pod("a"), create_only=True)


def test_patches_of_three_kinds(moorage: Client):
    stocked(moorage)
    label = {"metadata": {"labels": {"a": "1"}}}
    assert moorage.nodes.patch("node-0", label)["metadata"]["labels"]["a"] == "1"
    steps = [{"op": "replace", "path": "/metadata/labels/a", "value": "2"}]
    patched = moorage.nodes.patch("node-0", steps, patch_type="json")
    assert patched["metadata"]["labels"]["a"] == "2"
    removal = {"metadata": {"labels": {"a": None}}}
    patched = moorage.nodes.patch("node-0", removal, patch_type="strategic")
    assert "a" not in patched["metadata"]["labels"]


def test_what_a_manager_wants_is_applied_and_others_are_told(moorage: Client):
    def labels(**given: str) -> Any:
        return {"kind": "Node", "metadata": {"name": "n1", "labels": given}}

    nodes = moorage.nodes
    assert nodes.apply(labels(a="1"), field_manager="one", dry_run=True)["metadata"]["labels"]
    with pytest.raises(NotFoundError):
        nodes.get("n1")
    made = nodes.apply(labels(a="1", b="1"), field_manager="one")
    assert made["metadata"]["managedFields"][0]["manager"] == "one"
    fewer = nodes.apply(labels(a="1"), field_manager="one")
    assert fewer["metadata"]["labels"] == {"a": "1"}
    with pytest.raises(ConflictError) as conflict:
        nodes.apply(labels(a="2"), field_manager="two")
    assert conflict.value.code == "FieldManagerConflict"
    forced = nodes.apply(labels(a="2"), field_manager="two", force=True)
    assert [each["manager"] for each in forced["metadata"]["managedFields"]] == ["two"]
    stocked(moorage)
    applied = moorage.pods.apply(pod("web"), field_manager="one")
    assert applied["metadata"]["namespace"] == "shop"


def test_dry_runs_change_nothing(moorage: Client):
    stocked(moorage)
    moorage.configure(placePendingPods=False)
    moorage.pods.put(pod("a"))
    revision = moorage.get_cluster()["revision"]
    assert "resourceVersion" not in moorage.pods.put(pod("b"), dry_run=True)["metadata"]
    label = {"metadata": {"labels": {"a": "1"}}}
    assert moorage.nodes.patch("node-0", label, dry_run=True)["metadata"]["labels"]["a"] == "1"
    assert moorage.pods.delete("a", namespace="shop", dry_run=True)["metadata"]["name"] == "a"
    assert moorage.pods.delete_matching(everything=True, dry_run=True)["deleted"] == 1
    assert moorage.apply([node("node-9")], dry_run=True)["created"] == 1
    bound = moorage.bind("a", "node-0", namespace="shop", dry_run=True)
    assert bound["spec"]["nodeName"] == "node-0"
    assert moorage.evict("a", namespace="shop", dry_run=True)["metadata"]["deletionTimestamp"]
    assert moorage.get_cluster()["revision"] == revision


def test_problems_name_every_wrong_field(moorage: Client):
    with pytest.raises(InvalidRequestError) as wrong:
        moorage.place([pod("a", tolerations=[{"effect": "Never"}], affinity={"nope": 1})])
    fields = {each["field"] for each in wrong.value.errors}
    assert {"pods[0].spec.affinity.nope", "pods[0].spec.tolerations[0].effect"} <= fields
    with pytest.raises(NotFoundError):
        moorage.nodes.get("nowhere")


def test_who_may_not_is_told(moorage: Client, url: str):
    quota = {"metadata": {"name": "q", "namespace": "shop"}, "spec": {"hard": {"pods": "0"}}}
    stocked(moorage)
    moorage.resource_quotas.put(quota)
    with pytest.raises(ForbiddenError) as over:
        moorage.pods.put(pod("a"))
    assert over.value.code == "QuotaExceeded"
    with Client(url) as stranger, pytest.raises(UnauthenticatedError):
        stranger.whoami()
    assert moorage.whoami()["name"]


def test_lists_ends_in_bulk_and_reports(moorage: Client):
    stocked(moorage)
    lines = [pod(f"p-{number}") for number in range(5)]
    assert {each["result"] for each in moorage.apply_lines([*lines, {"kind": "Pod"}])} == {
        "Created",
        "Invalid",
    }
    found = list(moorage.pods.list(namespace="shop", page_size=2, label_selector="app=web"))
    assert [each["metadata"]["name"] for each in found] == [f"p-{number}" for number in range(5)]

    reports = [{"namespace": "shop", "name": "p-0", "status": {"phase": "Succeeded"}}]
    assert moorage.report_statuses(reports)["results"][0]["result"] == "Changed"
    ended = moorage.pods.delete_matching(namespace="shop", phase="Succeeded")
    assert [each["name"] for each in ended["results"]] == ["p-0"]
    assert moorage.pods.delete("p-1", namespace="shop")["metadata"]["name"] == "p-1"
    with pytest.raises(InvalidRequestError):
        moorage.pods.delete_matching()
    assert moorage.pods.delete_matching(everything=True, limit=2)["remaining"] == 1


def test_nodes_report_and_clusters_are_configured(moorage: Client):
    stocked(moorage)
    assert moorage.report_nodes(["node-0", "node-9"])["unknown"] == ["node-9"]
    assert moorage.node_lease("node-0")["spec"]
    assert moorage.configure(orphanGraceSeconds=7)["config"]["orphanGraceSeconds"] == 7
    assert moorage.configure(orphanGraceSeconds=None)["config"]["orphanGraceSeconds"] == 10
    assert moorage.get_cluster()["counts"]["nodes"] == 2
    assert moorage.cluster in {each["name"] for each in moorage.list_clusters()}
    plan = moorage.plan({"changes": [{"op": "RemoveNodes", "names": ["node-0"]}]})
    assert plan["after"]["nodes"] == 1
    removal = {"type": "Remove", "namespace": "shop", "selector": {}, "count": 0}
    assert moorage.commit_plan({"goal": removal})["status"] == "Committed"
    asked = {"nodes": [node("n")], "place": [pod("a")]}
    assert moorage.simulate(asked)["results"][0]["nodeName"] == "n"
    with moorage.export() as pieces:
        assert b"".join(pieces).startswith(b"{")
    assert list(moorage.events(field_selector="type=Warning")) == []
    moorage.delete_cluster()
    with pytest.raises(NotFoundError):
        moorage.get_cluster()


def test_a_watch_and_a_revision_that_never_was(moorage: Client):
    stocked(moorage)
    revision = moorage.get_cluster()["revision"]
    moorage.place([pod("a")])
    moorage.pods.delete("a", namespace="shop")
    events = moorage.pods.watch(since=revision, namespace="shop")
    told = islice(((each.type, each.kind) for each in events if each.type != "BOOKMARK"), 2)
    assert list(told) == [("ADDED", "Pod"), ("DELETED", "Pod")]
    assert moorage.get_cluster()["revision"] == revision + 2


async def test_bindings_are_followed_without_the_pods(moorage: Client, url: str):
    stocked(moorage)
    revision = moorage.get_cluster()["revision"]
    async with AsyncClient(url, token=TOKEN, cluster=moorage.cluster) as client:
        async with aclosing(client.bindings()) as told:
            assert await anext(told) == {"revision": revision, "action": "Bookmark"}
            answer = await client.place([pod("a")])
            async for record in told:
                if record["action"] != "Bookmark":
                    break
        assert record["nodeName"] == answer["results"][0]["nodeName"]
        assert record["uid"] == answer["results"][0]["uid"]
        await client.pods.delete("a", namespace="shop")
        async with aclosing(client.bindings(since=record["revision"])) as rest:
            assert (await anext(rest))["action"] == "Deleted"


async def test_the_asynchronous_cache_is_what_the_server_has(moorage: Client, url: str):
    stocked(moorage)
    async with AsyncClient(url, token=TOKEN, cluster=moorage.cluster) as client:
        cache = AsyncCache(client.pods, namespace="shop")
        await client.place([pod("a"), pod("b")])
        async with aclosing(cache.changes()) as changes:
            first = [await anext(changes), await anext(changes)]
            await client.pods.delete("a", namespace="shop")
            last = await anext(changes)
        assert {each.type for each in first} == {"Added"}
        assert (last.type, last.object["metadata"]["name"]) == ("Deleted", "a")
        assert [each async for each in client.pods.list(namespace="shop")] == list(cache)


def test_a_cache_of_a_cluster_made_again_has_the_new_objects_and_no_old_ones(moorage: Client):
    """Whether the new log is shorter than the old one or not."""
    cache = Cache(moorage.pods, namespace="shop")
    before: set[str] = set()
    for number in (4, 1, 12):
        names = {f"pod-{number}-{each}" for each in range(number)}
        stocked(moorage)
        moorage.configure(placePendingPods=False)
        for each in names:
            moorage.pods.put(pod(each))
        changes = list(islice(cache.changes(), len(before) + len(names)))
        assert {(each.type, each.object["metadata"]["name"]) for each in changes} == {
            *(("Deleted", each) for each in before),
            *(("Added", each) for each in names),
        }
        moorage.delete_cluster()
        moorage.put_cluster()
        before = names
