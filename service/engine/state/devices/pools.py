"""The device pools that a node can access, gathered as in Kubernetes' scheduler."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from service.model.devices.device import Device, DeviceID, ResourceSlice

PoolID = tuple[str, str]
"""The driver and name of a pool."""


class AccessibleSlice(NamedTuple):
    """A slice, with the devices of it that one node can access."""

    slice: ResourceSlice
    devices: tuple[int, ...] | None = None
    """The positions of the devices, or None for all devices."""

    @property
    def accessible(self) -> Sequence[Device]:
        """The devices that the node can access, in the order of the slice."""
        if self.devices is None:
            return self.slice.devices
        return [self.slice.devices[position] for position in self.devices]


class OfferedDevice(NamedTuple):
    """A device of a pool, with the slice that holds it."""

    id: DeviceID
    device: Device
    slice: ResourceSlice

    @property
    def owner(self) -> Device | ResourceSlice:
        """The device or the slice, whichever states which nodes can access the device."""
        return self.device if self.slice.selects_per_device else self.slice


class DevicePool(NamedTuple):
    """The part of a pool that one node can access."""

    id: PoolID
    devices: tuple[OfferedDevice, ...] = ()
    """The devices, ordered by slice name; empty if the pool cannot be used."""
    is_incomplete: bool = False
    """Whether slices are missing."""
    is_invalid: bool = False
    """Whether two devices have the same name."""


def gather_pool(
    reached: Iterable[AccessibleSlice], others: Sequence[ResourceSlice]
) -> DevicePool | None:
    """Return the part of a pool that a node can access, or None if the pool is being replaced.

    Only the newest generation counts. A pool is being replaced if it has a newer generation that
    the node cannot access.

    Args:
        reached: the slices of the pool that the node reaches.
        others: all slices of the pool.
    """
    slices = sorted(reached, key=lambda access: access.slice.name)
    generation = max(access.slice.generation for access in slices)
    slices = [access for access in slices if access.slice.generation == generation]
    pool_id, count = slices[0].slice.pool_id, slices[0].slice.slice_count
    if len(slices) != count:
        if any(resource_slice.generation > generation for resource_slice in others):
            return None
        if sum(resource_slice.generation == generation for resource_slice in others) != count:
            return DevicePool(pool_id, is_incomplete=True)
    names = [device.name for access in slices for device in access.slice.devices]
    if len(set(names)) != len(names):
        return DevicePool(pool_id, is_invalid=True)
    offered = [
        OfferedDevice(DeviceID(*pool_id, device.name), device, access.slice)
        for access in slices
        for device in access.accessible
    ]
    return DevicePool(pool_id, tuple(offered))
