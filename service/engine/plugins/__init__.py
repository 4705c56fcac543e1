"""The plugins of Kubernetes and DataAffinity, in filtering order, with one module each.

The order is that of Kubernetes 1.35; `service.engine.profiles.registry` has that of each version.
"""

from service.engine.framework.plugin import Plugin
from service.engine.plugins.balanced_allocation import BalancedAllocation
from service.engine.plugins.data_affinity import DataAffinity
from service.engine.plugins.dynamic_resources import DynamicResources
from service.engine.plugins.image_locality import ImageLocality
from service.engine.plugins.inter_pod_affinity import InterPodAffinity
from service.engine.plugins.node_affinity import NodeAffinity
from service.engine.plugins.node_declared_features import NodeDeclaredFeatures
from service.engine.plugins.node_name import NodeName
from service.engine.plugins.node_ports import NodePorts
from service.engine.plugins.node_resources_fit import NodeResourcesFit
from service.engine.plugins.node_unschedulable import NodeUnschedulable
from service.engine.plugins.node_volume_limits import NodeVolumeLimits
from service.engine.plugins.pod_topology_spread import PodTopologySpread
from service.engine.plugins.taint_toleration import TaintToleration
from service.engine.plugins.volume_binding import VolumeBinding
from service.engine.plugins.volume_restrictions import VolumeRestrictions
from service.engine.plugins.volume_zone import VolumeZone

PLUGINS: tuple[type[Plugin], ...] = (
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    DataAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    BalancedAllocation,
    ImageLocality,
    NodeDeclaredFeatures,
)
