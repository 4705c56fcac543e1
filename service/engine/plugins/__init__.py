"""The plugins of Kubernetes, each in a module of its own, in the order in which they filter."""

from service.engine.plugin import Plugin
from service.engine.plugins.balanced_allocation import BalancedAllocation
from service.engine.plugins.image_locality import ImageLocality
from service.engine.plugins.inter_pod_affinity import InterPodAffinity
from service.engine.plugins.node_affinity import NodeAffinity
from service.engine.plugins.node_name import NodeName
from service.engine.plugins.node_ports import NodePorts
from service.engine.plugins.node_resources_fit import NodeResourcesFit
from service.engine.plugins.node_unschedulable import NodeUnschedulable
from service.engine.plugins.pod_topology_spread import PodTopologySpread
from service.engine.plugins.taint_toleration import TaintToleration

PLUGINS: tuple[type[Plugin], ...] = (
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    PodTopologySpread,
    InterPodAffinity,
    BalancedAllocation,
    ImageLocality,
)
