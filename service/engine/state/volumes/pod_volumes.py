"""The volumes of a pod: claims by name, and disks named in the pod spec itself."""

from typing import NamedTuple

from service.model.core.primitives import ObjectName
from service.model.pods.pod import Pod
from service.model.pods.volume_sources import Volume
from service.model.volumes.volume import DiskName, in_tree_disk

DiskKey = tuple[str, ...]
"""The kind and name of a disk, which are equal for all pods that use it."""


class ClaimUse(NamedTuple):
    """A claim that a pod uses."""

    key: ObjectName
    is_ephemeral: bool
    """Whether the claim was created for the pod and is named after it."""


class DiskUse(NamedTuple):
    """A disk that a pod spec names itself."""

    keys: tuple[DiskKey, ...]
    """The keys of the disk; two disks are the same if they share a key."""
    only_reads: bool
    """Whether the pod only reads; such pods may share a disk on a node."""


def claims_of(pod: Pod) -> tuple[ClaimUse, ...]:
    """Return the claims that a pod uses, without duplicates, in the order of its volumes."""
    named = iter(pod.claims)
    uses: dict[ClaimUse, None] = {}
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            uses[ClaimUse((pod.namespace, next(named)), is_ephemeral=False)] = None
        elif volume.ephemeral is not None:
            name = f"{pod.name}-{volume.name}"
            uses[ClaimUse((pod.namespace, name), is_ephemeral=True)] = None
    return tuple(uses)


def has_ephemeral(volumes: tuple[Volume, ...]) -> bool:
    """Return whether any volume is ephemeral, so that its claim is named after the pod."""
    for volume in volumes:  # noqa: SIM110 - any() with a generator takes several times as long
        if volume.ephemeral is not None:
            return True
    return False


def disks_of(pod: Pod) -> tuple[DiskUse, ...]:
    """Return the disks that a pod spec names itself."""
    uses = [_disk(volume) for volume in pod.spec.volumes]
    return tuple([use for use in uses if use is not None])


def attached_disks(pod: Pod) -> frozenset[DiskName]:
    """Return a pod's disks that count towards the limits of nodes."""
    names = [in_tree_disk(volume) for volume in pod.spec.volumes]
    return frozenset([name for name in names if name is not None])


def _disk(volume: Volume) -> DiskUse | None:
    gce, ebs = volume.gce_persistent_disk, volume.aws_elastic_block_store
    if gce is not None:
        return DiskUse((("gce", gce.pd_name),), gce.read_only)
    if ebs is not None:
        return DiskUse((("ebs", ebs.volume_id),), only_reads=False)
    if volume.iscsi is not None:
        return DiskUse((("iscsi", volume.iscsi.iqn),), volume.iscsi.read_only)
    if volume.rbd is not None:
        rbd = volume.rbd
        monitors = dict.fromkeys(rbd.monitors)
        keys = tuple(("rbd", monitor, rbd.pool, rbd.image) for monitor in monitors)
        return DiskUse(keys, rbd.read_only)
    return None
