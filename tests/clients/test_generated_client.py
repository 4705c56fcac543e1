"""A client generated from the OpenAPI document loads a cluster and places pods, with types."""

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import pytest

from service.api.routes import openapi_document
from tests.api.live import live_server
from tests.waiting import WAIT_SECONDS

PACKAGE = "moorage_generated_client"
TOKEN = "a-token-that-no-generator-would-guess"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The generated package, importable; the generator must have nothing to complain about."""
    folder = tmp_path_factory.mktemp("generated")
    document = folder / "openapi.json"
    document.write_text(json.dumps(openapi_document()))
    config = folder / "config.json"
    streams = {"application/x-ndjson": "application/octet-stream"}
    config.write_text(json.dumps({"post_hooks": [], "content_type_overrides": streams}))
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--fail-on-warning"]
    options = ["--path", document, "--config", config, "--meta", "none"]
    output = ["--output-path", folder / PACKAGE]
    made = subprocess.run(
        [*command, *options, *output], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    sys.path.insert(0, str(folder))
    yield folder / PACKAGE
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def url(module_database_url: str) -> Iterator[str]:
    """One server for all tests here; each has a cluster of its own."""
    with live_server(module_database_url, token=TOKEN) as url:
        yield url


@pytest.fixture
def generated(package: Path, url: str, request: pytest.FixtureRequest) -> Iterator[SimpleNamespace]:
    """The generated client, connected, with its models and operations."""
    root = importlib.import_module(PACKAGE)
    models = importlib.import_module(f"{PACKAGE}.models")
    cluster = request.node.name.replace("_", "-")[:60].strip("-")
    with root.AuthenticatedClient(
        base_url=url, token=TOKEN, timeout=httpx.Timeout(WAIT_SECONDS)
    ) as client:
        call = _caller(client, cluster)
        made = call(
            "clusters.put_cluster", body=models.ClusterSettings(config=models.ClusterConfig())
        )
        assert isinstance(made, models.Cluster)
        yield SimpleNamespace(client=client, models=models, call=call)


def _caller(client: Any, cluster: str) -> Any:
    def call(operation: str, **arguments: Any) -> Any:
        module: ModuleType = importlib.import_module(f"{PACKAGE}.api.{operation}")
        return module.sync(client=client, cluster=cluster, **arguments)

    return call


def manifest(model: Any, **fields: Any) -> Any:
    return model.from_dict(fields)


def test_a_typed_client_loads_a_cluster_and_places_pods(generated: SimpleNamespace) -> None:
    models, call = generated.models, generated.call
    node = models.Node(
        metadata=models.ObjectMeta(
            name="n1", labels=models.ObjectMetaLabelsType0.from_dict({"zone": "a"})
        ),
        status=models.NodeStatus(
            allocatable=models.NodeStatusAllocatableType0.from_dict({"cpu": "4", "pods": "10"})
        ),
    )
    stored = call("nodes.put_node", name="n1", body=node)
    assert isinstance(stored, models.Node)
    assert stored.metadata.uid
    assert stored.metadata.labels["zone"] == "a"

    namespace = models.Namespace(metadata=models.ObjectMeta(name="shop"))
    assert isinstance(
        call("namespaces.put_namespace", name="shop", body=namespace), models.Namespace
    )

    second = manifest(
        models.Node,
        kind="Node",
        metadata={"name": "n2", "labels": {"zone": "b"}},
        status={"allocatable": {"cpu": "4", "pods": "10"}},
    )
    applied = call("bulk.apply_objects", body=models.ObjectList(items=[node, second]))
    assert isinstance(applied, models.ApplyAnswer)
    assert (applied.created, applied.unchanged) == (1, 1)

    answer = call("placements.place_pods", body=request(models))
    assert isinstance(answer, models.PlacementAnswer)
    assert answer.committed
    assert [result.outcome for result in answer.results] == ["Placed", "Placed", "Unschedulable"]
    assert {result.node_name for result in answer.results[:2]} == {"n1", "n2"}
    explanation = answer.results[2].explanation
    assert isinstance(explanation, models.Explanation)
    assert explanation.feasible == []

    listed = call("pods.list_pods")
    assert isinstance(listed, models.PodList)
    assert [pod.metadata.name for pod in listed.items] == ["web-0", "web-1"]
    assert {pod.spec.node_name for pod in listed.items} == {"n1", "n2"}

    happened = call("events.list_events", field_selector="reason=Scheduled")
    assert isinstance(happened, models.EventList)
    assert [event.involved_object.name for event in happened.items] == ["web-0", "web-1"]
    assert {event.type_ for event in happened.items} == {models.EventType.NORMAL}


def request(models: Any) -> Any:
    """Three pods of which no two may share a zone, for two zones."""
    apart = models.PodAffinityTerm(
        topology_key="zone",
        label_selector=models.LabelSelector(
            match_labels=models.LabelSelectorMatchLabelsType0.from_dict({"app": "web"})
        ),
    )
    affinity = models.Affinity(
        pod_anti_affinity=models.PodAffinity(
            required_during_scheduling_ignored_during_execution=[apart]
        )
    )
    pods = [
        models.Pod(
            metadata=models.ObjectMeta(
                name=f"web-{index}",
                namespace="shop",
                labels=models.ObjectMetaLabelsType0.from_dict({"app": "web"}),
            ),
            spec=models.PodSpec(containers=[models.Container(name="web")], affinity=affinity),
        )
        for index in range(3)
    ]
    return models.PlacementRequest(pods=pods, explain=models.PlacementRequestExplain.FULL)


def test_errors_are_typed_problems(generated: SimpleNamespace) -> None:
    models, call = generated.models, generated.call
    absent = call("nodes.get_node", name="absent")
    assert isinstance(absent, models.Problem)
    assert (absent.code, absent.status) == ("NotFound", 404)
    wrong = models.PlacementRequest(pods=[models.Pod(metadata=models.ObjectMeta(name="Bad Name"))])
    refused = call("placements.place_pods", body=wrong)
    assert isinstance(refused, models.Problem)
    assert "pods[0].metadata.name" in [error.field for error in refused.errors]


def test_patches_and_settings(generated: SimpleNamespace) -> None:
    models, call = generated.models, generated.call
    node = models.Node(metadata=models.ObjectMeta(name="n1"))
    call("nodes.put_node", name="n1", body=node)
    patch = models.MergePatch.from_dict({"spec": {"unschedulable": True}})
    patched = call("nodes.patch_node", name="n1", body=patch)
    assert isinstance(patched, models.Node)
    assert patched.spec.unschedulable is True
    config = models.ClusterPatchConfig.from_dict({"hardPodAffinityWeight": 5})
    cluster = call("clusters.patch_cluster", body=models.ClusterPatch(config=config))
    assert isinstance(cluster, models.Cluster)
    assert cluster.config.hard_pod_affinity_weight == 5
    assert cluster.counts.nodes == 1
    assert cluster.config.daemon_namespaces == ["kube-system"]
