"""The kinds of objects that a cluster holds, and where they are found."""

from typing import NamedTuple


class Kind(NamedTuple):
    """One kind."""

    name: str
    """The kind as manifests name it."""
    plural: str
    """The kind as paths name it."""
    namespaced: bool


KINDS = {
    kind.name: kind
    for kind in (
        Kind("CSIDriver", "csidrivers", namespaced=False),
        Kind("CSINode", "csinodes", namespaced=False),
        Kind("CSIStorageCapacity", "csistoragecapacities", namespaced=True),
        Kind("DataSet", "datasets", namespaced=True),
        Kind("DeviceClass", "deviceclasses", namespaced=False),
        Kind("Event", "events", namespaced=True),
        Kind("LimitRange", "limitranges", namespaced=True),
        Kind("Namespace", "namespaces", namespaced=False),
        Kind("Node", "nodes", namespaced=False),
        Kind("PersistentVolume", "persistentvolumes", namespaced=False),
        Kind("PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True),
        Kind("Plan", "plans", namespaced=False),
        Kind("Pod", "pods", namespaced=True),
        Kind("PodDisruptionBudget", "poddisruptionbudgets", namespaced=True),
        Kind("PodGroup", "podgroups", namespaced=True),
        Kind("ReplicaSet", "replicasets", namespaced=True),
        Kind("ReplicationController", "replicationcontrollers", namespaced=True),
        Kind("ResourceClaim", "resourceclaims", namespaced=True),
        Kind("ResourceClaimTemplate", "resourceclaimtemplates", namespaced=True),
        Kind("ResourceQuota", "resourcequotas", namespaced=True),
        Kind("ResourceSlice", "resourceslices", namespaced=False),
        Kind("RuntimeClass", "runtimeclasses", namespaced=False),
        Kind("Service", "services", namespaced=True),
        Kind("StatefulSet", "statefulsets", namespaced=True),
        Kind("StorageClass", "storageclasses", namespaced=False),
        Kind("VolumeAttachment", "volumeattachments", namespaced=False),
        Kind("Workload", "workloads", namespaced=True),
    )
}

NAMESPACE_DEFAULT = "default"


def path_parts(kind: Kind, namespace: str | None, name: str | None = None) -> tuple[str, ...]:
    """Return the parts of a path in a cluster: of one object, or of a list where no name is given.

    A list without a namespace is of all namespaces; an object without one is in `default`.
    """
    plain = (kind.plural,) if name is None else (kind.plural, name)
    if not kind.namespaced or (namespace is None and name is None):
        return plain
    return ("namespaces", namespace or NAMESPACE_DEFAULT, *plain)
