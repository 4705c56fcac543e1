"""Where in the objects of each kind which type of Kubernetes is, and by which type it is decoded.

Each type by which a manifest is decoded has a place here: a test walks through them. Types that are
in several places are shown at the first one. Parts that are kept unread have a place of their own
if somebody may ask about a field in them.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from service.api.resources.objects import types as object_types
from service.model.core import primitives
from service.model.devices import device_fields
from service.model.nodes import node
from service.model.pods import pod, pod_fields, scheduling_groups, volume_sources
from service.model.policies import limit_ranges, quota_spec, runtime_classes
from service.model.volumes import volume, volume_kinds
from service.model.workloads import disruption_budget, owners
from tools.manifests.versions import DEVICES, GROUPS, IN_WORKLOAD

ANY_KIND = "All kinds"
"""The `kind` of places that objects of all kinds have."""


class Place(NamedTuple):
    """Where in an object a type of Kubernetes is, and the type by which it is decoded."""

    kind: str
    type_name: str
    path: str
    decoded: type[msgspec.Struct] | None = None


Row: TypeAlias = tuple[str, str, type[msgspec.Struct] | None]
"""Path, type of Kubernetes, and type by which it is decoded, or None if it is not read."""


def _in(kind: str, *rows: Row) -> tuple[Place, ...]:
    return tuple(Place(kind, type_name, path, decoded) for path, type_name, decoded in rows)


_AFFINITY = "spec.affinity"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution[]"
_NODE_AFFINITY = f"{_AFFINITY}.nodeAffinity"
_NODE_TERM = f"{_NODE_AFFINITY}.{_REQUIRED}.nodeSelectorTerms[]"
_POD_AFFINITY = f"{_AFFINITY}.podAffinity"
_POD_TERM = f"{_POD_AFFINITY}.{_REQUIRED}[]"
_VOLUME = "spec.volumes[]"

_PODS = _in(
    "Pod",
    ("spec", "PodSpec", pod_fields.PodSpec),
    ("spec.containers[]", "Container", pod.Container),
    ("spec.containers[].ports[]", "ContainerPort", pod.ContainerPort),
    ("spec.containers[].resources", "ResourceRequirements", pod.ResourceRequirements),
    ("spec.containers[].volumeMounts[]", "VolumeMount", None),
    (_VOLUME, "Volume", volume_sources.Volume),
    (_VOLUME, "VolumeSource", volume_sources.Volume),
    (f"{_VOLUME}.emptyDir", "EmptyDirVolumeSource", None),
    (
        f"{_VOLUME}.persistentVolumeClaim",
        "PersistentVolumeClaimVolumeSource",
        volume_sources.PersistentVolumeClaimVolumeSource,
    ),
    (
        f"{_VOLUME}.ephemeral",
        "EphemeralVolumeSource",
        volume_sources.EphemeralVolumeSource,
    ),
    (f"{_VOLUME}.iscsi", "ISCSIVolumeSource", volume_sources.ISCSIVolumeSource),
    (f"{_VOLUME}.rbd", "RBDVolumeSource", volume_sources.RBDVolumeSource),
    (_AFFINITY, "Affinity", pod.Affinity),
    (_NODE_AFFINITY, "NodeAffinity", pod.NodeAffinity),
    (f"{_NODE_AFFINITY}.{_REQUIRED}", "NodeSelector", primitives.NodeSelector),
    (_NODE_TERM, "NodeSelectorTerm", primitives.NodeSelectorTerm),
    (
        f"{_NODE_TERM}.matchExpressions[]",
        "NodeSelectorRequirement",
        primitives.NodeSelectorRequirement,
    ),
    (f"{_NODE_AFFINITY}.{_PREFERRED}", "PreferredSchedulingTerm", pod.PreferredSchedulingTerm),
    (_POD_AFFINITY, "PodAffinity", pod.PodAffinity),
    (f"{_AFFINITY}.podAntiAffinity", "PodAntiAffinity", pod.PodAffinity),
    (_POD_TERM, "PodAffinityTerm", pod.PodAffinityTerm),
    (f"{_POD_TERM}.labelSelector", "LabelSelector", primitives.LabelSelector),
    (
        f"{_POD_TERM}.labelSelector.matchExpressions[]",
        "LabelSelectorRequirement",
        primitives.LabelSelectorRequirement,
    ),
    (f"{_POD_AFFINITY}.{_PREFERRED}", "WeightedPodAffinityTerm", pod.WeightedPodAffinityTerm),
    ("spec.tolerations[]", "Toleration", pod.Toleration),
    (
        "spec.topologySpreadConstraints[]",
        "TopologySpreadConstraint",
        pod.TopologySpreadConstraint,
    ),
    ("spec.schedulingGroup", "PodSchedulingGroup", pod_fields.PodSchedulingGroup),
    ("spec.workloadRef", "WorkloadReference", pod_fields.WorkloadReference),
    ("spec.resourceClaims[]", "PodResourceClaim", pod.PodResourceClaim),
    ("spec.schedulingGates[]", "PodSchedulingGate", pod.PodSchedulingGate),
    ("spec.evictionResponders[]", "EvictionResponder", None),
    ("status", "PodStatus", pod_fields.PodStatus),
    ("status.conditions[]", "PodCondition", pod_fields.PodCondition),
    ("status.containerStatuses[]", "ContainerStatus", pod.ContainerStatus),
    (
        "status.resourceClaimStatuses[]",
        "PodResourceClaimStatus",
        pod_fields.PodResourceClaimStatus,
    ),
    ("status.volumeHealth[]", "PodVolumeHealth", None),
)

_NODES = _in(
    "Node",
    ("spec", "NodeSpec", node.NodeSpec),
    ("spec.taints[]", "Taint", primitives.Taint),
    ("spec.podPreemptionPolicy", "NodePodPreemptionPolicy", None),
    ("status", "NodeStatus", node.NodeStatus),
    ("status.conditions[]", "NodeCondition", node.NodeCondition),
    ("status.images[]", "ContainerImage", primitives.ContainerImage),
    ("status.nodeInfo", "NodeSystemInfo", None),
)

_QUOTAS = _in(
    "ResourceQuota",
    ("spec", "ResourceQuotaSpec", quota_spec.ResourceQuotaSpec),
    ("spec.scopeSelector", "ScopeSelector", quota_spec.QuotaScopeSelector),
    (
        "spec.scopeSelector.matchExpressions[]",
        "ScopedResourceSelectorRequirement",
        quota_spec.MatchScope,
    ),
    ("status", "ResourceQuotaStatus", quota_spec.ResourceQuotaStatus),
)

_POD_GROUPS = _in(
    "PodGroup",
    ("spec", f"{GROUPS}PodGroupSpec", scheduling_groups.ScheduledGroupSpec),
    (
        "spec.schedulingPolicy",
        f"{GROUPS}PodGroupSchedulingPolicy",
        scheduling_groups.PodGroupSchedulingPolicy,
    ),
    (
        "spec.schedulingPolicy.gang",
        f"{GROUPS}GangSchedulingPolicy",
        scheduling_groups.GangSchedulingPolicy,
    ),
    (
        "spec.schedulingConstraints",
        f"{GROUPS}PodGroupSchedulingConstraints",
        scheduling_groups.PodGroupSchedulingConstraints,
    ),
    (
        "spec.schedulingConstraints.topology[]",
        f"{GROUPS}TopologyConstraint",
        scheduling_groups.TopologyConstraint,
    ),
    ("status", f"{GROUPS}PodGroupStatus", None),
)
_WORKLOADS = _in(
    "Workload",
    ("", f"{GROUPS}Workload", scheduling_groups.WorkloadBody),
    ("spec", f"{GROUPS}WorkloadSpec", scheduling_groups.WorkloadSpec),
    ("spec.podGroups[]", f"{GROUPS}{IN_WORKLOAD}", scheduling_groups.WorkloadPodGroup),
    (
        "spec.podGroups[].policy",
        f"{GROUPS}PodGroupPolicy",
        scheduling_groups.PodGroupSchedulingPolicy,
    ),
    ("spec.podGroupTemplates[]", f"{GROUPS}PodGroupTemplate", None),
)

_CLAIM: Sequence[Row] = (
    ("", "ResourceClaimSpec", device_fields.ResourceClaimSpec),
    (".devices", "DeviceClaim", device_fields.DeviceClaim),
    (".devices.requests[]", "DeviceRequest", device_fields.DeviceRequestBody),
    (".devices.requests[].exactly", "ExactDeviceRequest", device_fields.ExactDeviceRequest),
    (
        ".devices.requests[].exactly.selectors[]",
        "DeviceSelector",
        device_fields.DeviceSelector,
    ),
    (
        ".devices.requests[].exactly.selectors[].cel",
        "CELDeviceSelector",
        device_fields.CELDeviceSelector,
    ),
    (
        ".devices.requests[].firstAvailable[]",
        "DeviceSubRequest",
        device_fields.DeviceSubRequest,
    ),
    (".devices.constraints[]", "DeviceConstraint", device_fields.DeviceConstraint),
)
"""What is in the spec of a claim to devices, by the path under it."""

_RESULT = "status.allocation.devices.results[]"

_DEVICES: Sequence[Place] = (
    *_in(
        "DeviceClass",
        ("", f"{DEVICES}DeviceClass", device_fields.DeviceClassBody),
        ("spec", f"{DEVICES}DeviceClassSpec", device_fields.DeviceClassSpec),
    ),
    *_in(
        "ResourceSlice",
        ("", f"{DEVICES}ResourceSlice", device_fields.ResourceSliceBody),
        ("spec", f"{DEVICES}ResourceSliceSpec", device_fields.ResourceSliceSpec),
        ("spec.pool", f"{DEVICES}ResourcePool", device_fields.ResourcePool),
        ("spec.devices[]", f"{DEVICES}Device", device_fields.SliceDevice),
        (
            "spec.devices[].attributes[*]",
            f"{DEVICES}DeviceAttribute",
            device_fields.DeviceAttribute,
        ),
        ("spec.devices[].capacity[*]", f"{DEVICES}DeviceCapacity", device_fields.DeviceCapacity),
        ("spec.devices[].consumesCounters[]", f"{DEVICES}DeviceCounterConsumption", None),
    ),
    *_in(
        "ResourceClaim",
        ("", f"{DEVICES}ResourceClaim", device_fields.ResourceClaimBody),
        *((f"spec{path}", DEVICES + name, decoded) for path, name, decoded in _CLAIM),
        ("status", f"{DEVICES}ResourceClaimStatus", device_fields.ResourceClaimStatus),
        (
            "status.allocation",
            f"{DEVICES}AllocationResult",
            device_fields.AllocationResult,
        ),
        (
            "status.allocation.devices",
            f"{DEVICES}DeviceAllocationResult",
            device_fields.DeviceResults,
        ),
        (_RESULT, f"{DEVICES}DeviceRequestAllocationResult", device_fields.DeviceResult),
        (
            "status.reservedFor[]",
            f"{DEVICES}ResourceClaimConsumerReference",
            device_fields.ConsumerReference,
        ),
    ),
    *_in(
        "ResourceClaimTemplate",
        (
            "",
            f"{DEVICES}ResourceClaimTemplate",
            device_fields.ResourceClaimTemplateBody,
        ),
        ("spec", f"{DEVICES}ResourceClaimTemplateSpec", device_fields.TemplateSpec),
        *((f"spec.spec{path}", DEVICES + name, decoded) for path, name, decoded in _CLAIM),
    ),
)

_OWNERS: Sequence[Place] = (
    *_in(
        "Service",
        ("", "Service", owners.ServiceBody),
        ("spec", "ServiceSpec", owners.ServiceSpec),
    ),
    *_in(
        "ReplicationController",
        ("", "ReplicationController", owners.ReplicationControllerBody),
        ("spec", "ReplicationControllerSpec", owners.ReplicationControllerSpec),
    ),
    *_in(
        "ReplicaSet",
        ("", "ReplicaSet", owners.ReplicaSetBody),
        ("spec", "ReplicaSetSpec", owners.ReplicaSetSpec),
    ),
    *_in(
        "StatefulSet",
        ("", "StatefulSet", owners.StatefulSetBody),
        ("spec", "StatefulSetSpec", owners.StatefulSetSpec),
    ),
)

_BUDGETS = _in(
    "PodDisruptionBudget",
    ("", "PodDisruptionBudget", disruption_budget.PodDisruptionBudgetBody),
    ("spec", "PodDisruptionBudgetSpec", disruption_budget.PodDisruptionBudgetSpec),
    ("status", "PodDisruptionBudgetStatus", disruption_budget.PodDisruptionBudgetStatus),
)

_VOLUMES: Sequence[Place] = (
    *_in(
        "PersistentVolumeClaim",
        ("", "PersistentVolumeClaim", volume_kinds.PersistentVolumeClaimBody),
        ("spec", "PersistentVolumeClaimSpec", volume_kinds.PersistentVolumeClaimSpec),
        ("spec.resources", "VolumeResourceRequirements", volume_kinds.StorageRequirements),
        ("status", "PersistentVolumeClaimStatus", volume_kinds.PhaseStatus),
    ),
    *_in(
        "PersistentVolume",
        ("", "PersistentVolume", volume_kinds.PersistentVolumeBody),
        ("spec", "PersistentVolumeSpec", volume_kinds.PersistentVolumeSpec),
        ("spec", "PersistentVolumeSource", volume_kinds.PersistentVolumeSpec),
        ("spec.claimRef", "ObjectReference", volume.ClaimRef),
        ("spec.nodeAffinity", "VolumeNodeAffinity", volume_kinds.VolumeNodeAffinity),
        ("spec.csi", "CSIPersistentVolumeSource", volume_kinds.CSIVolumeSource),
        (
            "spec.awsElasticBlockStore",
            "AWSElasticBlockStoreVolumeSource",
            volume_sources.AWSElasticBlockStoreVolumeSource,
        ),
        (
            "spec.gcePersistentDisk",
            "GCEPersistentDiskVolumeSource",
            volume_sources.GCEPersistentDiskVolumeSource,
        ),
        ("spec.azureDisk", "AzureDiskVolumeSource", volume_sources.AzureDiskVolumeSource),
        ("spec.cinder", "CinderPersistentVolumeSource", volume_sources.CinderVolumeSource),
        (
            "spec.portworxVolume",
            "PortworxVolumeSource",
            volume_sources.PortworxVolumeSource,
        ),
        ("status", "PersistentVolumeStatus", volume_kinds.PhaseStatus),
    ),
    *_in(
        "StorageClass",
        ("", "StorageClass", volume_kinds.StorageClassBody),
        ("allowedTopologies[]", "TopologySelectorTerm", volume_kinds.TopologySelectorTerm),
        (
            "allowedTopologies[].matchLabelExpressions[]",
            "TopologySelectorLabelRequirement",
            volume_kinds.TopologySelectorLabelRequirement,
        ),
    ),
    *_in(
        "CSINode",
        ("", "CSINode", volume_kinds.CSINodeBody),
        ("spec", "CSINodeSpec", volume_kinds.CSINodeSpec),
        ("spec.drivers[]", "CSINodeDriver", volume_kinds.CSINodeDriver),
        ("spec.drivers[].allocatable", "VolumeNodeResources", volume_kinds.VolumeNodeResources),
        ("status", "CSINodeStatus", None),
    ),
    *_in(
        "CSIDriver",
        ("", "CSIDriver", volume_kinds.CSIDriverBody),
        ("spec", "CSIDriverSpec", volume_kinds.CSIDriverSpec),
    ),
    *_in(
        "CSIStorageCapacity",
        ("", "CSIStorageCapacity", volume_kinds.CSIStorageCapacityBody),
    ),
    *_in(
        "VolumeAttachment",
        ("", "VolumeAttachment", volume_kinds.VolumeAttachmentBody),
        ("spec", "VolumeAttachmentSpec", volume_kinds.VolumeAttachmentSpec),
        ("spec.source", "VolumeAttachmentSource", volume_kinds.VolumeAttachmentSource),
    ),
)

_RUNTIME_CLASSES = _in(
    "RuntimeClass",
    ("", "RuntimeClass", runtime_classes.RuntimeClassBody),
    ("overhead", "Overhead", runtime_classes.Overhead),
    ("scheduling", "Scheduling", runtime_classes.RuntimeClassScheduling),
)

_LIMIT_RANGES = _in(
    "LimitRange",
    ("", "LimitRange", limit_ranges.LimitRangeBody),
    ("spec", "LimitRangeSpec", limit_ranges.LimitRangeSpec),
    ("spec.limits[]", "LimitRangeItem", limit_ranges.LimitRangeItem),
)

PLACES: Sequence[Place] = (
    *_in(
        ANY_KIND,
        ("metadata", "ObjectMeta", primitives.ObjectMeta),
        ("metadata.ownerReferences[]", "OwnerReference", primitives.OwnerReference),
    ),
    *_PODS,
    *_NODES,
    *_in("Namespace", ("spec", "NamespaceSpec", None), ("status", "NamespaceStatus", None)),
    *_QUOTAS,
    *_in("PriorityClass", ("", "PriorityClass", object_types.PriorityClass)),
    *_POD_GROUPS,
    *_WORKLOADS,
    *_OWNERS,
    *_BUDGETS,
    *_VOLUMES,
    *_DEVICES,
    *_RUNTIME_CLASSES,
    *_LIMIT_RANGES,
)
"""All places, by kind; a place comes after the one around it."""
