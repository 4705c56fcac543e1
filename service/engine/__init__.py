"""The scheduling engine: cluster state, plugins, placements, preemption, and explanations."""

from service.engine.cluster import Cluster
from service.engine.explain.cluster_criteria import compare_cluster
from service.engine.explain.explanation import (
    Explanation,
    Summary,
    explain,
    explain_node,
    summarize,
)
from service.engine.explain.opportunity_cost import Extent, OpportunityCosts
from service.engine.explain.plugin_timing import Execution, time_plugins
from service.engine.groups.colocation import Colocation
from service.engine.groups.gang_search import (
    GroupPlacement,
    GroupRefusal,
    place_group,
    place_group_in_steps,
)
from service.engine.integrity.digest import digest
from service.engine.placing.binding import (
    PROVISION,
    bindings_on,
    user_of_claim,
)
from service.engine.placing.device_binding import allocations_on
from service.engine.placing.placement import Placement, UnknownSchedulerError, check, place
from service.engine.placing.refusal import Refusal
from service.engine.preemption.search import NoPreemption, Preemption, preempt
from service.engine.preemption.victims import Victims
from service.engine.state.devices.pod_devices import DeviceUse, uses_of as device_uses
from service.engine.state.nodes.group_domain import (
    GROUP_TOPOLOGY,
    GroupDomain,
    group_domain,
)

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
    "place_group_in_steps",
    "preempt",
    "summarize",
    "time_plugins",
    "user_of_claim",
]
