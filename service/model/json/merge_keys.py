"""Merge keys of Kubernetes' lists, and maps that are replaced as a whole.

Source: the field markers in `k8s.io/api` (v0.37.2), from which Kubernetes generates
`x-kubernetes-list-map-keys`, `-list-type`, and `-map-type` for server-side apply, and
`x-kubernetes-patch-merge-key` and `-patch-strategy` for strategic merge patches. The two groups do
not always agree. Lists that are in no table are replaced.

Fields are listed by name, or as `parent.field` where the meaning differs under one parent.
"""

from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")

APPLY_KEYS: Mapping[str, tuple[str, ...]] = {
    "addresses": ("type",),
    "allocatedResourcesStatus": ("name",),
    "allocatedResourcesStatus.resources": ("resourceID",),
    "claims": ("name",),
    "compositePodGroupTemplates": ("name",),
    "conditions": ("type",),
    "containers": ("name",),
    "drivers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "evictionResponders": ("name",),
    "healthConditions": ("status", "reason"),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "ingress.ports": (),
    "initContainers": ("name",),
    "nodeAllocatableResourceClaimStatuses": ("resourceClaimName",),
    "nodeAllocatableResourceClaimStatuses.containers": (),
    "nodeAllocatableResourceClaimStatuses.mapping": ("name",),
    "nodeAllocatableResourceClaimStatuses.overhead": ("name",),
    "ownerReferences": ("uid",),
    "podGroupTemplates": ("name",),
    "podIPs": ("ip",),
    "ports": ("containerPort", "protocol"),
    "reservedFor": ("uid",),
    "resourceClaimStatuses": ("name",),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
    "spec.ports": ("port", "protocol"),
    "status.devices": ("driver", "device", "pool", "shareID"),
    "storageHealth": ("name",),
    "storageHealth.healthConditions": (),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumeDevices": ("devicePath",),
    "volumeHealth": ("name",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
"""The fields that identify an item of a list in server-side apply; with none, the list is replaced
as a whole."""

APPLY_KEY_DEFAULTS: Mapping[str, str] = {"protocol": "TCP"}
"""The default values of fields in `APPLY_KEYS` that an item does not state."""

APPLY_SETS: Mapping[str, bool] = {
    "bindMountOptions": True,
    "disableResizePreemption": True,
    "exitCodes.values": True,
    "finalizers": True,
    "nodeAllocatableResourceClaimStatuses.containers": True,
    "podCIDRs": True,
    "skipNodeOperations": True,
    "spec.finalizers": False,
    "volumeLifecycleModes": True,
}
"""Lists of scalars that server-side apply treats as sets."""

ATOMIC_MAPS: Mapping[str, bool] = {
    "claimRef": True,
    "configMapKeyRef": True,
    "controllerExpandSecretRef": True,
    "controllerPublishSecretRef": True,
    "dataSource": True,
    "fieldRef": True,
    "fileKeyRef": True,
    "labelSelector": True,
    "namespaceSelector": True,
    "nodeAffinity.required": True,
    "nodeExpandSecretRef": True,
    "nodePublishSecretRef": True,
    "nodeSelector": True,
    "nodeStageSecretRef": True,
    "nodeTopology": True,
    "preference": True,
    "requiredDuringSchedulingIgnoredDuringExecution": True,
    "resourceFieldRef": True,
    "scopeSelector": True,
    "secretKeyRef": True,
    "secretRef": True,
    "selector": True,
}
"""Maps and objects that server-side apply replaces as a whole."""

PATCH_KEYS: Mapping[str, str] = {
    "addresses": "type",
    "allocatedResourcesStatus": "name",
    "conditions": "type",
    "containers": "name",
    "devices.conditions": "",
    "drivers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "evictionResponders": "name",
    "healthConditions": "status",
    "hostAliases": "ip",
    "hostIPs": "ip",
    "imagePullSecrets": "name",
    "ingress.ports": "",
    "initContainers": "name",
    "nodeAllocatableResourceClaimStatuses": "resourceClaimName",
    "nodeAllocatableResourceClaimStatuses.containers": "",
    "nodeAllocatableResourceClaimStatuses.mapping": "name",
    "nodeAllocatableResourceClaimStatuses.overhead": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "ports": "containerPort",
    "reservedFor": "uid",
    "resourceClaimStatuses": "name",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "spec.ports": "port",
    "storageHealth": "name",
    "storageHealth.healthConditions": "",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""The field that identifies an item of a list in strategic merge patches; if empty, the list is
replaced."""

PATCH_SETS: Mapping[str, bool] = {"finalizers": True, "podCIDRs": True, "spec.finalizers": False}
"""Lists of scalars that strategic merge patches merge."""


def below(place: str, field: str) -> str:
    """Return the schema path of a field below `place`; list items share the path of their list."""
    return f"{place.rpartition('.')[2]}.{field}"


def at_place(table: Mapping[str, T], place: str) -> T | None:
    """Return the entry of a table for a schema path, or None."""
    entry = table.get(place)
    return table.get(place.rpartition(".")[2]) if entry is None else entry
