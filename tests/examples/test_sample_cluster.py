"""What examples/expected.yaml promises, held against the engine itself."""

from collections import Counter, defaultdict

import pytest
import yaml

from moorage.cli.input.sources import read_objects
from service.engine import Cluster, Placement, Refusal, place
from service.model.nodes.namespaces import NamespaceManifest
from service.model.pods.pod_manifest import parse_pod
from service.model.pods.template_cache import TemplateCache
from service.model.registry.manifests import NodeManifest, parse_any
from tests.paths import ROOT

EXAMPLES = ROOT / "examples"
ZONE = "topology.kubernetes.io/zone"


@pytest.fixture(scope="module")
def expected():
    return yaml.safe_load((EXAMPLES / "expected.yaml").read_text())


@pytest.fixture(scope="module")
def nodes():
    objects = read_objects([str(EXAMPLES / "cluster")])
    return {item["metadata"]["name"]: item for item in objects if item["kind"] == "Node"}


@pytest.fixture(scope="module")
def outcomes():
    """What came of each pod, by namespace/name: its labels, and its placement or refusal."""
    templates = TemplateCache(1 << 20)
    cluster = Cluster()
    for item in read_objects([str(EXAMPLES / "cluster")]):
        manifest = parse_any(item, templates)
        match manifest:
            case NodeManifest():
                cluster.put_node(manifest.node)
            case NamespaceManifest():
                cluster.put_namespace(manifest.namespace_object)
    found = {}
    for item in read_objects([str(EXAMPLES / "workloads")]):
        manifest = parse_pod(item, templates)
        outcome = place(cluster, manifest.pod)
        if isinstance(outcome, Placement):
            cluster.put_pod(manifest.placed(outcome.node_name).pod)
        found[f"{manifest.namespace}/{manifest.name}"] = (
            item["metadata"]["labels"]["app"],
            outcome,
        )
    return found


def nodes_by_app(outcomes):
    placed = defaultdict(list)
    for app, outcome in outcomes.values():
        if isinstance(outcome, Placement):
            placed[app].append(outcome.node_name)
    return placed


def test_exactly_the_expected_pods_are_refused_in_the_expected_words(outcomes, expected):
    refused = {pod: o.message for pod, (_, o) in outcomes.items() if isinstance(o, Refusal)}

    assert refused == expected["refused"]


def test_pods_are_spread_over_the_zones_as_expected(outcomes, nodes, expected):
    for app, counts in expected["pods_per_zone"].items():
        zones = Counter(
            nodes[name]["metadata"]["labels"][ZONE] for name in nodes_by_app(outcomes)[app]
        )
        assert sorted(zones.values()) == counts, app


def test_pods_are_on_as_many_hosts_as_expected(outcomes, expected):
    hosts = {app: len(set(names)) for app, names in nodes_by_app(outcomes).items()}

    assert hosts | expected["hosts"] == hosts


def test_pods_are_on_nodes_with_the_expected_labels(outcomes, nodes, expected):
    placed = nodes_by_app(outcomes)
    for app, labels in expected["labels_of_nodes"].items():
        for name in placed[app]:
            assert nodes[name]["metadata"]["labels"].items() >= labels.items(), (app, name)


def test_every_cache_is_in_a_zone_with_a_database(outcomes, nodes):
    placed = nodes_by_app(outcomes)
    zone = {name: node["metadata"]["labels"][ZONE] for name, node in nodes.items()}

    assert {zone[name] for name in placed["cache"]} <= {zone[name] for name in placed["db"]}
