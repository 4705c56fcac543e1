"""The objectives of a rebalance: their measures and totals."""

from collections import Counter
from collections.abc import Sequence

from service.engine import Cluster
from service.engine.optimize.moves import Measure
from service.engine.optimize.objectives import (
    FragmentationCost,
    FreeBlocksCost,
    LoadCost,
    PreferenceCost,
    SkewCost,
    UsedNodesCost,
)
from service.model.plans.rebalance_objectives import Objective
from service.model.registry.manifests import PodManifest
from service.scheduler.decide.context import Steps
from service.scheduler.plans.drained_pods import stays
from service.scheduler.plans.fork import Fork
from service.scheduler.plans.plan_totals import violations_by_namespace
from service.scheduler.protocol.plans import ObjectiveTotals, Rebalance

_PACKED = -1


def measures_of(fork: Fork, goal: Rebalance) -> list[Measure]:
    """Return the measures of a goal's objectives, the most important first."""
    cluster = fork.replica.cluster
    return [measure for name in goal.objectives for measure in _measures(fork, cluster, goal, name)]


def objective_totals(fork: Fork, goal: Rebalance) -> Steps[list[ObjectiveTotals]]:
    """Recompute the total of each objective of a goal."""
    cluster = fork.replica.cluster
    totals = []
    for name in goal.objectives:
        counts: list[Counter[str]] = []
        for measure in _measures(fork, cluster, goal, name):
            if measure is None:
                counts.append((yield from violations_by_namespace(cluster)))
            else:
                counts.append(measure.total())
            yield
        totals.append(
            ObjectiveTotals(
                objective=name, value=counts[0], tie_break=counts[1] if counts[1:] else None
            )
        )
    return totals


def _measures(
    fork: Fork, cluster: Cluster, goal: Rebalance, objective: Objective
) -> Sequence[Measure]:
    match objective:
        case "Violations":
            return (None,)
        case "Skew":
            return (SkewCost(cluster),)
        case "Preferences":
            return (PreferenceCost(cluster),)
        case "Spread":
            return (LoadCost(cluster),)
        case "Packing":
            return UsedNodesCost(cluster, _staying(fork)), LoadCost(cluster, _PACKED)
        case "Fragmentation":
            resource = goal.resource or ""
            return FragmentationCost(cluster, resource, goal.block), FreeBlocksCost(
                cluster, resource
            )


def _staying(fork: Fork) -> list[str]:
    """Return the node of each pod bound to its node, such as a daemon."""
    node_names = []
    for stored in fork.replica.objects("Pod"):
        assert isinstance(stored.manifest, PodManifest)
        pod = stored.manifest.pod
        placed = pod.node_name is not None and not pod.finished
        if placed and stays(stored.manifest) and fork.replica.cluster.node(pod.node_name or ""):
            node_names.append(pod.node_name or "")
    return node_names
