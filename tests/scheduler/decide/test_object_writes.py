"""Writing objects: what is created, changed, kept, refused and removed."""

import asyncio
from typing import Any

import msgspec
import pytest

from service.model.core.errors import (
    BindingRefused,
    Conflict,
    Denied,
    EvictionBlocked,
    InvalidManifest,
    NotFound,
    OutcomeUnknown,
    PreconditionFailed,
    RevisionConflict,
)
from service.scheduler.protocol.intents import (
    ApplyLine,
    ApplyLines,
    ApplyObjects,
    BindPod,
    DeleteObject,
    EvictPod,
    ExplainPod,
    PatchConfig,
    PatchObject,
    Preconditions,
    PutConfig,
    PutObject,
    ReadTopology,
)
from tests.builders import matching, namespace, node, pod
from tests.scheduler.world import World, world
from tests.waiting import PATIENCE_SECONDS

LEAVE_PENDING = PutConfig(config={"placePendingPods": False})
"""Pods without a node stay as they are."""


def put(w, manifest, **options):
    return w.ask(PutObject(manifest=w.parsed(manifest)[0], **options))


def patch(w, kind, name, change, *, patch_type="merge", space="", **options):
    return w.ask(
        PatchObject(
            kind=kind, namespace=space, name=name, patch_type=patch_type, patch=change, **options
        )
    )


def body_of(answer):
    return msgspec.json.decode(answer.body)


async def test_put_creates_with_uid_and_time_then_replaces():
    async with world() as w:
        created = await put(w, node("n1"))
        assert created.created is True
        metadata = body_of(created)["metadata"]
        assert metadata["uid"]
        assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
        await w.pass_time(60)
        replaced = await put(w, node("n1").label(zone="a"))
        assert replaced.created is False
        assert replaced.resource_version > created.resource_version
        kept = body_of(replaced)["metadata"]
        assert (kept["uid"], kept["creationTimestamp"]) == (
            metadata["uid"],
            metadata["creationTimestamp"],
        )


async def test_a_write_that_changes_nothing_makes_no_revision():
    async with world() as w:
        first = await put(w, node("n1").label(a="1", b="2"))
        reordered = {"metadata": {"labels": {"b": "2", "a": "1"}, "name": "n1"}, "kind": "Node"}
        again = await put(w, reordered | {"status": node("n1")["status"]})
        assert again.resource_version == first.resource_version
        assert again.revision == await w.head_revision() == first.revision


async def test_preconditions_of_put():
    async with world() as w:
        first = await put(w, node("n1"))
        tag = str(first.resource_version)
        other = Preconditions(resource_version="1")
        with pytest.raises(RevisionConflict):
            await put(w, node("n1").label(a="1"), preconditions=other)
        with pytest.raises(PreconditionFailed):
            await put(w, node("n1").label(a="1"), preconditions=Preconditions(if_match=("1",)))
        with pytest.raises(PreconditionFailed):
            await put(w, node("absent"), preconditions=Preconditions(if_match=("*",)))
        sent = node("n1").label(a="1")
        sent["metadata"]["resourceVersion"] = "1"
        with pytest.raises(RevisionConflict):
            await put(w, sent)
        sent["metadata"]["resourceVersion"] = tag
        changed = await put(w, sent, preconditions=Preconditions(if_match=(tag,)))
        assert changed.resource_version > first.resource_version


async def test_another_uid_is_a_conflict_in_put_and_a_new_object_in_apply():
    async with world() as w:
        await w.ask(LEAVE_PENDING)
        first = await put(w, pod("a"))
        other = pod("a").label(x="y")
        other["metadata"]["uid"] = "11111111-1111-4111-8111-111111111111"
        with pytest.raises(RevisionConflict):
            await put(w, other)
        answer = await w.apply(other)
        assert (answer.created, answer.changed) == (1, 0)
        verbs = [(change.verb, change.uid) for change in w.log() if change.kind == "Pod"]
        assert verbs == [
            ("Put", body_of(first)["metadata"]["uid"]),
            ("Delete", body_of(first)["metadata"]["uid"]),
            ("Put", other["metadata"]["uid"]),
        ]
        assert w.store.states[1].commits[-1].first == w.log()[-2].revision


async def test_what_an_update_cannot_remove():
    async with world() as w:
        await w.apply(node("n1"))
        await w.place(pod("a"))
        await w.ask(EvictPod(namespace="default", name="a"))
        before = await w.head_revision()
        answer = await put(w, pod("a"))
        assert await w.head_revision() == before
        kept = body_of(answer)
        assert kept["spec"]["nodeName"] == "n1"
        assert kept["metadata"]["deletionTimestamp"]
        types = {each["type"] for each in kept["status"]["conditions"]}
        assert types == {"PodScheduled", "DisruptionTarget"}


async def test_a_placed_pods_spec_may_change_in_few_things_only():
    async with world() as w:
        await w.apply(node("n1"), node("n2"))
        await put(w, pod("a").on("n1").request(cpu="1").tolerate("old"))
        allowed = pod("a").request(cpu="2").tolerate("old").tolerate("new").label(x="y")
        await put(w, allowed)
        with pytest.raises(InvalidManifest) as caught:
            await put(w, pod("a").request(cpu="2").node_selector(a="b"))
        assert {error.field for error in caught.value.errors} == {
            "spec.nodeSelector",
            "spec.tolerations",
        }
        # Seen on another node: whatever is said of it is a fact.
        moved = await put(w, pod("a").on("n2").node_selector(a="b"))
        assert body_of(moved)["spec"]["nodeName"] == "n2"


async def test_a_pending_pods_spec_may_change():
    async with world() as w:
        await put(w, pod("a"))
        assert "nodeSelector" in body_of(await put(w, pod("a").node_selector(a="b")))["spec"]


async def test_pods_with_a_node_are_facts_others_go_through_admission():
    async with world() as w:
        broad = pod("a").require_anti_affinity("zone", matching(a="b"), namespaceSelector={})
        with pytest.raises(Denied) as caught:
            await put(w, broad)
        assert caught.value.reason == "AntiAffinityTooBroad"
        assert (await put(w, broad.on("n1"))).created is True
        unknown = pod("b")
        unknown["spec"]["priorityClassName"] = "none-such"
        with pytest.raises(Denied) as caught:
            await put(w, unknown)
        assert caught.value.reason == "UnknownPriorityClass"


async def test_patches_of_all_three_kinds():
    async with world() as w:
        await put(w, node("n1").taint("a"))
        merged = await patch(w, "Node", "n1", {"metadata": {"labels": {"x": "1"}}})
        assert body_of(merged)["metadata"]["labels"] == {"x": "1"}
        stepwise = [{"op": "test", "path": "/metadata/labels/x", "value": "1"}]
        stepwise.append({"op": "remove", "path": "/metadata/labels/x"})
        removed = await patch(w, "Node", "n1", stepwise, patch_type="json")
        assert body_of(removed)["metadata"]["labels"] == {}
        await put(w, pod("p").request(cpu="1"))
        image = {"spec": {"containers": [{"name": "main", "image": "web"}]}}
        strategic = await patch(w, "Pod", "p", image, patch_type="strategic", space="default")
        (container,) = body_of(strategic)["spec"]["containers"]
        assert container["image"] == "web"
        assert container["resources"] == {"requests": {"cpu": "1"}}


async def test_a_patch_cannot_rename_and_tells_of_a_stale_revision():
    async with world() as w:
        await put(w, pod("a"))
        with pytest.raises(InvalidManifest):
            await patch(w, "Pod", "a", {"metadata": {"name": "b"}}, space="default")
        stale = {"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}}
        with pytest.raises(RevisionConflict):
            await patch(w, "Pod", "a", stale, space="default")
        with pytest.raises(NotFound):
            await patch(w, "Pod", "none", {}, space="default")


async def test_deleting_a_node_keeps_its_pods():
    async with world() as w:
        await w.apply(node("n1"), pod("a").on("n1"))
        await w.ask(DeleteObject(kind="Node", name="n1"))
        assert (await w.nodes_of_pods()) == {"a": "n1"}
        with pytest.raises(NotFound):
            await w.ask(DeleteObject(kind="Node", name="n1"))


async def test_deleting_a_namespace_takes_its_pods_in_the_same_commit():
    async with world() as w:
        await w.ask(LEAVE_PENDING)
        await w.apply(namespace("shop"), pod("a", "shop"), pod("b", "shop"), pod("c"))
        await w.ask(DeleteObject(kind="Namespace", name="shop"))
        assert set(await w.nodes_of_pods()) == {"c"}
        commit = w.store.states[1].commits[-1]
        assert commit.last - commit.first + 1 == 3


async def test_deleting_default_only_empties_it():
    async with world() as w:
        await w.apply(namespace("default").label(a="b"), pod("a"), pod("b", "other"))
        await w.ask(DeleteObject(kind="Namespace", name="default"))
        assert set(await w.nodes_of_pods()) == {"b"}
        assert await w.stored("Namespace", "", "default") is not None
        before = await w.head_revision()
        await w.ask(DeleteObject(kind="Namespace", name="default"))
        assert await w.head_revision() == before


async def test_a_list_is_applied_whole_or_not_at_all():
    async with world() as w:
        await w.apply(node("n1"), node("n2"))
        answer = await w.apply(node("n1"), node("n2").label(a="b"), node("n3"))
        assert (answer.created, answer.changed, answer.unchanged) == (1, 1, 1)
        assert answer.revision == await w.head_revision()
        broad = pod("p").require_anti_affinity("zone", matching(a="b"), namespaceSelector={})
        with pytest.raises(Denied, match=r"items\[1\]"):
            await w.apply(node("n4"), broad)
        assert await w.stored("Node", "", "n4") is None


async def test_prune_removes_what_the_list_lacks_unless_it_is_newer():
    async with world() as w:
        await w.apply(node("n1"), node("n2"), pod("p"))
        known = await w.head_revision()
        await w.apply(node("newer"))
        intent = ApplyObjects(
            manifests=w.parsed(node("n1")), prune=frozenset({"Node"}), prune_before=known
        )
        answer = await w.ask(intent)
        assert (answer.unchanged, answer.deleted) == (1, 1)
        assert await w.stored("Node", "", "n2") is None
        assert await w.stored("Node", "", "newer") is not None
        assert await w.stored("Pod", "default", "p") is not None


async def test_lines_are_judged_one_by_one():
    async with world() as w:
        await w.apply(node("same"))
        broad = pod("p").require_anti_affinity("zone", matching(a="b"), namespaceSelector={})
        good = w.parsed(node("same"), node("new"), broad)
        lines = [ApplyLine(line=number, object=each) for number, each in enumerate(good, 1)]
        try:
            w.parsed({"kind": "Node", "metadata": {"name": "-"}})
        except InvalidManifest as error:
            lines.append(ApplyLine(line=4, object=error, kind="Node", name="-"))
        answer = await w.ask(ApplyLines(lines=tuple(lines)))
        told = [(each.line, each.result) for each in answer.results]
        assert told == [(1, "Unchanged"), (2, "Created"), (3, "Denied"), (4, "Invalid")]
        assert answer.results[1].revision == await w.head_revision()
        assert answer.results[3].errors


async def test_configuration_is_a_revision_and_acts_at_once():
    async with world() as w:
        await w.apply(node("n1").label(zone="a"))
        before = await w.head_revision()
        merge = {"restrictAllNamespacesAntiAffinity": False}
        answer = await w.ask(PatchConfig(patch_type="merge", patch=merge))
        assert answer.revision == await w.head_revision() == before + 1
        assert msgspec.json.decode(answer.config)["restrictAllNamespacesAntiAffinity"] is False
        broad = pod("p").require_anti_affinity("zone", matching(a="b"), namespaceSelector={})
        assert (await w.place(broad)).results[0].outcome == "Placed"
        await w.ask(PatchConfig(patch_type="merge", patch=merge))
        assert await w.head_revision() == before + 2
        with pytest.raises(InvalidManifest):
            await w.ask(PutConfig(config={"noSuchSetting": 1}))


async def test_put_config_creates_the_cluster():
    async with world() as w:
        intent = PutConfig(config={"hardPodAffinityWeight": 7})
        created = await w.schedulers[0].submit("new", intent)
        assert created.created is True
        again = await w.schedulers[0].submit("new", intent)
        assert (again.created, again.revision) == (False, created.revision)
        with pytest.raises(NotFound):
            await w.schedulers[0].submit("none", ReadTopology(key="zone"))


async def test_a_cluster_made_anew_under_its_old_name_is_another_one():
    async with world(workers=2) as w:
        config = PutConfig(config={})
        for scheduler in w.schedulers:
            await scheduler.submit("c", config)
        put_node = PutObject(manifest=w.parsed(node("n1"))[0])
        await w.schedulers[0].submit("c", put_node)
        await w.schedulers[1].delete_cluster("c")
        await w.schedulers[1].submit("c", config)
        topology = await w.schedulers[0].submit("c", ReadTopology(key="zone"))
        assert topology.nodes_without_key == []


class SlowDeletion:
    """A store's deletion of clusters, which waits until it may go on."""

    def __init__(self, w: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.began, self.may_go_on = asyncio.Event(), asyncio.Event()
        self.asked = 0
        self._scheduler = w.schedulers[0]
        self._delete = w.store.clusters.delete
        monkeypatch.setattr(w.store.clusters, "delete", self)

    async def begin(self) -> asyncio.Task[None]:
        """Ask for the deletion of a new cluster `c`, and wait until the store is asked."""
        await self._scheduler.submit("c", PutConfig(config={}))
        deleting = asyncio.create_task(self._scheduler.delete_cluster("c"))
        await self.began.wait()
        return deleting

    async def __call__(self, *told: Any, **options: Any) -> bool:
        self.asked += 1
        self.began.set()
        await self.may_go_on.wait()
        return await self._delete(*told, **options)


async def test_a_cluster_goes_also_if_nobody_waits_for_it_any_more(
    monkeypatch: pytest.MonkeyPatch,
):
    async with world() as w:
        slow = SlowDeletion(w, monkeypatch)
        deleting = await slow.begin()
        deleting.cancel()
        await asyncio.wait([deleting])
        again = asyncio.create_task(w.schedulers[0].delete_cluster("c"))
        await asyncio.sleep(0)
        slow.may_go_on.set()
        await again
        assert [row.name for row in await w.store.clusters.all()] == ["default"]


async def test_who_asks_again_for_a_deletion_waits_for_the_one_that_goes_on(
    monkeypatch: pytest.MonkeyPatch,
):
    """Each that waited for the other would have one of the few connections by which commits are made."""
    async with world() as w:
        slow = SlowDeletion(w, monkeypatch)
        deleting = await slow.begin()
        asking = [asyncio.create_task(w.schedulers[0].delete_cluster("c")) for _ in range(2)]
        await asyncio.sleep(0)
        slow.may_go_on.set()
        await asyncio.gather(deleting, *asking)
        assert slow.asked == 1


async def test_who_asks_on_a_condition_is_not_answered_for_somebody_else(
    monkeypatch: pytest.MonkeyPatch,
):
    async with world() as w:
        slow = SlowDeletion(w, monkeypatch)
        deleting = await slow.begin()
        stale = Preconditions(if_match=("9",))
        asking = asyncio.create_task(w.schedulers[0].delete_cluster("c", preconditions=stale))
        slow.may_go_on.set()
        await deleting
        with pytest.raises(NotFound):
            await asking


async def test_a_server_that_ends_waits_for_no_deletion_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
):
    async with world() as w:
        slow = SlowDeletion(w, monkeypatch)
        deleting = await slow.begin()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await w.schedulers[0].stop()
        with pytest.raises(OutcomeUnknown):
            await deleting
        assert [row.name for row in await w.store.clusters.all()] == ["c", "default"]


async def test_binding_checks_filters_unless_it_is_forced():
    async with world() as w:
        await w.ask(LEAVE_PENDING)
        await w.apply(node("n1").cordon(), node("n2"), pod("a"), pod("b"))
        bind = BindPod(namespace="default", name="a", node_name="n1")
        with pytest.raises(BindingRefused) as caught:
            await w.ask(bind)
        assert list(caught.value.reasons) == ["NodeUnschedulable"]
        forced = await w.ask(msgspec.structs.replace(bind, force=True))
        assert body_of(forced)["spec"]["nodeName"] == "n1"
        before = await w.head_revision()
        assert body_of(await w.ask(bind)) == body_of(forced)
        assert await w.head_revision() == before
        with pytest.raises(Conflict):
            await w.ask(msgspec.structs.replace(bind, node_name="n2"))
        with pytest.raises(RevisionConflict):
            await w.ask(BindPod(namespace="default", name="b", node_name="n2", uid="other"))
        with pytest.raises(NotFound):
            await w.ask(BindPod(namespace="default", name="b", node_name="none"))


async def test_eviction_marks_the_pod_once():
    async with world() as w:
        await w.apply(node("n1"), pod("a").on("n1"))
        first = await w.ask(EvictPod(namespace="default", name="a"))
        await w.pass_time(5)
        again = await w.ask(EvictPod(namespace="default", name="a"))
        assert again.body == first.body
        condition = body_of(first)["status"]["conditions"][-1]
        assert (condition["type"], condition["status"]) == ("DisruptionTarget", "True")


def budget(**spec):
    metadata = {"name": "web", "namespace": "default"}
    selector = {"matchLabels": {"app": "web"}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": {"selector": selector, **spec},
    }


async def test_evictions_that_race_take_no_more_than_their_budget_allows():
    """Just before the first is committed, another worker evicts another pod."""
    async with world(workers=2) as w:
        web = [pod(name).label(app="web").on("n1") for name in ("a", "b", "c")]
        await w.apply(node("n1"), *web, budget(minAvailable=2), worker=1)
        await w.place(pod("warm"), worker=0, dry_run=True)
        commit = w.store.log.commit

        async def racing(cluster_id, request):
            w.store.log.commit = commit
            await w.ask(EvictPod(namespace="default", name="b"), worker=1)
            return await commit(cluster_id, request)

        w.store.log.commit = racing
        with pytest.raises(EvictionBlocked) as caught:
            await w.ask(EvictPod(namespace="default", name="a"), worker=0)
        assert caught.value.causes == [
            "The disruption budget web needs 2 healthy pods and has 2 currently"
        ]
        assert w.store.log.commit is commit
        stored = [await w.stored("Pod", "default", name) for name in ("a", "b", "c")]
        assert ["deletionTimestamp" in each["metadata"] for each in stored] == [False, True, False]


async def test_evictions_of_one_batch_take_no_more_than_their_budget_allows():
    async with world() as w:
        names = ("a", "b", "c", "d")
        web = [pod(name).label(app="web").on("n1") for name in names]
        await w.apply(node("n1"), *web, budget(maxUnavailable="50%"))
        asked = (w.ask(EvictPod(namespace="default", name=name)) for name in names)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [isinstance(each, EvictionBlocked) for each in answers] == [False, False, True, True]


async def test_the_explanation_of_a_placed_pod_takes_it_out():
    async with world() as w:
        await w.apply(node("n1").allocatable(cpu="1"), pod("a").on("n1").request(cpu="1"))
        answer = await w.ask(ExplainPod(namespace="default", name="a"))
        assert answer.explanation.feasible == ["n1"]
        # Only for the explanation.
        refused = await w.place(pod("b").request(cpu="1"))
        assert refused.results[0].outcome == "Unschedulable"


async def test_topology_adds_up_nodes_pods_and_free_resources():
    async with world() as w:
        await w.apply(
            node("n1").label(zone="a"),
            node("n2").label(zone="a"),
            node("n3"),
            pod("p").on("n1").request(cpu="1500m"),
            pod("done").on("n2").phase("Succeeded"),
        )
        answer = await w.ask(ReadTopology(key="zone"))
        (domain,) = answer.domains
        assert (domain.value, domain.nodes, domain.pods) == ("a", ["n1", "n2"], 1)
        assert domain.free == {"cpu": "14500m", "memory": str(64 * 2**30), "pods": "219"}
        assert answer.nodes_without_key == ["n3"]
