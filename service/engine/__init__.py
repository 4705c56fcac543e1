"""Where a pod can and should go: state in columns, counters, plugins, placements, explanations."""

from service.engine.analysis.devices_claims_get_on_a_node import allocations_on
from service.engine.analysis.explanation import (
    Explanation,
    Summary,
    check,
    explain,
    explain_node,
    summarize,
)
from service.engine.analysis.multi_cluster_criteria import compare_cluster
from service.engine.analysis.opportunity_cost_of_anti_affinity import Extent, OpportunityCosts
from service.engine.analysis.plugin_timing import Execution, time_plugins
from service.engine.analysis.volumes_claims_get_on_a_node import (
    PROVISION,
    bindings_on,
    user_of_claim,
)
from service.engine.cluster import Cluster
from service.engine.groups.colocation import Colocation
from service.engine.groups.group_placement import (
    GroupPlacement,
    GroupRefusal,
    place_group,
    placing_group,
)
from service.engine.placement import Placement, UnknownSchedulerError, place
from service.engine.preemption.search import NoPreemption, Preemption, preempt
from service.engine.preemption.victims import Victims
from service.engine.refusal import Refusal
from service.engine.self_checks.digest import digest
from service.engine.state.node_columns.domain_chosen_by_group import (
    GROUP_TOPOLOGY,
    GroupDomain,
    group_domain,
)
from service.engine.state.volumes_and_devices.pod_devices import DeviceUse, uses_of as device_uses

__all__ = [
    "GROUP_TOPOLOGY",
    "PROVISION",
    "Cluster",
    "Colocation",
    "DeviceUse",
    "Execution",
    "Explanation",
    "Extent",
    "GroupDomain",
    "GroupPlacement",
    "GroupRefusal",
    "NoPreemption",
    "OpportunityCosts",
    "Placement",
    "Preemption",
    "Refusal",
    "Summary",
    "UnknownSchedulerError",
    "Victims",
    "allocations_on",
    "bindings_on",
    "check",
    "compare_cluster",
    "device_uses",
    "digest",
    "explain",
    "explain_node",
    "group_domain",
    "place",
    "place_group",
    "placing_group",
    "preempt",
    "summarize",
    "time_plugins",
    "user_of_claim",
]
