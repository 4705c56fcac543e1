"""All kinds of objects that are kept for the rules of scheduling: one entry makes a kind known everywhere."""

from collections.abc import Mapping

from service.model.data_sets import DATA_SET
from service.model.device_kinds import DEVICE_KINDS
from service.model.disruption_budgets import POD_DISRUPTION_BUDGET
from service.model.limit_ranges import LIMIT_RANGE
from service.model.object_kept_for_rules import KeptKind
from service.model.plans import PLAN
from service.model.runtime_classes import RUNTIME_CLASS
from service.model.scheduling_groups import WORKLOAD
from service.model.services_and_pod_owners import WORKLOADS
from service.model.volume_kinds import VOLUME_KINDS

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
