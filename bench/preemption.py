"""`python -m bench.preemption`: what it costs to find victims for a pod that fits nowhere.

All nodes are full of pods of three lower priorities, so all nodes are candidates. Each shape of rules
is measured without disruption budgets, and with budgets that protect half of the applications. As in
a server, victims are sought after a placement was refused. The first search of a cluster sorts the
pods of all nodes by importance, so it is shown by itself.
"""

import statistics
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Annotated, Any

import typer

from bench.engine import collecting_as_workers_do
from bench.figures import quantile
from bench.worlds import STRIDE, affinity, hard_spread, node, parsed, pod, term
from service.engine import Cluster, Preemption, Refusal, place, preempt
from service.model.cluster.cluster_config import ClusterConfig
from service.model.core.primitives import LabelSelector
from service.model.pods.pod import Pod
from service.model.registry.manifests import TemplateCache, parse_node, parse_pod
from service.model.workloads.disruption_budget import DisruptionBudget

Manifest = dict[str, Any]

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
APPS = 100
FULL_MILLICORES = 256_000


def cluster(nodes: int, pods: int, templates: TemplateCache) -> Cluster:
    """Make a cluster whose nodes are full."""
    made = Cluster(ClusterConfig())
    for number in range(nodes):
        made.put_node(parse_node(node(number)).node)
    millicores = FULL_MILLICORES * nodes // pods
    for number in range(pods):
        manifest = pod(f"placed-{number}", labels=app(number), millicores=millicores)
        manifest["spec"]["nodeName"] = f"node-{number * STRIDE % nodes}"
        manifest["spec"]["priority"] = number % 3
        made.put_pod(parse_pod(manifest, templates).pod)
        made.commit_until(made.mark())
    return made


def app(number: int) -> dict[str, str]:
    return {"app": f"app-{number % APPS}"}


def asked() -> Iterator[tuple[str, Manifest]]:
    """Yield pods of several shapes that are more important than all that are placed."""
    shapes: dict[str, Manifest] = {
        "no rules": {},
        "anti-affinity, host": affinity("podAntiAffinity", term("app-1", HOST)),
        "affinity, zone": affinity("podAffinity", term("app-2", ZONE)),
        "hard spread, zone": hard_spread("app-3"),
    }
    for name, rules in shapes.items():
        made = pod("asked", rules, labels=app(3), millicores=20_000)
        made["spec"]["priority"] = 10
        yield name, made


def budgets(count: int) -> Sequence[DisruptionBudget]:
    """Make budgets that allow one disruption each, of one app each."""
    return [
        DisruptionBudget(
            namespace="default",
            selector=LabelSelector(match_labels=app(number)),
            disruptions_allowed=1,
            disrupted_pods=frozenset(),
        )
        for number in range(count)
    ]


def search(
    made: Cluster, incoming: Pod, protected: Sequence[DisruptionBudget]
) -> tuple[Preemption, float]:
    """Return the victims for a pod that fits nowhere, and the milliseconds of finding them."""
    assert isinstance(place(made, incoming), Refusal)
    began = perf_counter()
    found = preempt(made, incoming, protected)
    assert isinstance(found, Preemption)
    return found, (perf_counter() - began) * 1000


def main(
    nodes: Annotated[int, typer.Option(help="Nodes of the cluster.")] = 5_000,
    pods: Annotated[int, typer.Option(help="Placed pods.")] = 50_000,
    runs: Annotated[int, typer.Option(help="Searches of each shape.")] = 20,
) -> None:
    templates = TemplateCache()
    made = cluster(nodes, pods, templates)
    with collecting_as_workers_do():
        measure(made, templates, runs)


def measure(made: Cluster, templates: TemplateCache, runs: int) -> None:
    """Print what a first search costs, and searches of each shape."""
    _, first = next(asked())
    print(f"first search: {search(made, parsed(first, templates), ())[1]:.1f} ms")
    for count in (0, 50):
        for name, manifest in asked():
            incoming, protected = parsed(manifest, templates), budgets(count)
            searches = [search(made, incoming, protected) for _ in range(runs)]
            found, milliseconds = searches[0][0], sorted(each for _, each in searches)
            print(
                f"{name:>20}, {count:>2} budgets: {len(found.victims.pods)} victims,"
                f" p50 {statistics.median(milliseconds):.1f} ms,"
                f" p99 {quantile(milliseconds, 0.99):.1f} ms"
            )


if __name__ == "__main__":
    typer.run(main)
