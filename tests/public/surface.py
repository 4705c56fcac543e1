"""What others see of Moorage and no other page of the repository lists: metrics, log events, schema, choices.

`test_surface.py` compares them with the files beside it, which `make public` writes.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from typing import Any
from unittest.mock import patch

import msgspec
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from bench.verify import put
from bench.workloads import Manifest, Workload, workloads
from service.api.telemetry.metrics import Metrics
from service.engine import Cluster, Placement, place
from service.model.cluster.cluster_config import ClusterConfig
from service.model.pods.pod import Pod
from service.model.registry.manifests import TemplateCache, parse_pod
from tests.paths import ROOT

NODES, PODS = 40, 25
"""The size to which the workloads are cut down for `choices`."""
_LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "kubernetes 1.35": {"kubernetes": "1.35"},
    "kubernetes 1.36": {"kubernetes": "1.36"},
    "design documents": {"semantics": "DesignDocuments"},
    "most allocated": {"scoringStrategy": "MostAllocated"},
    "requested to capacity ratio": {
        "scoringStrategy": "RequestedToCapacityRatio",
        "requestedToCapacityRatio": {
            "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
        },
    },
    "default spread of the system": {"defaultTopologySpread": "System"},
    "preferences of one side": {
        "symmetricPreferredAffinity": False,
        "symmetricPreferredAntiAffinity": False,
    },
    "weight of required affinity": {"hardPodAffinityWeight": 100},
    "opportunity cost by average": {"opportunityCostBasis": "Average"},
}


def metrics() -> Iterator[str]:
    """Yield a line for each metric: its name, its type, and its labels."""
    registry = CollectorRegistry()
    with patch("service.api.telemetry.metrics.registry_of", lambda _: registry):
        Metrics(version="0")
    with_metrics = vars(registry)["_names_to_collectors"]
    for family in sorted(registry.collect(), key=lambda family: family.name):
        labels = vars(with_metrics[family.name]).get("_labelnames", ())
        yield f"{family.name} {family.type} {{{','.join(labels)}}}"


def log_events() -> list[str]:
    """Return a line for each event that is logged: its level and its message before formatting."""
    paths = (path for path in (ROOT / "service").rglob("*.py") if "_compiled" not in path.parts)
    sources = (path.read_text(encoding="utf-8") for path in paths)
    return sorted({line for source in sources for line in _logged_in(source)})


def _logged_in(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=logger), attr=level),
                args=[ast.Constant(value=str(message)), *_],
            ) if logger.endswith("log") and level in _LEVELS:
                yield f"{level}: {message}"


def choices() -> Iterator[str]:
    """Yield a line for each workload and configuration: a digest of all nodes and scores."""
    for workload in workloads(500):
        small = _cut_down(workload)
        for name, settings in CONFIGURATIONS.items():
            config = msgspec.convert(settings, ClusterConfig)
            yield f"{workload.name}, {name}: {_digest(_chosen(small, config))}"


def _cut_down(workload: Workload) -> Workload:
    row = dict(workload.row)
    row["nodes"] = _fewer(row["nodes"], NODES)
    row["init"] = _fewer(row["init"], PODS)
    row["measured"] = _fewer(row["measured"], PODS)
    return Workload(workload.name, NODES, row)


def _fewer(groups: Iterable[Manifest], most: int) -> list[Manifest]:
    return [{**group, "count": min(group["count"], most)} for group in groups]


def _chosen(workload: Workload, config: ClusterConfig) -> Iterator[str]:
    templates = TemplateCache()
    cluster = Cluster(config)
    for manifest in workload.before():
        put(cluster, manifest, templates)
    for manifest in workload.measured():
        pod = parse_pod(manifest, templates, to_place=True).pod
        yield _placed(cluster, pod)


def _placed(cluster: Cluster, pod: Pod) -> str:
    answer = place(cluster, pod)
    if not isinstance(answer, Placement):
        return f"{pod.name} nowhere"
    cluster.put_pod(replace(pod, node_name=answer.node_name))
    return f"{pod.name} {answer.node_name} {answer.score}"


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
