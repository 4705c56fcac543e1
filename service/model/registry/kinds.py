"""The registry of declared kinds; one entry registers a kind everywhere."""

from collections.abc import Mapping

from service.model.core.kind import KindSpec
from service.model.core.primitives import CLUSTER_KIND
from service.model.devices.device_kinds import DEVICE_KINDS
from service.model.plans.plan import PLAN
from service.model.pods.scheduling_groups import WORKLOAD
from service.model.policies.limit_ranges import LIMIT_RANGE
from service.model.policies.runtime_classes import RUNTIME_CLASS
from service.model.volumes.data_sets import DATA_SET
from service.model.volumes.volume_kinds import VOLUME_KINDS
from service.model.workloads.disruption_budget import POD_DISRUPTION_BUDGET
from service.model.workloads.owners import WORKLOADS

DECLARED_KINDS: Mapping[str, KindSpec] = {
    spec.kind: spec
    for spec in (
        *WORKLOADS,
        POD_DISRUPTION_BUDGET,
        *VOLUME_KINDS,
        *DEVICE_KINDS,
        RUNTIME_CLASS,
        LIMIT_RANGE,
        WORKLOAD,
        DATA_SET,
        PLAN,
    )
}
"""The declared kinds by name, in the order in which lists of kinds show them."""

EVERYBODYS = frozenset(
    {"Node", CLUSTER_KIND, *(spec.kind for spec in DECLARED_KINDS.values() if spec.is_public)}
)
"""The kinds whose objects are visible to anyone who can read part of the cluster."""
_NAMESPACE = "Namespace"


def sees(visible: frozenset[str] | None, kind: str, namespace: str, name: str) -> bool:
    """Return whether a caller can see an object, given the namespaces it can read (None: all)."""
    if visible is None or kind in EVERYBODYS:
        return True
    return (name if kind == _NAMESPACE else namespace) in visible
