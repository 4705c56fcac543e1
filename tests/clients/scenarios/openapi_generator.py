"""What an orchestrator does, with the client that OpenAPI Generator makes for Python."""

import json
import os
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import moorage_openapi as moorage
from moorage_openapi.exceptions import ApiException

URL, TOKEN, CLUSTER = (os.environ[name] for name in ("MOORAGE_URL", "MOORAGE_TOKEN", "CLUSTER"))
MANIFESTS = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
PATIENCE_SECONDS = 120

client = moorage.ApiClient(moorage.Configuration(host=URL, access_token=TOKEN))
clusters, bulk, pods = moorage.ClustersApi(client), moorage.BulkApi(client), moorage.PodsApi(client)
placements, nodes = moorage.PlacementsApi(client), moorage.NodesApi(client)
namespaces, services = moorage.NamespacesApi(client), moorage.ServicesApi(client)


def stored(path: str) -> Any:
    """What the server has, read without the generated client."""
    request = urllib.request.Request(
        f"{URL}/v1/clusters/{CLUSTER}/{path}", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def refused(act: Callable[[], object]) -> moorage.Problem:
    """The problem document with which a request is refused, as a typed object."""
    problem: object = None
    try:
        act()
    except ApiException as error:
        problem = error.data
    assert isinstance(problem, moorage.Problem), problem
    return problem


def configure() -> None:
    settings = moorage.ClusterSettings(config=moorage.ClusterConfig(hardPodAffinityWeight=5))
    assert clusters.put_cluster(CLUSTER, settings).config.hard_pod_affinity_weight == 5
    shown = clusters.get_cluster(CLUSTER)
    again = moorage.ClusterSettings(config=shown.config)
    assert clusters.put_cluster(CLUSTER, again).revision == shown.revision


def apply() -> None:
    manifests = [*MANIFESTS["nodes"], MANIFESTS["namespace"], MANIFESTS["priorityClass"]]
    items = [
        moorage.ApplicableObject.from_dict(each) for each in [*manifests, MANIFESTS["service"]]
    ]
    answer = bulk.apply_objects(CLUSTER, moorage.ObjectList(items=[each for each in items if each]))
    assert isinstance(answer, moorage.ApplyAnswer)
    assert (answer.created, answer.changed) == (5, 0), answer


def pod(name: str, **spec: Any) -> moorage.Pod:
    return moorage.Pod(
        metadata=moorage.ObjectMeta(name=name, namespace="shop", labels={"app": name}),
        spec=moorage.PodSpec(containers=[moorage.Container(name="web")], **spec),
    )


def place() -> None:
    wanted = [pod("web"), pod("lost", nodeSelector={"zone": "nowhere"})]
    answer = placements.place_pods(CLUSTER, moorage.PlacementRequest(pods=wanted, explain="Full"))
    assert [each.outcome for each in answer.results] == ["Placed", "Unschedulable"]
    explanation = answer.results[1].explanation
    assert explanation is not None
    assert isinstance(explanation.actual_instance, moorage.Explanation)
    assert explanation.actual_instance.feasible == []
    tried = placements.place_pods(
        CLUSTER, moorage.PlacementRequest(pods=[pod("dry")], dryRun=True, explain="Summary")
    )
    assert not tried.committed
    template = moorage.PodTemplate(
        metadata=moorage.ObjectMeta(name="many", namespace="shop"),
        spec=moorage.PodSpec(containers=[moorage.Container(name="web")]),
    )
    many = moorage.PlacementRequest(template=template, replicas=3, policy="AllOrNothing")
    assert len(placements.place_pods(CLUSTER, many).results) == 3
    binding = moorage.Binding(target=moorage.BindingTarget(name="n2"))
    pods.put_pod(CLUSTER, "shop", "bound", pod("bound", schedulingGates=[{"name": "wait"}]))
    pods.patch_pod(CLUSTER, "shop", "bound", {"spec": {"schedulingGates": None}})
    refs = moorage.PlacementRequest(podRefs=[moorage.PodRef(namespace="shop", name="bound")])
    assert placements.place_pods(CLUSTER, refs).results[0].outcome in {"Placed", "AlreadyPlaced"}
    assert placements.explain_pod(CLUSTER, "shop", "bound").semantics == "Kubernetes"
    absent = refused(lambda: placements.bind_pod(CLUSTER, "shop", "absent", binding))
    assert absent.code == "NotFound"


def queue_and_watch() -> None:
    waiting = moorage.PlacementRequest(
        pods=[pod("late", nodeSelector={"zone": "late"})], onUnschedulable="Queue"
    )
    answer = placements.place_pods(CLUSTER, waiting)
    assert answer.results[0].outcome == "Queued"
    clusters.patch_cluster(CLUSTER, moorage.ClusterPatch(config={"evictionsPerMinute": 30}))
    node = moorage.Node.from_dict({**MANIFESTS["nodes"][1], "metadata": {"name": "n3"}})
    assert node is not None
    node.metadata.labels = {"zone": "late"}
    nodes.put_node(CLUSTER, "n3", node)
    seen = followed(answer.revision)
    assert {"Cluster", "Node", "Pod"} <= seen, seen


def followed(revision: int) -> set[str]:
    """The kinds of all events until the waiting pod has a node."""
    kinds = set[str]()
    response = bulk.watch_changes_without_preload_content(CLUSTER, since_revision=revision)
    deadline = time.monotonic() + PATIENCE_SECONDS
    for line in response:
        assert time.monotonic() < deadline
        if not line.startswith(b"data: "):
            continue
        event = moorage.WatchEvent.from_json(line.removeprefix(b"data: ").decode()).actual_instance
        assert event is not None
        kinds.add(event.kind)
        if isinstance(event, moorage.PodWatchEvent) and is_placed(event.object):
            response.close()
            return kinds
    raise AssertionError("The stream ended.")


def is_placed(waiting: moorage.Pod) -> bool:
    return waiting.metadata.name == "late" and waiting.spec.node_name == "n3"


def conflict() -> None:
    first = pods.get_pod(CLUSTER, "shop", "web")
    first.metadata.labels = {"app": "web", "tier": "front"}
    pods.put_pod(CLUSTER, "shop", "web", first)
    stale = refused(lambda: pods.put_pod(CLUSTER, "shop", "web", first))
    assert stale.code == "RevisionConflict"
    first.metadata.resource_version = None
    unmatched = refused(lambda: pods.put_pod(CLUSTER, "shop", "web", first, if_match='"1"'))
    assert unmatched.code == "PreconditionFailed"


def pages() -> None:
    names, token = list[str](), None
    while True:
        page = pods.list_namespaced_pods(CLUSTER, "shop", limit=2, var_continue=token)
        names += [each.metadata.name for each in page.items]
        token = page.metadata.var_continue
        if token is None:
            break
    assert names == sorted(names)
    assert len(names) == 6


def typed_problem() -> None:
    request = moorage.PlacementRequest(pods=[pod("Bad Name")])
    problem = refused(lambda: placements.place_pods(CLUSTER, request))
    assert problem.status == 422
    assert problem.errors
    assert "pods[0].metadata.name" in [each.var_field for each in problem.errors]


def changed(before: Any) -> Any:
    """What the server should have after the label was added."""
    labels = {**(before["metadata"].get("labels") or {}), "changed": "yes"}
    return {**before, "metadata": {**before["metadata"], "labels": labels}}


def same(path: str, expected: Any) -> None:
    """Check that nothing but the revision differs; absent and null are alike."""
    found = stored(path)
    for each in (found, expected):
        each["metadata"].pop("resourceVersion")
    assert without_nulls(found) == without_nulls(expected), (found, expected)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def nothing_is_lost() -> None:
    rich = moorage.Pod.from_dict(MANIFESTS["rich"])
    assert rich is not None
    placed = placements.place_pods(CLUSTER, moorage.PlacementRequest(pods=[rich]))
    assert placed.results[0].node_name == "n1"
    before = stored("namespaces/shop/pods/rich")
    for part in ("metadata", "spec", "status"):
        assert MANIFESTS["rich"][part].keys() - {"managedFields"} <= before[part].keys()
    read = pods.get_pod(CLUSTER, "shop", "rich")
    read.metadata.labels = {**(read.metadata.labels or {}), "changed": "yes"}
    pods.put_pod(CLUSTER, "shop", "rich", read)
    same("namespaces/shop/pods/rich", changed(before))

    before = stored("nodes/n1")
    node = nodes.get_node(CLUSTER, "n1")
    node.metadata.labels = {**(node.metadata.labels or {}), "changed": "yes"}
    nodes.put_node(CLUSTER, "n1", node)
    same("nodes/n1", changed(before))

    before = stored("namespaces/shop")
    namespace = namespaces.get_namespace(CLUSTER, "shop")
    namespace.metadata.labels = {**(namespace.metadata.labels or {}), "changed": "yes"}
    namespaces.put_namespace(CLUSTER, "shop", namespace)
    same("namespaces/shop", changed(before))

    before = stored("namespaces/shop/services/web")
    service = services.get_service(CLUSTER, "shop", "web")
    service.metadata.labels = {"changed": "yes"}
    services.put_service(CLUSTER, "shop", "web", service)
    same("namespaces/shop/services/web", changed(before))


configure()
apply()
place()
queue_and_watch()
conflict()
pages()
typed_problem()
nothing_is_lost()
