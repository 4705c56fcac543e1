"""Volumes, claims, storage classes, and CSI drivers as the volume plugins read them.

Each type holds the parts of an object that rules read, with everything that depends on the object
alone computed once: its class, its size, and the nodes of its affinity.
"""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

import msgspec

from service.model.core.primitives import LabelSelector, NodeSelector, ObjectName, Partial
from service.model.pods.volume_sources import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    CinderVolumeSource,
    GCEPersistentDiskVolumeSource,
    PortworxVolumeSource,
)

EBS_DRIVER = "ebs.csi.aws.com"
GCE_DRIVER = "pd.csi.storage.gke.io"
AZURE_DRIVER = "disk.csi.azure.com"
CINDER_DRIVER = "cinder.csi.openstack.org"
PORTWORX_DRIVER = "pxd.portworx.com"
"""The CSI drivers that replaced in-tree disks."""
DRIVERS_OF_PROVISIONERS = {
    "kubernetes.io/aws-ebs": EBS_DRIVER,
    "kubernetes.io/gce-pd": GCE_DRIVER,
    "kubernetes.io/azure-disk": AZURE_DRIVER,
    "kubernetes.io/cinder": CINDER_DRIVER,
    "kubernetes.io/portworx-volume": PORTWORX_DRIVER,
}
"""The CSI driver that replaces each in-tree provisioner. For other in-tree provisioners, Kubernetes
v1.35 does not count volumes toward limits; it does not check whether a node reports having
migrated."""
NO_PROVISIONER = frozenset({"", "kubernetes.io/no-provisioner"})
"""The provisioners of classes without dynamic provisioning."""
ONE_POD = "ReadWriteOncePod"
"""The access mode of claims that only one pod at a time may use."""
ZONE_KEYS = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
"""The labels that restrict a volume to zones and regions."""

Topology: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Label keys, each with the values that a matching node may have."""
ZoneLabels: TypeAlias = tuple[tuple[str, frozenset[str]], ...]
"""A volume's zone and region label keys, each with one or more allowed values."""


class DiskName(msgspec.Struct, frozen=True, gc=False):
    """The identity under which a volume counts toward a node's limits: a driver and its name.

    In-tree disks count as volumes of the driver that replaced them.
    """

    driver: str
    handle: str


class InTreeSource(Protocol):
    """The in-tree disk of a pod's volume or a persistent volume, if it has one."""

    @property
    def aws_elastic_block_store(self) -> AWSElasticBlockStoreVolumeSource | None: ...
    @property
    def gce_persistent_disk(self) -> GCEPersistentDiskVolumeSource | None: ...
    @property
    def azure_disk(self) -> AzureDiskVolumeSource | None: ...
    @property
    def cinder(self) -> CinderVolumeSource | None: ...
    @property
    def portworx_volume(self) -> PortworxVolumeSource | None: ...


def in_tree_disk(source: InTreeSource) -> DiskName | None:
    """Return the name under which an in-tree disk counts toward limits, or None for no such disk.

    Of Azure's disks only managed ones count, since the driver knows no others.
    """
    if source.aws_elastic_block_store is not None:
        return DiskName(EBS_DRIVER, source.aws_elastic_block_store.volume_id)
    if source.gce_persistent_disk is not None:
        return DiskName(GCE_DRIVER, source.gce_persistent_disk.pd_name)
    if source.azure_disk is not None:
        is_managed = source.azure_disk.kind.lower() == "managed"
        return DiskName(AZURE_DRIVER, source.azure_disk.disk_uri) if is_managed else None
    if source.cinder is not None:
        return DiskName(CINDER_DRIVER, source.cinder.volume_id)
    if source.portworx_volume is not None:
        return DiskName(PORTWORX_DRIVER, source.portworx_volume.volume_id)
    return None


class ClaimRef(Partial, frozen=True, kw_only=True, gc=False):
    """The claim that a volume is bound to, or kept for."""

    namespace: str = ""
    """Namespace of the claim."""
    name: str = ""
    """Name of the claim."""
    uid: str = ""
    """Its uid; absent: any claim of that name."""

    def names(self, claim: "PersistentVolumeClaim") -> bool:
        """Return whether this refers to exactly this claim, not an earlier one of its name."""
        same_name = self.name == claim.name and self.namespace == claim.namespace
        return same_name and self.uid in ("", claim.uid)


class PersistentVolumeClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A pod's claim to a volume. Sizes are in nanos (`service.model.core.quantity`)."""

    namespace: str
    name: str
    uid: str = ""
    class_name: str = ""
    class_field: str = ""
    """The class in `spec`, which an annotation may override for everything but scores."""
    volume_name: str = ""
    is_bound: bool = False
    """Whether the claim names a volume and the binding is complete."""
    access_modes: tuple[str, ...] = ()
    requested: int = 0
    volume_mode: str = "Filesystem"
    attributes_class: str = ""
    selector: LabelSelector | None = None
    """The label selector for eligible volumes, or None if any volume is eligible."""
    selected_node: str | None = None
    """The node for which a volume is being provisioned, or None."""
    controller_uid: str = ""
    """The uid of the pod whose ephemeral volume the claim was created for, or ""."""
    is_lost: bool = False
    terminating: bool = False

    @property
    def key(self) -> ObjectName:
        """The claim's namespace and name."""
        return self.namespace, self.name


class PersistentVolume(msgspec.Struct, frozen=True, kw_only=True):
    """A volume."""

    name: str
    labels: Mapping[str, str]
    class_name: str = ""
    class_field: str = ""
    """The class in `spec`, which an annotation may override for everything but scores."""
    capacity: int = 0
    access_modes: frozenset[str] = frozenset()
    volume_mode: str = "Filesystem"
    attributes_class: str = ""
    claim: ClaimRef | None = None
    is_available: bool = False
    """Whether the volume's phase is Available, or it has no status yet."""
    terminating: bool = False
    affinity: NodeSelector | None = None
    """The nodes on which the volume can be used, or None for all. Terms have no `matchFields`, as
    kube-scheduler ignores them."""
    zones: ZoneLabels = ()
    disk: DiskName | None = None
    """The volume's identity for counting toward nodes' limits, or None if it does not count."""
    handle: str | None = None
    """The CSI driver's handle of the volume, or None."""


class StorageClass(msgspec.Struct, frozen=True, kw_only=True):
    """A storage class: how its volumes are provisioned and bound."""

    name: str
    provisioner: str = ""
    waits_for_consumer: bool = False
    """Whether a claim is bound only when a pod that uses it is placed."""
    allowed_topologies: tuple[Topology, ...] = ()
    """The topologies in which volumes can be provisioned; empty: everywhere."""


class CSINode(msgspec.Struct, frozen=True, kw_only=True):
    """The drivers on a node."""

    name: str
    limits: Mapping[str, int]
    """The number of volumes of each driver that can be attached; others have no limit."""
    drivers: frozenset[str] = frozenset()
    """The drivers that run on the node."""


class CSIDriver(msgspec.Struct, frozen=True, kw_only=True):
    """A CSI driver."""

    name: str
    reports_capacity: bool = False
    """Whether volumes are provisioned only where a `CSIStorageCapacity` reports enough capacity."""
    is_required: bool = False
    """Whether pods with volumes of the driver need a node on which it runs."""


class CSIStorageCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """A driver's storage capacity for one class on a set of nodes."""

    namespace: str
    name: str
    class_name: str = ""
    capacity: int = 0
    """The total capacity in bytes; 0 if unknown."""
    size_max: int | None = None
    """The largest possible size of one volume; None if unknown, so that no volume fits."""
    nodes: LabelSelector | None = None
    """The label selector of the nodes; None selects no node."""


class VolumeAttachment(msgspec.Struct, frozen=True, kw_only=True):
    """An attachment of a volume to a node, completed or pending."""

    name: str
    attacher: str = ""
    node_name: str = ""
    volume_name: str = ""


VolumeObject: TypeAlias = (
    PersistentVolumeClaim
    | PersistentVolume
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
)
