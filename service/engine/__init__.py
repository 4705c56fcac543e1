"""Where a pod can and should go: columnar state, counters, plugins, placements, explanations."""

from service.engine.cluster import Cluster
from service.engine.digest import digest
from service.engine.group_placement import GroupPlacement, GroupRefusal, place_group, placing_group
from service.engine.placement import Placement, UnknownSchedulerError, place
from service.engine.questions.explanation import Explanation, Summary, check, explain, summarize
from service.engine.questions.opportunity_cost import Extent, OpportunityCosts
from service.engine.questions.plugin_timing import Execution, time_plugins
from service.engine.refusal import Refusal

__all__ = [
    "Cluster",
    "Execution",
    "Explanation",
    "Extent",
    "GroupPlacement",
    "GroupRefusal",
    "OpportunityCosts",
    "Placement",
    "Refusal",
    "Summary",
    "UnknownSchedulerError",
    "check",
    "digest",
    "explain",
    "place",
    "place_group",
    "placing_group",
    "summarize",
    "time_plugins",
]
