"""The sources of pod volumes that scheduling reads."""

import msgspec

from service.model.core.primitives import (
    Value,
)


class PersistentVolumeClaimVolumeSource(Value, frozen=True, kw_only=True):
    """A claim in the pod's namespace."""

    claim_name: str
    """Name of the claim."""


class EphemeralVolumeSource(Value, frozen=True, kw_only=True):
    """A volume whose claim is made for the pod and named after it."""


class GCEPersistentDiskVolumeSource(Value, frozen=True, kw_only=True):
    """A disk of Google's cloud."""

    pd_name: str
    """Name of the disk."""
    read_only: bool = False
    """Whether it is only read, so that pods on one node may share it."""


class AWSElasticBlockStoreVolumeSource(Value, frozen=True, kw_only=True):
    """A disk of Amazon's cloud."""

    volume_id: str = msgspec.field(name="volumeID")
    """Name of the disk."""
    read_only: bool = False
    """Whether it is only read, so that pods on one node may share it."""


class AzureDiskVolumeSource(Value, frozen=True, kw_only=True):
    """A disk of Microsoft's cloud."""

    disk_uri: str = msgspec.field(name="diskURI")
    """Address of the disk."""
    kind: str = "Shared"
    """Shared or Dedicated, for a blob disk of an account, or Managed."""


class CinderVolumeSource(Value, frozen=True, kw_only=True):
    """A disk of OpenStack."""

    volume_id: str = msgspec.field(name="volumeID")
    """Name of the disk."""


class PortworxVolumeSource(Value, frozen=True, kw_only=True):
    """A volume of Portworx."""

    volume_id: str = msgspec.field(name="volumeID")
    """Name of the volume."""


class ISCSIVolumeSource(Value, frozen=True, kw_only=True):
    """A disk in the network, by iSCSI."""

    iqn: str
    """Name of the target."""
    read_only: bool = False
    """Whether it is only read, so that pods on one node may share it."""


class RBDVolumeSource(Value, frozen=True, kw_only=True):
    """An image in a Ceph cluster."""

    monitors: tuple[str, ...]
    """Addresses of the cluster's monitors."""
    image: str
    """Name of the image."""
    pool: str = "rbd"
    """Name of the pool that it is in."""
    read_only: bool = False
    """Whether it is only read, so that pods on one node may share it."""


class ImageVolumeSource(Value, frozen=True, kw_only=True):
    """An image whose files a pod mounts."""

    reference: str = ""
    """Name of the image; a node that already holds it scores higher from Kubernetes 1.36 on."""


class Volume(Value, frozen=True, kw_only=True):
    """A volume of a pod, with one source; of sources that are not named here scheduling reads nothing."""

    name: str = ""
    """Name of the volume."""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    """A claim to a volume that lasts longer than the pod."""
    ephemeral: EphemeralVolumeSource | None = None
    """A volume whose claim is made for the pod and named after both."""
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    """A disk of Google's cloud."""
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    """A disk of Amazon's cloud."""
    azure_disk: AzureDiskVolumeSource | None = None
    """A disk of Microsoft's cloud."""
    cinder: CinderVolumeSource | None = None
    """A disk of OpenStack."""
    portworx_volume: PortworxVolumeSource | None = None
    """A volume of Portworx."""
    iscsi: ISCSIVolumeSource | None = None
    """A disk in the network, by iSCSI."""
    rbd: RBDVolumeSource | None = None
    """An image in a Ceph cluster."""
    image: ImageVolumeSource | None = None
    """An image whose files the pod mounts."""
