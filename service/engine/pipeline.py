"""The plugins of one profile, in Kubernetes' order, and what each weighs."""

from dataclasses import dataclass
from functools import cached_property

from service.engine.plugin import NodeFilter, NodeScore, RawScore
from service.engine.plugins.balanced_allocation import BalancedAllocation
from service.engine.plugins.image_locality import ImageLocality
from service.engine.plugins.inter_pod_affinity import NAME as AFFINITY, InterPodAffinity, scaled
from service.engine.plugins.node_affinity import NodeAffinity
from service.engine.plugins.node_name import NodeName
from service.engine.plugins.node_ports import NodePorts
from service.engine.plugins.node_resources_fit import NodeResourcesFit
from service.engine.plugins.node_unschedulable import NodeUnschedulable
from service.engine.plugins.pod_topology_spread import PodTopologySpread
from service.engine.plugins.taint_toleration import TaintToleration
from service.engine.profile import DEFAULT_RESOURCES, AffinityArguments, FitArguments, Resources


@dataclass(frozen=True, kw_only=True, eq=False)
class Pipeline:
    """One profile. `filters` and `weights` hold the names of the plugins that are on."""

    filters: frozenset[str]
    weights: dict[str, int]
    fit: FitArguments
    affinity: AffinityArguments
    balanced: Resources = DEFAULT_RESOURCES

    @cached_property
    def static_filters(self) -> tuple[NodeFilter, ...]:
        """Filters that read only the node itself, not what is placed on it."""
        plugins = (NodeUnschedulable(), NodeName(), TaintToleration(), NodeAffinity())
        return tuple(each for each in plugins if each.name in self.filters)

    @cached_property
    def usage_filters(self) -> tuple[NodeFilter, ...]:
        """Filters that read what is placed on the node."""
        plugins = (self.node_ports, self.resources_fit)
        return tuple(each for each in plugins if each.name in self.filters)

    @cached_property
    def node_scores(self) -> tuple[tuple[NodeScore, int], ...]:
        plugins = (self.resources_fit, BalancedAllocation(self.balanced))
        return tuple((p, self.weights[p.name]) for p in plugins if p.name in self.weights)

    @cached_property
    def raw_scores(self) -> tuple[tuple[RawScore, int], ...]:
        plugins = (TaintToleration(), NodeAffinity())
        return tuple((p, self.weights[p.name]) for p in plugins if p.name in self.weights)

    @cached_property
    def node_ports(self) -> NodePorts:
        return NodePorts()

    @cached_property
    def resources_fit(self) -> NodeResourcesFit:
        return NodeResourcesFit(self.fit)

    @cached_property
    def image_locality(self) -> ImageLocality:
        return ImageLocality()

    @cached_property
    def inter_pod_affinity(self) -> InterPodAffinity:
        return InterPodAffinity(self.affinity)

    @cached_property
    def topology_spread(self) -> PodTopologySpread:
        return PodTopologySpread()

    def affinity_scale(self, above: int, span: int) -> int:
        """InterPodAffinity's weighed score of a node whose sum of weights is so far above the least."""
        return self.weights[AFFINITY] * scaled(above, span)

    def filters_with(self, name: str) -> bool:
        return name in self.filters
