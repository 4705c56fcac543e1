"""The device pools that a node can access, gathered as in Kubernetes' scheduler."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from service.model.devices.device import (
    Amounts,
    CounterKey,
    Device,
    DeviceID,
    ResourceSlice,
)

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


class SharedCounters(NamedTuple):
    """The counters that the devices of a pool share."""

    held: Mapping[CounterKey, int]
    """What there is of each counter, in nano-units."""
    consumers: Mapping[DeviceID, Amounts]
    """What each device takes, whether or not the node can access it; others take nothing."""

    def left(self, in_use: Collection[DeviceID]) -> dict[CounterKey, int]:
        """Return what devices in use have left of each counter; negative if they take too much."""
        left = dict(self.held)
        for device, amounts in self.consumers.items():
            if device in in_use:
                for key, amount in amounts:
                    left[key] -= amount
        return left


NO_COUNTERS = SharedCounters({}, {})


class DevicePool(NamedTuple):
    """The part of a pool that one node can access."""

    id: PoolID
    devices: tuple[OfferedDevice, ...] = ()
    """The devices, ordered by slice name; empty if the pool cannot be used."""
    is_incomplete: bool = False
    """Whether slices are missing."""
    is_invalid: bool = False
    """Whether two devices or sets of counters have the same name, or a counter does not exist."""
    counters: SharedCounters = NO_COUNTERS
    has_conditions: bool = False
    """Whether a device of the slices that the node reaches has binding conditions."""


def gather_pool(
    reached: Iterable[AccessibleSlice], others: Sequence[ResourceSlice], *, counts: bool
) -> DevicePool | None:
    """Return the part of a pool that a node can access, or None if the pool is being replaced.

    Only the newest generation counts. A pool is being replaced if it has a newer generation that
    the node cannot access.

    Args:
        reached: the slices of the pool that the node reaches.
        others: all slices of the pool.
        counts: whether devices may take from counters.
    """
    slices = sorted(reached, key=lambda access: access.slice.name)
    generation = max(access.slice.generation for access in slices)
    slices = [access for access in slices if access.slice.generation == generation]
    pool_id, count = slices[0].slice.pool_id, slices[0].slice.slice_count
    whole = [access.slice for access in slices]
    if len(slices) != count:
        if any(resource_slice.generation > generation for resource_slice in others):
            return None
        whole = [
            resource_slice for resource_slice in others if resource_slice.generation == generation
        ]
        if len(whole) != count:
            return DevicePool(pool_id, is_incomplete=True)
    slices = [access for access in slices if not access.slice.counter_sets]
    names = [device.name for access in slices for device in access.slice.devices]
    counters = _shared_counters(pool_id, whole) if counts else NO_COUNTERS
    if counters is None or len(set(names)) != len(names):
        return DevicePool(pool_id, is_invalid=True)
    offered = [
        OfferedDevice(DeviceID(*pool_id, device.name), device, access.slice)
        for access in slices
        for device in access.accessible
    ]
    has_conditions = any(
        device.has_conditions for access in slices for device in access.slice.devices
    )
    return DevicePool(pool_id, tuple(offered), counters=counters, has_conditions=has_conditions)


def _shared_counters(pool_id: PoolID, slices: Iterable[ResourceSlice]) -> SharedCounters | None:
    """Return the counters of a pool, or None if a set is not unique, or a counter is missing."""
    held, consumers = dict[CounterKey, int](), dict[DeviceID, Amounts]()
    sets, named = list[str](), set[str]()
    for resource_slice in slices:
        held.update(resource_slice.counters)
        sets += resource_slice.counter_sets
        for device in () if resource_slice.counter_sets else resource_slice.devices:
            named.update(device.counter_sets)
            if device.consumes:
                consumers[DeviceID(*pool_id, device.name)] = device.consumes
    taken = {key for amounts in consumers.values() for key, _ in amounts}
    if len(set(sets)) != len(sets) or not named <= set(sets) or not taken <= held.keys():
        return None
    return SharedCounters(held, consumers)
