"""What an orchestrator does, with the client that openapi-python-client makes."""

import json
import os
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, TypeVar

import httpx
from moorage_client import AuthenticatedClient, models as moorage
from moorage_client.api.bulk import apply_objects, watch_changes
from moorage_client.api.clusters import get_cluster, patch_cluster, put_cluster
from moorage_client.api.namespaces import get_namespace, put_namespace
from moorage_client.api.nodes import get_node, put_node
from moorage_client.api.placements import bind_pod, explain_pod, place_pods
from moorage_client.api.pods import get_pod, list_namespaced_pods, patch_pod, put_pod
from moorage_client.api.services import get_service, put_service
from moorage_client.types import UNSET

URL, TOKEN, CLUSTER = (os.environ[name] for name in ("MOORAGE_URL", "MOORAGE_TOKEN", "CLUSTER"))
MANIFESTS = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
PATIENCE_SECONDS = 120
T = TypeVar("T")

client = AuthenticatedClient(base_url=URL, token=TOKEN, timeout=httpx.Timeout(PATIENCE_SECONDS))


def stored(path: str) -> Any:
    """What the server has, read without the generated client."""
    request = urllib.request.Request(
        f"{URL}/v1/clusters/{CLUSTER}/{path}", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def of(type_: type[T], answer: object) -> T:
    """The answer, which has to be of this type."""
    assert isinstance(answer, type_), answer
    return answer


def configure() -> None:
    settings = moorage.ClusterSettings(config=moorage.ClusterConfig(hard_pod_affinity_weight=5))
    made = of(moorage.Cluster, put_cluster.sync(CLUSTER, client=client, body=settings))
    assert made.config.hard_pod_affinity_weight == 5
    shown = of(moorage.Cluster, get_cluster.sync(CLUSTER, client=client))
    again = moorage.ClusterSettings.from_dict(shown.to_dict())
    same_again = of(moorage.Cluster, put_cluster.sync(CLUSTER, client=client, body=again))
    assert same_again.revision == shown.revision


def apply() -> None:
    written = moorage.Namespace.from_dict(MANIFESTS["namespace"])
    manifests = [*MANIFESTS["nodes"], MANIFESTS["priorityClass"], MANIFESTS["service"]]
    objects = moorage.ObjectList.from_dict({"items": manifests})
    body = moorage.ObjectList(items=[*objects.items, written])
    answer = of(moorage.ApplyAnswer, apply_objects.sync(CLUSTER, client=client, body=body))
    assert (answer.created, answer.changed) == (5, 0), answer
    assert isinstance(objects.items[0], moorage.Node)
    assert isinstance(objects.items[3], moorage.Service)


def pod(name: str, **spec: Any) -> moorage.Pod:
    return moorage.Pod.from_dict(
        {
            "metadata": {"name": name, "namespace": "shop", "labels": {"app": name}},
            "spec": {"containers": [{"name": "web", "command": ["/bin/web"]}], **spec},
        }
    )


def placed(request: moorage.PlacementRequest) -> moorage.PlacementAnswer:
    return of(moorage.PlacementAnswer, place_pods.sync(CLUSTER, client=client, body=request))


def place() -> None:
    wanted = [pod("web"), pod("lost", nodeSelector={"zone": "nowhere"})]
    answer = placed(moorage.PlacementRequest(pods=wanted, explain="Full"))
    assert [each.outcome for each in answer.results] == ["Placed", "Unschedulable"]
    assert of(moorage.Explanation, answer.results[1].explanation).feasible == []
    tried = moorage.PlacementRequest(pods=[pod("dry")], dry_run=True, explain="Summary")
    assert not placed(tried).committed
    template = moorage.PodTemplate(
        metadata=moorage.ObjectMeta(name="many", namespace="shop"),
        spec=moorage.PodSpec(containers=[moorage.Container(name="web")]),
    )
    many = moorage.PlacementRequest(template=template, replicas=3, policy="AllOrNothing")
    assert len(placed(many).results) == 3
    gated = pod("bound", schedulingGates=[{"name": "wait"}])
    of(moorage.Pod, put_pod.sync(CLUSTER, "shop", "bound", client=client, body=gated))
    patch = moorage.MergePatch.from_dict({"spec": {"schedulingGates": None}})
    patched = patch_pod.sync(CLUSTER, "shop", "bound", client=client, body=patch)
    assert not of(moorage.Pod, patched).spec.scheduling_gates
    refs = moorage.PlacementRequest(pod_refs=[moorage.PodRef(namespace="shop", name="bound")])
    assert placed(refs).results[0].outcome in {"Placed", "AlreadyPlaced"}
    explained = explain_pod.sync(CLUSTER, "shop", "bound", client=client)
    assert of(moorage.Explanation, explained).semantics == "Kubernetes"
    binding = moorage.Binding(target=moorage.BindingTarget(name="n2"))
    absent = bind_pod.sync(CLUSTER, "shop", "absent", client=client, body=binding)
    assert of(moorage.Problem, absent).code == "NotFound"


def queue_and_watch() -> None:
    late = [pod("late", nodeSelector={"zone": "late"})]
    answer = placed(moorage.PlacementRequest(pods=late, on_unschedulable="Queue"))
    assert answer.results[0].outcome == "Queued"
    patch = moorage.ClusterPatch.from_dict({"config": {"evictionsPerMinute": 30}})
    of(moorage.Cluster, patch_cluster.sync(CLUSTER, client=client, body=patch))
    manifest = {**MANIFESTS["nodes"][1], "metadata": {"name": "n3", "labels": {"zone": "late"}}}
    node = moorage.Node.from_dict(manifest)
    of(moorage.Node, put_node.sync(CLUSTER, "n3", client=client, body=node))
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (seen := kinds_until_placed(answer.revision)):
        assert time.monotonic() < deadline
    assert {"Cluster", "Node", "Pod", "Bookmark"} <= seen, seen


def kinds_until_placed(revision: int) -> set[str]:
    """The kinds of all events of a second; none if the waiting pod has no node yet."""
    watched = watch_changes.sync(CLUSTER, client=client, since_revision=revision, timeout_seconds=1)
    lines = of(str, watched).splitlines()
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    objects = [json.loads(each) for each in data]
    pods = [
        moorage.PodWatchEvent.from_dict(each).object_ for each in objects if each["kind"] == "Pod"
    ]
    for each in (each for each in objects if each["kind"] == "Cluster"):
        moorage.ClusterWatchEvent.from_dict(each)
    is_placed = any(each.metadata.name == "late" and each.spec.node_name == "n3" for each in pods)
    return {each["kind"] for each in objects} if is_placed else set()


def conflict() -> None:
    first = of(moorage.Pod, get_pod.sync(CLUSTER, "shop", "web", client=client))
    first.metadata.labels = labels_of(first.metadata, tier="front")
    of(moorage.Pod, put_pod.sync(CLUSTER, "shop", "web", client=client, body=first))
    stale = put_pod.sync(CLUSTER, "shop", "web", client=client, body=first)
    assert of(moorage.Problem, stale).code == "RevisionConflict"
    first.metadata.resource_version = UNSET
    unmatched = put_pod.sync(CLUSTER, "shop", "web", client=client, body=first, if_match='"1"')
    assert of(moorage.Problem, unmatched).code == "PreconditionFailed"


def labels_of(metadata: moorage.ObjectMeta, **more: str) -> moorage.ObjectMetaLabelsType0:
    """The labels, with more of them."""
    labels = metadata.labels.to_dict() if metadata.labels else {}
    return moorage.ObjectMetaLabelsType0.from_dict({**labels, **more})


def pages() -> None:
    names, token = list[str](), ""
    while True:
        page = list_namespaced_pods.sync(
            CLUSTER, "shop", client=client, limit=2, continue_=token or UNSET
        )
        listed = of(moorage.PodList, page)
        names += [each.metadata.name for each in listed.items]
        if not listed.metadata.continue_:
            break
        token = listed.metadata.continue_
    assert names == sorted(names)
    assert len(names) == 6


def typed_problem() -> None:
    request = moorage.PlacementRequest(pods=[pod("Bad Name")])
    refused = of(moorage.Problem, place_pods.sync(CLUSTER, client=client, body=request))
    assert refused.status == 422
    assert refused.errors
    assert "pods[0].metadata.name" in [each.field for each in refused.errors]


def changed(before: Any) -> Any:
    """What the server should have after the label was added."""
    labels = {**(before["metadata"].get("labels") or {}), "changed": "yes"}
    return {**before, "metadata": {**before["metadata"], "labels": labels}}


def same(path: str, expected: Any) -> None:
    """Check that nothing but the revision differs; absent and null differ."""
    found = stored(path)
    for each in (found, expected):
        each["metadata"].pop("resourceVersion")
    assert found == expected, (found, expected)


def nothing_is_lost() -> None:
    rich = moorage.Pod.from_dict(MANIFESTS["rich"])
    assert placed(moorage.PlacementRequest(pods=[rich])).results[0].node_name == "n1"
    before = stored("namespaces/shop/pods/rich")
    for part in ("metadata", "spec", "status"):
        assert MANIFESTS["rich"][part].keys() - {"managedFields"} <= before[part].keys()
    read = of(moorage.Pod, get_pod.sync(CLUSTER, "shop", "rich", client=client))
    read.metadata.labels = labels_of(read.metadata, changed="yes")
    of(moorage.Pod, put_pod.sync(CLUSTER, "shop", "rich", client=client, body=read))
    same("namespaces/shop/pods/rich", changed(before))

    before = stored("nodes/n1")
    node = of(moorage.Node, get_node.sync(CLUSTER, "n1", client=client))
    node.metadata.labels = labels_of(node.metadata, changed="yes")
    of(moorage.Node, put_node.sync(CLUSTER, "n1", client=client, body=node))
    same("nodes/n1", changed(before))

    before = stored("namespaces/shop")
    namespace = of(moorage.Namespace, get_namespace.sync(CLUSTER, "shop", client=client))
    namespace.metadata.labels = labels_of(namespace.metadata, changed="yes")
    of(moorage.Namespace, put_namespace.sync(CLUSTER, "shop", client=client, body=namespace))
    same("namespaces/shop", changed(before))

    before = stored("namespaces/shop/services/web")
    service = of(moorage.Service, get_service.sync(CLUSTER, "shop", "web", client=client))
    service.metadata.labels = labels_of(service.metadata, changed="yes")
    of(moorage.Service, put_service.sync(CLUSTER, "shop", "web", client=client, body=service))
    same("namespaces/shop/services/web", changed(before))


configure()
apply()
place()
queue_and_watch()
conflict()
pages()
typed_problem()
nothing_is_lost()
