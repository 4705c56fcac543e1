"""The volumes of a cluster, the claims to them, and their use by placed pods."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from typing_extensions import override

from service.engine.state.nodes.node_sets import NodeSet, NodeSets
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.volumes.disks import DiskUsers
from service.engine.state.volumes.installed_drivers import InstalledDrivers
from service.engine.state.volumes.limits import VolumeLimits, VolumeUser
from service.engine.state.volumes.pod_volumes import attached_disks, claims_of, disks_of
from service.model.core.primitives import ObjectName
from service.model.pods.pod import Pod
from service.model.volumes.volume import (
    DRIVERS_OF_PROVISIONERS,
    NO_PROVISIONER,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    DiskName,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
    VolumeObject,
)

Sized = tuple[int, str]
"""The capacity and name of a volume, so that smaller ones sort first."""
Accessible = tuple[CSIStorageCapacity, NodeSet]
"""A storage capacity, and the nodes that can use it."""
K = TypeVar("K")
M = TypeVar("M")
V = TypeVar("V")


class VolumeTable:
    """A cluster's volume objects by name, and data derived from them and from placed pods.

    The cluster adds and removes objects, and undoes these changes.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self.nodes = nodes
        self.version = 0
        """Incremented whenever an object is added, replaced, or removed."""
        self.claims: dict[ObjectName, PersistentVolumeClaim] = {}
        self.volumes: dict[str, PersistentVolume] = {}
        self.classes: dict[str, StorageClass] = {}
        self.drivers: dict[str, CSIDriver] = {}
        self.required_drivers: set[str] = set()
        """The drivers that pods with their volumes need on their nodes."""
        self._csi_nodes: dict[str, CSINode] = {}
        self._capacities: dict[ObjectName, CSIStorageCapacity] = {}
        self._capacities_of: dict[str, dict[ObjectName, CSIStorageCapacity]] = {}
        """The capacities of each storage class, by namespace and name."""
        self._unsorted: set[str] = set()
        """The storage classes whose capacities are not ordered by name."""
        self._attachments: dict[str, VolumeAttachment] = {}
        self._attachments_of: dict[str, dict[str, VolumeAttachment]] = {}
        """The attachments of each volume, by volume name."""
        self._affinities: dict[str, bytes] = {}
        """The encoded node affinity of each volume, for comparison."""
        self._free: dict[str, list[Sized]] = {}
        """The available, unreserved, and unbound volumes of each class, smallest first."""
        self._reserved_for: dict[ObjectName, dict[str, None]] = {}
        """The volumes that name each claim in their claimRef."""
        self._bound_to: dict[str, dict[ObjectName, None]] = {}
        """The claims that name each volume."""
        self._users: dict[ObjectName, dict[PodVolumes, None]] = {}
        """The placed pods that use each claim."""
        self.disks = DiskUsers()
        self.limits = VolumeLimits(nodes)
        self.installed = InstalledDrivers(nodes)
        self.sets = NodeSets(nodes)

    # Pods

    def count(self, volumes: "PodVolumes", slot: int, pods: int) -> None:
        """Record pods with these volumes added to a node (`pods` = 1) or removed (`pods` = -1)."""
        after = volumes.nodes.get(slot, 0) + pods
        if after:
            volumes.nodes[slot] = after
        else:
            del volumes.nodes[slot]
        self.disks.count(volumes.disks, slot, pods)
        self.limits.count(volumes, slot, pods)
        for use in volumes.claims:
            if volumes.nodes:
                self._users.setdefault(use.key, {})[volumes] = None
            else:
                _discard(self._users, use.key, volumes)

    def is_in_use(self, key: ObjectName) -> bool:
        """Return whether a placed pod uses a claim, other than for an ephemeral volume."""
        return any(
            use.key == key and not use.is_ephemeral
            for volumes in self._users.get(key, ())
            for use in volumes.claims
        )

    def used_on(self, key: ObjectName) -> set[int]:
        """Return the nodes on which placed pods use a claim."""
        return {slot for volumes in self._users.get(key, ()) for slot in volumes.nodes}

    def disk_of(self, claim: PersistentVolumeClaim) -> DiskName | None:
        """Return the volume that a claim counts as towards limits, or None.

        An unbound claim counts as the volume that its class would provision.
        """
        volume = self.volumes.get(claim.volume_name)
        if volume is not None:
            return volume.disk
        storage_class = self.classes.get(claim.class_name)
        if storage_class is None or not storage_class.provisioner:
            return None
        made_by = storage_class.provisioner
        driver = DRIVERS_OF_PROVISIONERS.get(made_by, made_by)
        return DiskName(driver, f"{claim.namespace}/{claim.name}")

    def is_in_tree(self, claim: PersistentVolumeClaim) -> bool:
        """Return whether a claim's volume is an in-tree disk, or would be if it is unbound."""
        volume = self.volumes.get(claim.volume_name)
        if volume is not None:
            return volume.handle is None
        storage_class = self.classes.get(claim.class_name)
        return storage_class is not None and storage_class.provisioner in DRIVERS_OF_PROVISIONERS

    # Matching

    def nodes_of(self, volume: PersistentVolume) -> NodeSet | None:
        """Return the nodes on which a volume can be used, or None for all."""
        if volume.affinity is None:
            return None
        return self.sets.of_affinity(volume.affinity, self._affinities[volume.name])

    def zones_of(self, volume: PersistentVolume) -> NodeSet | None:
        """Return the nodes in a volume's zones, or None for all."""
        return self.sets.of_zones(volume.zones) if volume.zones else None

    def reserved_for(self, claim: PersistentVolumeClaim) -> Iterator[PersistentVolume]:
        """Yield the volumes reserved for a claim, ordered by name."""
        for name in sorted(self._reserved_for.get(claim.key, ())):
            volume = self.volumes[name]
            if volume.claim is not None and volume.claim.names(claim):
                yield volume

    def free(self, class_name: str, size: int) -> Iterator[PersistentVolume]:
        """Yield the unreserved volumes of a class with at least this size, smallest first."""
        free = self._free.get(class_name, [])
        for index in range(bisect_left(free, (size, "")), len(free)):
            yield self.volumes[free[index][1]]

    def provisioning_class(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        """Return the class that can provision a volume for a claim, or None."""
        storage_class = self.classes.get(claim.class_name)
        if storage_class is None or storage_class.provisioner in NO_PROVISIONER:
            return None
        return storage_class

    def reports_capacity(self, storage_class: StorageClass) -> bool:
        """Return whether a class's volumes are provisioned only where capacity is reported."""
        driver = self.drivers.get(storage_class.provisioner)
        return driver is not None and driver.reports_capacity

    def capacities(self, storage_class: StorageClass, size: int) -> Iterator[Accessible]:
        """Yield the capacities from which a volume of a size can be provisioned, ordered by name.

        Their nodes may overlap.
        """
        if storage_class.name in self._unsorted:
            self._unsorted.discard(storage_class.name)
            by_name = sorted(self._capacities_of.pop(storage_class.name, {}).items())
            if by_name:
                self._capacities_of[storage_class.name] = dict(by_name)
        for capacity in self._capacities_of.get(storage_class.name, {}).values():
            if (
                capacity.size_max is not None
                and capacity.size_max >= size
                and capacity.nodes is not None
            ):
                yield capacity, self.sets.of_selector(capacity.nodes)

    # Objects

    def put(self, new: VolumeObject) -> None:
        """Add or replace an object."""
        self.version += 1
        match new:
            case PersistentVolumeClaim():
                self._swap_claim(new.key, new)
            case PersistentVolume():
                self._swap_volume(new.name, new)
            case StorageClass():
                self.classes[new.name] = new
                self.limits.touch_all()
            case CSINode():
                self._swap_csi_node(new.name, new)
            case CSIDriver():
                self._swap_driver(new.name, new)
            case CSIStorageCapacity():
                self._swap_capacity((new.namespace, new.name), new)
            case VolumeAttachment():
                self._swap_attachment(new.name, new)

    def remove(self, old: VolumeObject) -> None:
        """Remove an existing object."""
        self.version += 1
        match old:
            case PersistentVolumeClaim():
                self._swap_claim(old.key, None)
            case PersistentVolume():
                self._swap_volume(old.name, None)
            case StorageClass():
                del self.classes[old.name]
                self.limits.touch_all()
            case CSINode():
                self._swap_csi_node(old.name, None)
            case CSIDriver():
                self._swap_driver(old.name, None)
            case CSIStorageCapacity():
                self._swap_capacity((old.namespace, old.name), None)
            case VolumeAttachment():
                self._swap_attachment(old.name, None)

    def _swap_claim(self, key: ObjectName, new: PersistentVolumeClaim | None) -> None:
        named = self._volumes_named_by(self.claims.get(key), new)
        for volume in named:
            self._unlist(volume)
        old = _swap(self.claims, key, new)
        if old is not None and old.volume_name:
            _discard(self._bound_to, old.volume_name, key)
        if new is not None and new.volume_name:
            self._bound_to.setdefault(new.volume_name, {})[key] = None
        for volume in named:
            self._list(volume)
        self._touch_users(key)

    def _volumes_named_by(self, *claims: PersistentVolumeClaim | None) -> list[PersistentVolume]:
        names = {claim.volume_name: None for claim in claims if claim is not None}
        return [self.volumes[name] for name in names if name in self.volumes]

    def _swap_volume(self, name: str, new: PersistentVolume | None) -> None:
        old = self.volumes.get(name)
        if old is not None:
            self._count_attachments(name, -1)
            self._forget_volume(old)
        _swap(self.volumes, name, new)
        if new is not None:
            self._note_volume(new)
            self._count_attachments(name, 1)
        for key in self._bound_to.get(name, ()):
            self._touch_users(key)

    def _note_volume(self, volume: PersistentVolume) -> None:
        if volume.affinity is not None:
            self._affinities[volume.name] = msgspec.json.encode(volume.affinity)
        if volume.claim is not None:
            key = (volume.claim.namespace, volume.claim.name)
            self._reserved_for.setdefault(key, {})[volume.name] = None
        self._list(volume)

    def _forget_volume(self, volume: PersistentVolume) -> None:
        self._affinities.pop(volume.name, None)
        if volume.claim is not None:
            _discard(self._reserved_for, (volume.claim.namespace, volume.claim.name), volume.name)
        self._unlist(volume)

    def _list(self, volume: PersistentVolume) -> None:
        """Add a volume to the list of free volumes, if it is free."""
        if self._is_free(volume):
            free = self._free.setdefault(volume.class_name, [])
            insort(free, (volume.capacity, volume.name))

    def _unlist(self, volume: PersistentVolume) -> None:
        """Remove a volume from the list of free volumes, if it is free."""
        if self._is_free(volume):
            free = self._free[volume.class_name]
            del free[bisect_left(free, (volume.capacity, volume.name))]
            if not free:
                del self._free[volume.class_name]

    def _is_free(self, volume: PersistentVolume) -> bool:
        """Return whether a volume is available and neither reserved nor bound."""
        if volume.claim is not None or volume.terminating or not volume.is_available:
            return False
        claims = self._bound_to.get(volume.name, ())
        return not any(self.claims[key].is_bound for key in claims)

    def _swap_csi_node(self, name: str, new: CSINode | None) -> None:
        old = _swap(self._csi_nodes, name, new)
        if old is not None:
            self.installed.remove(old)
        if new is not None:
            self.installed.add(new)
        self.limits.limit(name, None if new is None else dict(new.limits))

    def _swap_driver(self, name: str, new: CSIDriver | None) -> None:
        _swap(self.drivers, name, new)
        if new is not None and new.is_required:
            self.required_drivers.add(name)
        else:
            self.required_drivers.discard(name)

    def _swap_capacity(self, key: ObjectName, new: CSIStorageCapacity | None) -> None:
        old = _swap(self._capacities, key, new)
        if old is not None and new is not None and old.class_name == new.class_name:
            self._capacities_of[new.class_name][key] = new
            return
        if old is not None:
            _discard(self._capacities_of, old.class_name, key)
        if new is not None:
            self._capacities_of.setdefault(new.class_name, {})[key] = new
            self._unsorted.add(new.class_name)

    def _swap_attachment(self, name: str, new: VolumeAttachment | None) -> None:
        old = _swap(self._attachments, name, new)
        if old is not None:
            self._count_attachment(old, -1)
            _discard(self._attachments_of, old.volume_name, name)
        if new is not None:
            self._attachments_of.setdefault(new.volume_name, {})[name] = new
            self._count_attachment(new, 1)

    def _count_attachments(self, volume_name: str, times: int) -> None:
        for attachment in self._attachments_of.get(volume_name, {}).values():
            self._count_attachment(attachment, times)

    def _count_attachment(self, attachment: VolumeAttachment, times: int) -> None:
        """Count an attachment, if its volume exists and has a CSI driver."""
        volume = self.volumes.get(attachment.volume_name)
        if volume is not None and volume.handle is not None:
            disk = DiskName(attachment.attacher, volume.handle)
            self.limits.attach(attachment.node_name, disk, times)

    def _touch_users(self, key: ObjectName) -> None:
        for volumes in self._users.get(key, ()):
            self.limits.touch(volumes.nodes)

    # Digests and recounts

    def objects(self) -> Iterator[VolumeObject]:
        """Yield all objects by kind, ordered by name."""
        kinds: tuple[Mapping[Any, VolumeObject], ...] = (
            self.claims,
            self.volumes,
            self.classes,
            self._csi_nodes,
            self.drivers,
            self._capacities,
            self._attachments,
        )
        for known in kinds:
            for key in sorted(known):
                yield known[key]

    def users(self) -> Iterator[tuple[ObjectName, Counter[int]]]:
        """Yield each claim that placed pods use, with the number of such pods by slot."""
        for key, users in self._users.items():
            total: Counter[int] = Counter()
            for volumes in users:
                total.update(volumes.nodes)
            yield key, total


class PodVolumes(VolumeUser):
    """The volumes of a class's pods, in the form that scheduling reads."""

    __slots__ = ("_attached", "claims", "disks", "nodes", "pod_name", "pod_uid", "table")

    def __init__(self, pod: Pod, table: VolumeTable) -> None:
        self.table = table
        self.claims = claims_of(pod)
        """The claims without duplicates, in the order of the pod's volumes."""
        self.disks = disks_of(pod)
        """The disks that the pod spec names itself."""
        self._attached = attached_disks(pod)
        self.pod_name = f"{pod.namespace}/{pod.name}"
        self.pod_uid = pod.uid
        """The name and uid apply to all pods of the class if one of the claims is ephemeral."""
        self.nodes: dict[int, int] = {}
        """The number of placed pods with these volumes, by slot."""

    @override
    def attached(self) -> set[DiskName]:
        attached = set(self._attached)
        for claim in self.known_claims():
            disk = self.table.disk_of(claim)
            if disk is not None:
                attached.add(disk)
        return attached

    def known_claims(self) -> list[PersistentVolumeClaim]:
        """Return the pods' claims that exist."""
        known = self.table.claims
        return [known[use.key] for use in self.claims if use.key in known]

    def unbound_claims(self) -> list[PersistentVolumeClaim]:
        """Return the existing claims without a volume, in the order of the pod's volumes."""
        return [claim for claim in self.known_claims() if not claim.is_bound]

    def needed_drivers(self) -> tuple[list[str], list[str]]:
        """Return the drivers of the volumes that nodes must have: of CSI volumes, of in-tree disks.

        An in-tree disk needs the driver that replaced its plugin, on nodes with a CSINode.
        """
        required = self.table.required_drivers
        if not required:
            return [], []
        replacing = {disk.driver for disk in self._attached}
        own: set[str] = set()
        for claim in self.known_claims():
            disk = self.table.disk_of(claim)
            if disk is not None:
                (replacing if self.table.is_in_tree(claim) else own).add(disk.driver)
        return sorted(own & required), sorted(replacing & required)

    def non_ephemeral_claims(self) -> list[PersistentVolumeClaim]:
        """Return the existing claims that were not created for ephemeral volumes."""
        known = self.table.claims
        return [known[u.key] for u in self.claims if not u.is_ephemeral and u.key in known]


def _swap(objects: dict[K, V], key: K, new: V | None) -> V | None:
    """Set the object of a key, or remove it if None, and return the previous one, or None."""
    old = objects.pop(key, None)
    if new is not None:
        objects[key] = new
    return old


def _discard(index: dict[K, dict[M, V]], key: K, member: M) -> None:
    members = index.get(key)
    if members is None:
        return
    members.pop(member, None)
    if not members:
        del index[key]
