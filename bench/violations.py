"""`python -m bench.violations`: a full check of required rules in large clusters.

Pods have three shapes: alike (100 templates), each with a label of its own (each pod is a class),
and each with a spec of its own. Every pod has a required rule of each kind; one node in a hundred
breaks some of them.
"""

from collections.abc import Iterator
from time import process_time
from typing import Annotated, Any

import typer

from service.engine import Cluster
from service.engine.rules.violations import Inspection
from service.model.cluster.cluster_config import ClusterConfig
from service.model.registry.manifests import TemplateCache, parse_node, parse_pod

Manifest = dict[str, Any]
VARIANT = "requiredDuringSchedulingIgnoredDuringExecution"
SHAPES = ("alike", "own label", "own spec")
APPS = 100


def node(number: int) -> Manifest:
    labels = {
        "host": f"n{number}",
        "zone": f"z{number % 3}",
        "disk": "hdd" if not number else "ssd",
    }
    return {
        "metadata": {"name": f"n{number}", "labels": labels},
        "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "250"}},
    }


def pod(number: int, nodes: int, shape: str) -> Manifest:
    app = number % APPS
    labels = {"app": f"a{app}"} | ({"pod": f"p{number}"} if shape == "own label" else {})
    own = {"matchLabels": {"app": f"a{app}"}}
    disk = {"key": "disk", "operator": "In", "values": ["ssd"]}
    spread = {"maxSkew": 1000, "topologyKey": "zone", "labelSelector": own}
    spec = {
        "nodeName": f"n{number * 7 % nodes}",
        "containers": [{"name": "c"}],
        "affinity": {
            "nodeAffinity": {VARIANT: {"nodeSelectorTerms": [{"matchExpressions": [disk]}]}},
            "podAffinity": {VARIANT: [{"topologyKey": "zone", "labelSelector": own}]},
            "podAntiAffinity": {
                VARIANT: [
                    {"topologyKey": "host", "labelSelector": {"matchLabels": {"app": "a0b"}}},
                ]
            },
        },
        "topologySpreadConstraints": [spread | {"whenUnsatisfiable": "DoNotSchedule"}],
    }
    if shape == "own spec":
        spec["priority"] = number
    return {"metadata": {"name": f"p{number}", "labels": labels}, "spec": spec}


def clusters(nodes: int, pods: int) -> Iterator[tuple[str, Cluster]]:
    for shape in SHAPES:
        cluster, templates = Cluster(ClusterConfig()), TemplateCache()
        for number in range(nodes):
            cluster.put_node(parse_node(node(number)).node)
        for number in range(pods):
            cluster.put_pod(parse_pod(pod(number, nodes, shape), templates).pod)
            cluster.commit_until(cluster.mark())
        yield shape, cluster


def main(
    nodes: Annotated[int, typer.Option(help="Nodes of the cluster.")] = 5_000,
    pods: Annotated[int, typer.Option(help="Placed pods.")] = 50_000,
    runs: Annotated[int, typer.Option(help="Repetitions; the best is shown.")] = 3,
) -> None:
    for shape, cluster in clusters(nodes, pods):
        seconds = []
        for _ in range(runs):
            inspection, started = Inspection(cluster), process_time()
            suspects = inspection.suspects(cluster.placed_classes())
            found = sum(1 for each in suspects for _ in inspection.of(each))
            seconds.append(process_time() - started)
        assert found >= pods // nodes, "the first node's pods have to be found"
        print(
            f"{shape:>10}: {nodes} nodes, {pods} pods, {found} violations, {min(seconds):.3f} s of CPU"
        )


if __name__ == "__main__":
    typer.run(main)
