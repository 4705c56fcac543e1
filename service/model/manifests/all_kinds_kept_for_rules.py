"""All kinds of objects that are kept for the rules of scheduling: one entry makes a kind known everywhere."""

from collections.abc import Mapping

from service.model.core.primitives import CLUSTER_KIND
from service.model.kinds_kept_for_rules.data_sets import DATA_SET
from service.model.kinds_kept_for_rules.device_kinds import DEVICE_KINDS
from service.model.kinds_kept_for_rules.disruption_budgets import POD_DISRUPTION_BUDGET
from service.model.kinds_kept_for_rules.object_kept_for_rules import KeptKind
from service.model.kinds_kept_for_rules.runtime_classes import RUNTIME_CLASS
from service.model.kinds_kept_for_rules.scheduling_groups import WORKLOAD
from service.model.kinds_kept_for_rules.services_and_pod_owners import WORKLOADS
from service.model.kinds_kept_for_rules.volume_kinds import VOLUME_KINDS
from service.model.plans.plans import PLAN
from service.model.quotas_and_limits.limit_ranges import LIMIT_RANGE

KEPT_KINDS: Mapping[str, KeptKind] = {
    each.kind: each
    for each in (
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
"""By kind, in the order in which lists of kinds show them."""

EVERYBODYS = frozenset(
    {"Node", CLUSTER_KIND, *(each.kind for each in KEPT_KINDS.values() if each.everybodys)}
)
"""The kinds whose objects are shown to everybody who may read somewhere in their cluster."""
_NAMESPACE = "Namespace"


def sees(visible: frozenset[str] | None, kind: str, namespace: str, name: str) -> bool:
    """Whether an object is shown to a caller who may read these namespaces; None: all of the cluster."""
    if visible is None or kind in EVERYBODYS:
        return True
    return (name if kind == _NAMESPACE else namespace) in visible
