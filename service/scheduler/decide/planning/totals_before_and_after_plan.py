"""Counting what a plan changes: the state of the cluster in figures, before and after."""

from collections import Counter

from service.engine import Cluster
from service.engine.analysis.cluster_totals import (
    ResourceTotals,
    pods_by_namespace,
    resource_totals,
    spread_totals,
)
from service.engine.analysis.violations import Inspection
from service.model.objects.quantity import format_quantity
from service.scheduler.decide.context import Steps
from service.scheduler.protocol.plans import ConstraintSkew, Counted, ResourceTotal

_STEP_CLASSES = 4
_NANOS_PER_MILLI = 1_000_000
_NANOS_PER_UNIT = 1_000_000_000


def count(cluster: Cluster, *, rules: bool) -> Steps[Counted]:
    """Count nodes, pods and resources; and what rules say of placed pods, if that is wanted."""
    violations = (yield from violations_by_namespace(cluster)) if rules else None
    counted = Counted(
        nodes=cluster.nodes.count,
        pods=pods_by_namespace(cluster),
        resources={
            name: _resource(name, totals)
            for name, totals in sorted(resource_totals(cluster).items())
        },
        violations=violations,
        skew=_skew(cluster) if rules else None,
    )
    yield
    return counted


def violations_by_namespace(cluster: Cluster) -> Steps[Counter[str]]:
    """Count the broken rules of the pods of each namespace."""
    inspection = Inspection(cluster)
    found: Counter[str] = Counter()
    for index, pod_class in enumerate(inspection.suspects(cluster.placed_classes())):
        found[pod_class.namespace] += sum(1 for _ in inspection.of(pod_class))
        if index % _STEP_CLASSES == _STEP_CLASSES - 1:
            yield
    return found


def _skew(cluster: Cluster) -> list[ConstraintSkew]:
    return [
        ConstraintSkew(
            namespace=each.namespace,
            topology_key=each.topology_key,
            when_unsatisfiable="DoNotSchedule" if each.is_hard else "ScheduleAnyway",
            max_skew=each.max_skew,
            skew=each.skew,
            counted=each.counted,
        )
        for each in spread_totals(cluster)
    ]


def _resource(name: str, totals: ResourceTotals) -> ResourceTotal:
    share = totals.requested / totals.allocatable if totals.allocatable else 0.0
    return ResourceTotal(
        allocatable=_quantity(name, totals.allocatable),
        requested=_quantity(name, totals.requested),
        utilization=round(share, 4),
        largest_free=_quantity(name, totals.largest_free),
    )


def _quantity(name: str, amount: int) -> str:
    return format_quantity(amount * (_NANOS_PER_MILLI if name == "cpu" else _NANOS_PER_UNIT))
