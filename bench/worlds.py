"""Clusters of any size with pods of several shapes, to measure how the engine's cost grows."""

import json
from collections.abc import Iterable, Sequence
from time import process_time
from typing import Any

from msgspec.structs import replace

from bench.engine import place_one
from service.engine import Cluster
from service.model.cluster.cluster_config import ClusterConfig
from service.model.nodes.namespaces import parse_namespace
from service.model.pods.pod import Pod
from service.model.registry.manifests import TemplateCache, parse_node, parse_pod

Manifest = dict[str, Any]

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
ZONES = 10
STRIDE = 7919
"""This has no divisor in common with any size, so placed pods are scattered over all nodes."""
SETTLE_EVERY = 1_000

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_EVERYWHERE: Manifest = {"matchLabels": {"team": "devops"}}


def node(number: int) -> Manifest:
    """Make a node with room for hundreds of pods, in one of ten zones."""
    name = f"node-{number}"
    amounts = {"cpu": "256", "memory": "1Ti", "pods": "2000"}
    return {
        "metadata": {"name": name, "labels": {HOST: name, ZONE: f"zone-{number % ZONES}"}},
        "status": {"allocatable": amounts},
    }


def namespace(name: str) -> Manifest:
    """Make a namespace that the namespace selectors of `term` select."""
    return {"metadata": {"name": name, "labels": _EVERYWHERE["matchLabels"]}}


def pod(
    name: str,
    rules: Manifest | None = None,
    *,
    namespace: str = "default",
    labels: Manifest | None = None,
    millicores: int = 10,
) -> Manifest:
    requests = {"cpu": f"{millicores}m", "memory": "50Mi"}
    containers = [{"name": "main", "resources": {"requests": requests}}]
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {"containers": containers, **(rules or {})},
    }


def term(app: str, key: str, *, everywhere: bool = False) -> Manifest:
    """Make a term for the pods of an app, in the pod's own namespace or in all labelled ones."""
    selector: Manifest = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return selector | ({"namespaceSelector": _EVERYWHERE} if everywhere else {})


def affinity(kind: str, *terms: Manifest) -> Manifest:
    """Make rules with required terms."""
    return {"affinity": {kind: {_REQUIRED: [*terms]}}}


def preference(kind: str, *terms: Manifest) -> Manifest:
    """Make rules with preferred terms."""
    weighted = [{"weight": 1 + i % 100, "podAffinityTerm": each} for i, each in enumerate(terms)]
    return {"affinity": {kind: {_PREFERRED: weighted}}}


def hard_spread(app: str) -> Manifest:
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    return {"topologySpreadConstraints": [constraint]}


PLAIN, AFFINITY, PREFERENCE, SPREAD, ATTRACTION = (
    "no rules",
    "required affinity, zone",
    "preferred anti-affinity, host",
    "hard spread, zone",
    "preferred affinity, host",
)
SHAPES = (PLAIN, AFFINITY, PREFERENCE, SPREAD, ATTRACTION)


def shaped(
    shape: str, name: str = "asked", *, namespace: str = "default", everywhere: bool = False
) -> Manifest:
    """Make a pod of one of the shapes, whose rules are about all pods of that shape."""
    app = f"app-{SHAPES.index(shape)}"
    rules: dict[str, Manifest] = {
        PLAIN: {},
        AFFINITY: affinity("podAffinity", term(app, ZONE, everywhere=everywhere)),
        PREFERENCE: preference("podAntiAffinity", term(app, HOST, everywhere=everywhere)),
        SPREAD: hard_spread(app),
        ATTRACTION: preference("podAffinity", term(app, HOST, everywhere=everywhere)),
    }
    return pod(name, rules[shape], namespace=namespace, labels={"app": app})


def parse(text: bytes, templates: TemplateCache) -> Pod:
    return parse_pod(text, templates, to_place=True).pod


def parsed(manifest: Manifest, templates: TemplateCache) -> Pod:
    return parse(json.dumps(manifest, separators=(",", ":")).encode(), templates)


def empty(nodes: int, namespaces: Iterable[str] = ()) -> Cluster:
    """Make a cluster without pods."""
    cluster = Cluster(ClusterConfig())
    for name in namespaces:
        cluster.put_namespace(parse_namespace(namespace(name)).subject)
    for number in range(nodes):
        cluster.put_node(parse_node(node(number)).node)
    cluster.commit_until(cluster.mark())
    return cluster


def populate(cluster: Cluster, kinds: Sequence[Pod], numbers: Iterable[int]) -> None:
    """Add placed pods with these numbers, of these kinds in turn, scattered over all nodes."""
    nodes = len(cluster.nodes.slots)
    for number in numbers:
        kind = kinds[number % len(kinds)]
        on = f"node-{number * STRIDE % nodes}"
        cluster.put_pod(replace(kind, name=f"placed-{number}", node_name=on))
        if not number % SETTLE_EVERY:
            cluster.commit_until(cluster.mark())
    cluster.commit_until(cluster.mark())


def replicas(kind: Pod, count: int, prefix: str = "asked") -> list[Pod]:
    """Make so many pods that differ only in their names."""
    return [replace(kind, name=f"{prefix}-{number}") for number in range(count)]


def cpu_seconds(cluster: Cluster, asked: Sequence[Pod]) -> float:
    """Return the CPU time of placing all pods but the first in turn; everything is undone.

    The first pod is not counted, as it pays for repairs after the last round was undone.
    """
    mark = cluster.mark()
    for each in asked[:1]:
        _must_place(cluster, each)
    began = process_time()
    for each in asked[1:]:
        _must_place(cluster, each)
    seconds = process_time() - began
    cluster.undo(mark)
    return seconds


def _must_place(cluster: Cluster, asked: Pod) -> None:
    if not place_one(cluster, asked):
        raise RuntimeError(f"{asked.name} found no node, so its cost says nothing")
