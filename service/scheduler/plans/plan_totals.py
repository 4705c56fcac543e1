"""The totals of a cluster before and after a plan."""

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from service.engine import Cluster
from service.engine.explain.totals import (
    PODS,
    ResourceTotals,
    pods_by_namespace,
    resource_totals,
    spread_totals,
)
from service.engine.rules.violations import Inspection
from service.model.core.quantity import format_quantity
from service.scheduler.decide.context import Steps
from service.scheduler.protocol.plans import ConstraintSkew, Counted, ResourceTotal

NONE = ResourceTotal(allocatable="0", requested="0", utilization=0.0, largest_free="0")
"""The totals of a resource that no node has and no pod requests."""

_STEP_CLASSES = 4
_NANOS_PER_MILLI = 1_000_000
_NANOS_PER_UNIT = 1_000_000_000


def count(cluster: Cluster, *, rules: bool) -> Steps[Counted]:
    """Count nodes, pods, and resources, and with `rules` also violations and skew."""
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


def align_resources(before: Counted, after: Counted) -> tuple[Counted, Counted]:
    """Return both totals with the same resources, adding zeros where one of them lacks some."""
    names = [
        name
        for name in sorted(before.resources.keys() | after.resources.keys())
        if any(_has(counted, name) for counted in (before, after))
    ]
    return _listing(before, names), _listing(after, names)


def _has(counted: Counted, name: str) -> bool:
    total = counted.resources.get(name)
    return total is not None and (name == PODS or total.allocatable != NONE.allocatable)


def _listing(counted: Counted, names: Sequence[str]) -> Counted:
    return replace(counted, resources={name: counted.resources.get(name, NONE) for name in names})


def violations_by_namespace(cluster: Cluster) -> Steps[Counter[str]]:
    """Count the broken rules of pods by namespace."""
    inspection = Inspection(cluster)
    violations: Counter[str] = Counter()
    for index, pod_class in enumerate(inspection.suspects(cluster.placed_classes())):
        violations[pod_class.namespace] += sum(1 for _ in inspection.of(pod_class))
        if index % _STEP_CLASSES == _STEP_CLASSES - 1:
            yield
    return violations


def _skew(cluster: Cluster) -> list[ConstraintSkew]:
    return [
        ConstraintSkew(
            namespace=spread.namespace,
            topology_key=spread.topology_key,
            when_unsatisfiable="DoNotSchedule" if spread.is_hard else "ScheduleAnyway",
            max_skew=spread.max_skew,
            skew=spread.skew,
            counted=spread.counted,
        )
        for spread in spread_totals(cluster)
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
