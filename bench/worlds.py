"""Clusters of any size with pods of several shapes, to measure how the engine's cost grows."""

import json
from collections.abc import Iterable, Sequence
from time import process_time
from typing import Any

from msgspec.structs import replace

from bench.engine import place_one
from service.engine import Cluster
from service.model.config import ClusterConfig
from service.model.manifest import TemplateCache, parse_namespace, parse_node, parse_pod
from service.model.objects import Pod

Manifest = dict[str, Any]

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
ZONES = 10
STRIDE = 7919
"""Coprime to all sizes: placed pods are scattered over the nodes."""
SETTLE_EVERY = 1_000

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_EVERYWHERE: Manifest = {"matchLabels": {"team": "devops"}}


def node(number: int) -> Manifest:
    """Room for hundreds of pods, in one of ten zones."""
    name = f"node-{number}"
    amounts = {"cpu": "256", "memory": "1Ti", "pods": "2000"}
    return {
        "metadata": {"name": name, "labels": {HOST: name, ZONE: f"zone-{number % ZONES}"}},
        "status": {"allocatable": amounts},
    }


def namespace(name: str) -> Manifest:
    """One that the namespace selectors of `pod` select."""
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
    """Pods of an app, in the own namespace or in all that are labelled."""
    selector: Manifest = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return selector | ({"namespaceSelector": _EVERYWHERE} if everywhere else {})


def affinity(kind: str, *terms: Manifest) -> Manifest:
    """Rules with required terms."""
    return {"affinity": {kind: {_REQUIRED: [*terms]}}}


def preference(kind: str, *terms: Manifest) -> Manifest:
    """Rules with preferred terms."""
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
    """A pod of one of the shapes, whose rules speak of all pods of that shape."""
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
    """A cluster without pods."""
    cluster = Cluster(ClusterConfig())
    for name in namespaces:
        cluster.put_namespace(parse_namespace(namespace(name)).subject)
    for number in range(nodes):
        cluster.put_node(parse_node(node(number)).node)
    cluster.settle(cluster.mark())
    return cluster


def populate(cluster: Cluster, kinds: Sequence[Pod], numbers: Iterable[int]) -> None:
    """Placed pods with these numbers, of these kinds in turn, scattered over all nodes."""
    nodes = len(cluster.nodes.slots)
    for number in numbers:
        kind = kinds[number % len(kinds)]
        on = f"node-{number * STRIDE % nodes}"
        cluster.put_pod(replace(kind, name=f"placed-{number}", node_name=on))
        if not number % SETTLE_EVERY:
            cluster.settle(cluster.mark())
    cluster.settle(cluster.mark())


def replicas(kind: Pod, count: int, prefix: str = "asked") -> list[Pod]:
    """So many pods that differ in their names."""
    return [replace(kind, name=f"{prefix}-{number}") for number in range(count)]


def cpu_seconds(cluster: Cluster, asked: Sequence[Pod]) -> float:
    """CPU time of placing each in turn, all taken back afterwards; the first one is not counted.

    It pays for what the taking back of the last round left to be repaired.
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
