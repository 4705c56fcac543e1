"""What becomes of each field of a manifest, by the declarations that decode manifests.

A field is honoured if a type declares it that is decoded, passed over with a warning if
`service.model.core.field_warnings` declares it, and refused if its object takes no unknown fields. What is
left is either kept and returned, which has to be said in `unread_fields.toml`, or undecided.
"""

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from service.api.resources.objects import types as object_types
from service.model.core import primitives
from service.model.core.field_warnings import IGNORED_FIELDS, IgnoredField
from service.model.devices import device_fields
from service.model.nodes import node
from service.model.pods import (
    pod,
    pod_fields,
    scheduling_groups,
)
from service.model.policies import quota_spec
from tools.manifests import versions
from tools.manifests.versions import DEVICES, GROUPS

Answer = Literal["honoured", "refused", "honoured or not", "warned", "kept", "undecided"]

KEPT = Path(__file__).with_name("unread_fields.toml")


class Place(NamedTuple):
    """Where in an object a type of Kubernetes stands, and the type by which it is decoded."""

    kind: str
    type_name: str
    path: str
    decoded: type[msgspec.Struct] | None = None


_TERM = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[]"
_NODE = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution[]"
_NODE_TERM = f"{_NODE}.nodeSelectorTerms[]"

_CLAIM: Sequence[tuple[str, str, type[msgspec.Struct]]] = (
    ("", "DeviceClaim", device_fields.DeviceClaim),
    (".requests[]", "DeviceRequest", device_fields.DeviceRequestBody),
    (".requests[].exactly", "ExactDeviceRequest", device_fields.ExactDeviceRequest),
    (".requests[].firstAvailable[]", "DeviceSubRequest", device_fields.DeviceSubRequest),
    (".constraints[]", "DeviceConstraint", device_fields.DeviceConstraint),
)
"""What is in a claim to devices, where it stands in `devices`."""

PLACES: Sequence[Place] = (
    Place("Pod", "PodSpec", "spec", pod_fields.PodSpec),
    Place("Pod", "Container", "spec.containers[]", pod.Container),
    Place("Pod", "ContainerPort", "spec.containers[].ports[]", pod.ContainerPort),
    Place(
        "Pod",
        "ResourceRequirements",
        "spec.containers[].resources",
        pod.ResourceRequirements,
    ),
    Place("Pod", "VolumeSource", "spec.volumes[]"),
    Place("Pod", "Affinity", "spec.affinity", pod.Affinity),
    Place("Pod", "NodeAffinity", "spec.affinity.nodeAffinity", pod.NodeAffinity),
    Place("Pod", "NodeSelector", _NODE, primitives.NodeSelector),
    Place("Pod", "NodeSelectorTerm", _NODE_TERM, primitives.NodeSelectorTerm),
    Place(
        "Pod",
        "NodeSelectorRequirement",
        f"{_NODE_TERM}.matchExpressions[]",
        primitives.NodeSelectorRequirement,
    ),
    Place(
        "Pod",
        "PreferredSchedulingTerm",
        f"spec.affinity.nodeAffinity.{_PREFERRED}",
        pod.PreferredSchedulingTerm,
    ),
    Place("Pod", "PodAffinity", "spec.affinity.podAffinity", pod.PodAffinity),
    Place("Pod", "PodAntiAffinity", "spec.affinity.podAntiAffinity", pod.PodAffinity),
    Place("Pod", "PodAffinityTerm", _TERM, pod.PodAffinityTerm),
    Place(
        "Pod",
        "WeightedPodAffinityTerm",
        f"spec.affinity.podAffinity.{_PREFERRED}",
        pod.WeightedPodAffinityTerm,
    ),
    Place("Pod", "Toleration", "spec.tolerations[]", pod.Toleration),
    Place(
        "Pod",
        "TopologySpreadConstraint",
        "spec.topologySpreadConstraints[]",
        pod.TopologySpreadConstraint,
    ),
    Place("Pod", "PodSchedulingGroup", "spec.schedulingGroup", pod_fields.PodSchedulingGroup),
    Place("Pod", "WorkloadReference", "spec.workloadRef", pod_fields.WorkloadReference),
    Place("Pod", "PodResourceClaim", "spec.resourceClaims[]", pod.PodResourceClaim),
    Place("Pod", "PodSchedulingGate", "spec.schedulingGates[]", pod.PodSchedulingGate),
    Place("Pod", "PodStatus", "status", pod_fields.PodStatus),
    Place("Pod", "ContainerStatus", "status.containerStatuses[]", pod.ContainerStatus),
    Place("Node", "NodeSpec", "spec", node.NodeSpec),
    Place("Node", "Taint", "spec.taints[]", primitives.Taint),
    Place("Node", "NodeStatus", "status", node.NodeStatus),
    Place("Node", "ContainerImage", "status.images[]", primitives.ContainerImage),
    Place("Namespace", "NamespaceSpec", "spec"),
    Place("Namespace", "NamespaceStatus", "status"),
    Place("ResourceQuota", "ResourceQuotaSpec", "spec", quota_spec.ResourceQuotaSpec),
    Place("ResourceQuota", "ScopeSelector", "spec.scopeSelector", quota_spec.QuotaScopeSelector),
    Place(
        "ResourceQuota",
        "ScopedResourceSelectorRequirement",
        "spec.scopeSelector.matchExpressions[]",
        quota_spec.MatchScope,
    ),
    Place("PriorityClass", "PriorityClass", "", object_types.PriorityClass),
    Place("PodGroup", f"{GROUPS}PodGroupSpec", "spec", scheduling_groups.ScheduledGroupSpec),
    Place(
        "PodGroup",
        f"{GROUPS}PodGroupSchedulingPolicy",
        "spec.schedulingPolicy",
        scheduling_groups.PodGroupSchedulingPolicy,
    ),
    Place(
        "PodGroup",
        f"{GROUPS}GangSchedulingPolicy",
        "spec.schedulingPolicy.gang",
        scheduling_groups.GangSchedulingPolicy,
    ),
    Place(
        "PodGroup",
        f"{GROUPS}PodGroupSchedulingConstraints",
        "spec.schedulingConstraints",
        scheduling_groups.PodGroupSchedulingConstraints,
    ),
    Place(
        "PodGroup",
        f"{GROUPS}TopologyConstraint",
        "spec.schedulingConstraints.topology[]",
        scheduling_groups.TopologyConstraint,
    ),
    Place("PodGroup", f"{GROUPS}PodGroupStatus", "status"),
    Place("Workload", f"{GROUPS}WorkloadSpec", "spec", scheduling_groups.WorkloadSpec),
    Place(
        "Workload",
        f"{GROUPS}PodGroupPolicy",
        "spec.podGroups[].policy",
        scheduling_groups.PodGroupSchedulingPolicy,
    ),
    Place("DeviceClass", f"{DEVICES}DeviceClassSpec", "spec", device_fields.DeviceClassSpec),
    Place(
        "ResourceSlice",
        f"{DEVICES}ResourceSliceSpec",
        "spec",
        device_fields.ResourceSliceSpec,
    ),
    Place("ResourceSlice", f"{DEVICES}ResourcePool", "spec.pool", device_fields.ResourcePool),
    Place("ResourceSlice", f"{DEVICES}Device", "spec.devices[]", device_fields.SliceDevice),
    Place(
        "ResourceSlice",
        f"{DEVICES}DeviceAttribute",
        "spec.devices[].attributes[*]",
        device_fields.DeviceAttribute,
    ),
    Place(
        "ResourceSlice",
        f"{DEVICES}DeviceCapacity",
        "spec.devices[].capacity[*]",
        device_fields.DeviceCapacity,
    ),
    *(
        Place(kind, f"{DEVICES}{type_name}", f"{spec}.devices{path}", decoded)
        for kind, spec in (("ResourceClaim", "spec"), ("ResourceClaimTemplate", "spec.spec"))
        for path, type_name, decoded in _CLAIM
    ),
    Place(
        "ResourceClaim",
        f"{DEVICES}ResourceClaimStatus",
        "status",
        device_fields.ResourceClaimStatus,
    ),
    Place(
        "ResourceClaim",
        f"{DEVICES}AllocationResult",
        "status.allocation",
        device_fields.AllocationResult,
    ),
)


class Field(NamedTuple):
    """One field of Kubernetes and its answer."""

    kind: str
    type_name: str
    path: str
    versions: tuple[str, ...]
    """The versions of Kubernetes that have it, of those that were read."""
    answer: Answer
    warning: IgnoredField | None = None


def fields(read: versions.Fields) -> Iterator[Field]:
    """Every field of the places above with its answer."""
    kept = tomllib.loads(KEPT.read_text())
    for place in PLACES:
        names = dict.fromkeys(
            name for types in read.values() for name in types.get(place.type_name, ())
        )
        for name in sorted(names):
            yield _field(place, name, read, kept.get(place.type_name, ()))


def own(read: versions.Fields) -> list[str]:
    """The fields that Moorage has in these places and no version of Kubernetes, by their paths."""
    return [
        f"{place.path}.{name}"
        for place in PLACES
        if place.decoded is not None and place.path
        for name in sorted(_names(place.decoded))
        if not any(name in types.get(place.type_name, ()) for types in read.values())
    ]


def stale(read: versions.Fields) -> list[str]:
    """What `unread_fields.toml` says of fields that no version has, or that have another answer by now."""
    decided = {(each.type_name, each.path.rpartition(".")[2]): each.answer for each in fields(read)}
    return [
        f"{type_name}.{name}"
        for type_name, names in tomllib.loads(KEPT.read_text()).items()
        for name in names
        if decided.get((type_name, name)) != "kept"
    ]


def _field(place: Place, name: str, read: versions.Fields, kept: Sequence[str]) -> Field:
    path = f"{place.path}.{name}" if place.path else name
    having = tuple(
        version for version, types in read.items() if name in types.get(place.type_name, ())
    )
    warning = _warning(place.kind, path)
    answer = _answer(place, name, warning, is_kept=name in kept)
    return Field(place.kind, place.type_name, path, having, answer, warning)


def _answer(place: Place, name: str, warning: IgnoredField | None, *, is_kept: bool) -> Answer:
    if warning is not None:
        return "honoured or not" if warning.setting else "warned"
    if is_kept:
        return "kept"
    if place.decoded is not None and name in _names(place.decoded):
        return "honoured"
    if place.decoded is not None and place.decoded.__struct_config__.forbid_unknown_fields:
        return "refused"
    return "undecided"


def _warning(kind: str, path: str) -> IgnoredField | None:
    """The warning about all values of a field; one about single keys of a map leaves it honoured."""
    found = (each for each in IGNORED_FIELDS if (each.kind, each.path) == (kind, path))
    return next(found, None)


def _names(decoded: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(field.encode_name for field in msgspec.structs.fields(decoded))
