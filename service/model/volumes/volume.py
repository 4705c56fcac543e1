"""Volumes, claims, classes, and drivers, as the volume plugins read them.

Claims, persistent volumes, storage classes and the objects of CSI drivers are kept for the volume
plugins. What rules read of one is a value here, with everything that follows from the object alone
worked out once: its class, its size, the nodes of its affinity.
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
"""The drivers that took the place of in-tree disks."""
DRIVERS_OF_PROVISIONERS = {
    "kubernetes.io/aws-ebs": EBS_DRIVER,
    "kubernetes.io/gce-pd": GCE_DRIVER,
    "kubernetes.io/azure-disk": AZURE_DRIVER,
    "kubernetes.io/cinder": CINDER_DRIVER,
    "kubernetes.io/portworx-volume": PORTWORX_DRIVER,
}
"""The driver that makes the volumes of each in-tree provisioner. Kubernetes v1.35 counts the volumes
of no other one towards limits; it does not ask whether a node says that it has migrated."""
NO_PROVISIONER = frozenset({"", "kubernetes.io/no-provisioner"})
"""The provisioners of classes without dynamic provisioning."""
ONE_POD = "ReadWriteOncePod"
"""The access mode of claims that one pod at a time may use."""
ZONE_KEYS = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
"""The labels of volumes that say in which zones and regions they can be used."""

Topology: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Label keys, each with the values that a node may have."""
ZoneLabels: TypeAlias = tuple[tuple[str, frozenset[str]], ...]
"""Label keys of a volume, each with its values; a value is one zone, or several."""


class DiskName(msgspec.Struct, frozen=True, gc=False):
    """A driver's name for a volume, by which volumes are counted.

    In-tree disks are counted as volumes of the driver that took their place.
    """

    driver: str
    handle: str


class InTreeSource(Protocol):
    """The in-tree disk that a pod's volume or a persistent volume names, if any."""

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
    """Return the name under which an in-tree disk counts toward limits, or None if it does not."""
    if source.aws_elastic_block_store is not None:
        return DiskName(EBS_DRIVER, source.aws_elastic_block_store.volume_id)
    if source.gce_persistent_disk is not None:
        return DiskName(GCE_DRIVER, source.gce_persistent_disk.pd_name)
    if source.azure_disk is not None:
        return DiskName(AZURE_DRIVER, source.azure_disk.disk_uri)
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
        """Return whether it is this claim, and not an earlier one of the same name."""
        same_name = self.name == claim.name and self.namespace == claim.namespace
        return same_name and self.uid in ("", claim.uid)


class PersistentVolumeClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A pod's claim to a volume. Sizes are in nanos (`service.model.core.quantity`)."""

    namespace: str
    name: str
    uid: str = ""
    class_name: str = ""
    volume_name: str = ""
    is_bound: bool = False
    """It names a volume, and the binding was completed."""
    access_modes: tuple[str, ...] = ()
    requested: int = 0
    volume_mode: str = "Filesystem"
    attributes_class: str = ""
    selector: LabelSelector | None = None
    """A selector of the volumes it may be bound to, or None for any."""
    selected_node: str | None = None
    """The node for which the volume is being provisioned."""
    controller_uid: str = ""
    """The pod for whose ephemeral volume it was made."""
    is_lost: bool = False
    terminating: bool = False

    @property
    def key(self) -> ObjectName:
        """Namespace and name."""
        return self.namespace, self.name


class PersistentVolume(msgspec.Struct, frozen=True, kw_only=True):
    """A volume."""

    name: str
    labels: Mapping[str, str]
    class_name: str = ""
    capacity: int = 0
    access_modes: frozenset[str] = frozenset()
    volume_mode: str = "Filesystem"
    attributes_class: str = ""
    claim: ClaimRef | None = None
    is_available: bool = False
    """Whether its status says that it is available, or it has no status yet."""
    terminating: bool = False
    affinity: NodeSelector | None = None
    """The nodes on which it can be used, or None for all. Terms have no `matchFields`: those are ignored."""
    zones: ZoneLabels = ()
    disk: DiskName | None = None
    """The disk that counts toward the limits of nodes, or None if it does not count."""
    handle: str | None = None
    """What its CSI driver calls it, if it has one."""


class StorageClass(msgspec.Struct, frozen=True, kw_only=True):
    """A class of volumes: how they are provisioned and bound."""

    name: str
    provisioner: str = ""
    waits_for_consumer: bool = False
    """Whether claims are bound only when a pod that uses them is placed."""
    allowed_topologies: tuple[Topology, ...] = ()
    """The nodes for which volumes can be made, as any of these; empty: all."""


class CSINode(msgspec.Struct, frozen=True, kw_only=True):
    """The drivers on a node."""

    name: str
    limits: Mapping[str, int]
    """How many volumes of a driver can be attached; a driver that is missing has no limit."""


class CSIDriver(msgspec.Struct, frozen=True, kw_only=True):
    """A driver."""

    name: str
    reports_capacity: bool = False
    """Whether volumes are provisioned only where a `CSIStorageCapacity` has enough capacity."""


class CSIStorageCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """A driver's capacity for volumes of a class on some nodes."""

    namespace: str
    name: str
    class_name: str = ""
    size_max: int | None = None
    """The largest size of one volume, or None if unknown, so that no volume is promised capacity."""
    nodes: LabelSelector | None = None
    """None: no node."""


class VolumeAttachment(msgspec.Struct, frozen=True, kw_only=True):
    """A volume that is attached to a node, or is to be."""

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
