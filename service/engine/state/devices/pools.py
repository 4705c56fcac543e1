"""The device pools that a node can access, gathered as in Kubernetes' scheduler."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from service.model.devices.device import Device, DeviceID, ResourceSlice

PoolID = tuple[str, str]
"""The driver and name of a pool."""


class OfferedDevice(NamedTuple):
    """A device of a pool, with the slice that determines which nodes can access it."""

    id: DeviceID
    device: Device
    slice: ResourceSlice


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
    reached: Iterable[ResourceSlice], others: Sequence[ResourceSlice]
) -> DevicePool | None:
    """Return the part of a pool that a node can access, or None if the pool is being replaced.

    Only the newest generation counts. A pool is being replaced if it has a newer generation that
    the node cannot access.

    Args:
        reached: the slices of the pool that the node reaches.
        others: all slices of the pool.
    """
    slices = sorted(reached, key=lambda resource_slice: resource_slice.name)
    generation = max(resource_slice.generation for resource_slice in slices)
    slices = [
        resource_slice for resource_slice in slices if resource_slice.generation == generation
    ]
    pool_id, count = slices[0].pool_id, slices[0].slice_count
    if len(slices) != count:
        if any(resource_slice.generation > generation for resource_slice in others):
            return None
        if sum(resource_slice.generation == generation for resource_slice in others) != count:
            return DevicePool(pool_id, is_incomplete=True)
    offered = tuple(
        [
            OfferedDevice(DeviceID(*pool_id, device.name), device, resource_slice)
            for resource_slice in slices
            for device in resource_slice.devices
        ]
    )
    if len({resource_slice.id for resource_slice in offered}) != len(offered):
        return DevicePool(pool_id, is_invalid=True)
    return DevicePool(pool_id, offered)
