"""The pools of devices that a node reaches, as Kubernetes' scheduler gathers them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from service.model.objects.devices import Device, DeviceID, ResourceSlice

PoolID = tuple[str, str]
"""Driver and name of a pool."""


class OfferedDevice(NamedTuple):
    """A device of a pool, with the slice that says who reaches it."""

    id: DeviceID
    device: Device
    slice: ResourceSlice


class DevicePool(NamedTuple):
    """What one node reaches of a pool."""

    id: PoolID
    devices: tuple[OfferedDevice, ...] = ()
    """The devices in the order of the slices' names; none if the pool can't be used."""
    is_incomplete: bool = False
    """Slices are missing."""
    is_invalid: bool = False
    """Two devices have one name."""


def gather_pool(
    reached: Iterable[ResourceSlice], others: Sequence[ResourceSlice]
) -> DevicePool | None:
    """Make what a node reaches of one pool: `reached` are its slices there, `others` all of the pool.

    Only the newest generation counts. A pool of which there is a newer one that the node does not
    reach is being replaced, so it is left out. Returns None for it.
    """
    slices = sorted(reached, key=lambda each: each.name)
    generation = max(resource_slice.generation for resource_slice in slices)
    slices = [
        resource_slice for resource_slice in slices if resource_slice.generation == generation
    ]
    pool_id, count = slices[0].pool_id, slices[0].slice_count
    if len(slices) != count:
        if any(each.generation > generation for each in others):
            return None
        if sum(each.generation == generation for each in others) != count:
            return DevicePool(pool_id, is_incomplete=True)
    offered = tuple(
        [
            OfferedDevice(DeviceID(*pool_id, device.name), device, resource_slice)
            for resource_slice in slices
            for device in resource_slice.devices
        ]
    )
    if len({each.id for each in offered}) != len(offered):
        return DevicePool(pool_id, is_invalid=True)
    return DevicePool(pool_id, offered)
