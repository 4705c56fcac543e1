"""The devices of a cluster, the claims to them, and the devices in use."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from service.engine.state.devices.pools import AccessibleSlice, DevicePool, PoolID, gather_pool
from service.engine.state.devices.search import (
    UNANSWERED,
    DeviceSearch,
    NoAllocation,
    WantedClaim,
)
from service.engine.state.nodes.columns import Ints, Mask
from service.engine.state.nodes.node_sets import NodeSet, NodeSets
from service.engine.state.nodes.node_table import NodeTable
from service.model.cluster.versions.version import SchedulerVersion
from service.model.core.primitives import NodeSelector, ObjectName
from service.model.devices.cel_questions import OpenQuestions
from service.model.devices.device import (
    Device,
    DeviceClaimSpec,
    DeviceClass,
    DeviceID,
    DeviceObject,
    Grant,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)

VERDICTS_MAX = 64
"""The maximum number of distinct sets of claims with cached verdicts; the least recently used is
dropped."""
VERDICTS_BYTES, REASON_BYTES = 1_024, 224
"""The approximate sizes in bytes of a set of verdicts, and of each reason in it."""
TOUCHED_MAX = 4_096
"""The number of changes of single nodes after which all nodes are evaluated again."""
SliceAccess = tuple[str, tuple[int, ...] | None]
"""The name of a ResourceSlice, and the positions of the accessible devices, or None for all."""
Accesses = tuple[SliceAccess, ...]
"""What a node can access, sorted by name of the slice; equal for nodes with the same devices."""
K = TypeVar("K")
V = TypeVar("V")
N = TypeVar("N", bound=np.generic)


class NodeVerdicts:
    """Whether and how well each node can satisfy a set of claims, updated as the nodes change."""

    __slots__ = ("failing", "position", "preference", "reasons", "turn", "unanswered", "users")

    def __init__(self) -> None:
        self.users: dict[object, None] = {}
        """The classes that requested the verdicts and still exist."""
        self.failing: Mask = np.zeros(0, dtype=np.bool_)
        """The nodes that cannot satisfy the claims, shape (nodes,)."""
        self.preference: Ints = np.zeros(0, dtype=np.int64)
        """How preferred the alternatives are that each node can satisfy, shape (nodes,), int64; 0
        for failing nodes."""
        self.reasons: dict[int, str] = {}
        """The reason for each failing node, by slot."""
        self.position = -1
        """The number of logged changes at the last evaluation of the nodes, or -1 before the first.
        """
        self.turn = -1
        """The number of the decision that last evaluated the nodes."""
        self.unanswered: set[int] = set()
        """The slots with selectors that are still being evaluated."""


class _Verdict(NamedTuple):
    """Whether and how well a set of claims can be satisfied."""

    reason: str | None
    """Why not, or None if it can."""
    preference: int = 0


class DeviceTable:
    """The device objects of a cluster by name, and data derived from them.

    Devices in use are derived from the allocated claims. The cluster adds and removes objects, and
    undoes these changes.
    """

    def __init__(self, nodes: NodeTable, steps_max: int, version: SchedulerVersion) -> None:
        self.nodes = nodes
        self._steps_max = steps_max
        self.version = version
        self.questions = OpenQuestions()
        """The selector evaluations that are still open."""
        self.claims: dict[ObjectName, ResourceClaim] = {}
        self.classes: dict[str, DeviceClass] = {}
        self.templates: dict[ObjectName, ResourceClaimTemplate] = {}
        self._slices: dict[str, ResourceSlice] = {}
        self._by_node: dict[str, dict[str, None]] = {}
        """The slices that only one node can access, by node name."""
        self._wide: dict[str, None] = {}
        """The slices that several nodes may be able to access."""
        self._by_pool: dict[PoolID, dict[str, None]] = {}
        self.in_use: dict[DeviceID, int] = {}
        """The number of claims that each device is allocated to; it exceeds one only if a client
        reports so."""
        self.sets = NodeSets(nodes)
        self._reached: dict[int, Accesses] = {}
        """The slices and devices that each node can access, by slot, computed on demand."""
        self._pools: dict[Accesses, tuple[DevicePool, ...]] = {}
        """The pools of each set of accessible slices."""
        self._troubled: dict[PoolID, DevicePool] = {}
        """The incomplete or invalid pools that all nodes see because of their sets of counters."""
        self._touched: list[int] = []
        """The slots whose verdicts may have changed, oldest first."""
        self._forgotten = 0
        """The number of entries dropped from the start of `_touched`."""
        self._verdicts: OrderedDict[tuple[DeviceClaimSpec, ...], NodeVerdicts] = OrderedDict()
        self._asked: dict[object, dict[tuple[DeviceClaimSpec, ...], None]] = {}
        """The sets of claims whose verdicts each user requested."""

    # Allocation

    def nodes_of(self, selector: NodeSelector) -> NodeSet:
        """Return the nodes on which a claim's devices can be used."""
        return self.sets.of_affinity(selector, msgspec.json.encode(selector))

    def verdicts(self, wanted: tuple[WantedClaim, ...], user: object) -> NodeVerdicts:
        """Return the verdicts on where claims can be allocated; their device classes must exist.

        Verdicts are cached until all their users are released (`release_user`) or they are the
        least recently used. Since claims with equal specs share verdicts, reasons contain
        placeholders for the names of claims (`with_placeholders`).
        """
        key = tuple([claim.spec for claim in wanted])
        verdicts = self._verdicts.get(key)
        if verdicts is None:
            verdicts = self._verdicts[key] = NodeVerdicts()
            if len(self._verdicts) > VERDICTS_MAX:
                self._verdicts.popitem(last=False)
        else:
            self._verdicts.move_to_end(key)
        if user not in verdicts.users:
            verdicts.users[user] = None
            self._asked.setdefault(user, {})[key] = None
        self._refresh(verdicts, with_placeholders(wanted))
        return verdicts

    def sizes(self) -> Iterator[int]:
        """Yield the approximate size in bytes of each set of verdicts."""
        for verdict in self._verdicts.values():
            arrays = int(verdict.failing.nbytes + verdict.preference.nbytes)
            yield VERDICTS_BYTES + arrays + REASON_BYTES * len(verdict.reasons)

    def release_user(self, user: object) -> None:
        """Release a user's verdicts, and drop those that no other user has requested."""
        for key in self._asked.pop(user, ()):
            verdicts = self._verdicts.get(key)
            if verdicts is not None:
                verdicts.users.pop(user, None)
                if not verdicts.users:
                    del self._verdicts[key]

    def find(self, wanted: tuple[WantedClaim, ...], slot: int) -> list[tuple[Grant, ...]]:
        """Return the devices to allocate to each claim on a node, in the order of the claims.

        Raises:
            NoAllocation: not all claims can be satisfied.
        """
        node = self.nodes.nodes[slot]
        assert node is not None
        allocations = self._search(wanted, self._pools_of(self._reached_at(slot)))
        return [tuple([grant.on(node.name) for grant in grants]) for grants in allocations]

    def _refresh(self, verdicts: NodeVerdicts, wanted: tuple[WantedClaim, ...]) -> None:
        slots = self._changed_since(verdicts.position)
        if verdicts.unanswered and verdicts.turn != self.questions.turn:
            again = [slot for slot in verdicts.unanswered if slot < self.nodes.size]
            slots = list(dict.fromkeys([*slots, *again]))
            verdicts.unanswered.clear()
        verdicts.turn = self.questions.turn
        verdicts.position = self._forgotten + len(self._touched)
        size = self.nodes.size
        if len(verdicts.failing) != size or slots:
            # Callers may still hold the previous arrays.
            verdicts.failing = _resized(verdicts.failing, size)
            verdicts.preference = _resized(verdicts.preference, size)
        known: dict[Accesses, _Verdict] = {}
        for slot in slots:
            reason, preference = None, 0
            if self.nodes.nodes[slot] is not None:
                reached = self._reached_at(slot)
                if reached not in known:
                    known[reached] = self._verdict(wanted, self._pools_of(reached))
                reason, preference = known[reached]
            if reason == UNANSWERED:
                verdicts.unanswered.add(slot)
            verdicts.failing[slot] = reason is not None
            verdicts.preference[slot] = preference
            if reason is None:
                verdicts.reasons.pop(slot, None)
            else:
                verdicts.reasons[slot] = reason

    def _changed_since(self, position: int) -> Sequence[int]:
        start = position - self._forgotten
        if position >= 0 and start >= 0:
            return list(dict.fromkeys(self._touched[start:]))
        return range(self.nodes.size)

    def _verdict(self, wanted: tuple[WantedClaim, ...], pools: tuple[DevicePool, ...]) -> _Verdict:
        try:
            allocations = self._search(wanted, pools)
        except NoAllocation as refused:
            return _Verdict(str(refused))
        preferences = [
            claim.spec.preference({grant.request for grant in grants})
            for claim, grants in zip(wanted, allocations, strict=True)
        ]
        return _Verdict(None, sum(preferences))

    def _search(
        self, wanted: tuple[WantedClaim, ...], pools: tuple[DevicePool, ...]
    ) -> list[tuple[Grant, ...]]:
        return DeviceSearch(
            pools,
            wanted,
            self.classes,
            self.in_use,
            self._steps_max,
            self.questions,
            self.version,
        ).run()

    def _reached_at(self, slot: int) -> Accesses:
        """Return the slices and devices that a node can access."""
        reached = self._reached.get(slot)
        if reached is None:
            node = self.nodes.nodes[slot]
            own = self._by_node.get(node.name, ()) if node is not None else ()
            accesses = [self._access(name, slot) for name in sorted((*own, *self._wide))]
            reached = tuple([access for access in accesses if access is not None])
            self._reached[slot] = reached
        return reached

    def _pools_of(self, accesses: Accesses) -> tuple[DevicePool, ...]:
        pools = self._pools.get(accesses)
        if pools is None:
            gathered = list(self._gather(accesses))
            if self.version.awaits_devices:
                # As in Kubernetes, devices that need not be awaited come first.
                gathered.sort(key=lambda pool: (pool.has_conditions, pool.id))
            pools = self._pools[accesses] = tuple(gathered)
        return pools

    def _gather(self, accesses: Accesses) -> Iterator[DevicePool]:
        """Yield the pools of the accessible slices, ordered by driver and name, and troubled ones."""
        reached: dict[PoolID, list[AccessibleSlice]] = {}
        for name, devices in accesses:
            access = AccessibleSlice(self._slices[name], devices)
            reached.setdefault(access.slice.pool_id, []).append(access)
        for pool_id in sorted(reached):
            others = [self._slices[name] for name in self._by_pool[pool_id]]
            pool = gather_pool(reached[pool_id], others, counts=self.version.partitions_devices)
            if pool is not None:
                yield pool
        for pool_id, pool in self._troubled.items():
            if pool_id not in reached:
                yield pool

    def _access(self, name: str, slot: int) -> SliceAccess | None:
        """Return what a node can access of a slice, or None for nothing.

        As in Kubernetes, a slice is ignored if it uses a feature that the version does not have.
        """
        resource_slice = self._slices[name]
        is_partitioned = (
            resource_slice.counter_sets or resource_slice.selects_per_device is not None
        )
        if is_partitioned and not self.version.partitions_devices:
            return None
        if not resource_slice.selects_per_device:
            return (name, None) if self._reaches(resource_slice, slot) else None
        devices = [
            index
            for index, device in enumerate(resource_slice.devices)
            if self._reaches(device, slot)
        ]
        return (name, tuple(devices)) if devices else None

    def _reaches(self, owner: ResourceSlice | Device, slot: int) -> bool:
        """Return whether a node can access the devices of a slice, or one device."""
        if owner.node_name is not None:
            node = self.nodes.nodes[slot]
            return node is not None and node.name == owner.node_name
        if owner.all_nodes:
            return True
        if owner.node_selector is None:
            return False
        return bool(self.nodes_of(owner.node_selector).vetoes.at(slot) == 0)

    # Objects

    def put(self, new: DeviceObject) -> None:
        """Add or replace an object."""
        match new:
            case ResourceClaim():
                self._swap_claim(new.key, new)
            case ResourceSlice():
                self._swap_slice(new.name, new)
            case DeviceClass():
                self.classes[new.name] = new
                self._note_all()
            case ResourceClaimTemplate():
                self.templates[new.namespace, new.name] = new

    def remove(self, old: DeviceObject) -> None:
        """Remove an existing object."""
        match old:
            case ResourceClaim():
                self._swap_claim(old.key, None)
            case ResourceSlice():
                self._swap_slice(old.name, None)
            case DeviceClass():
                del self.classes[old.name]
                self._note_all()
            case ResourceClaimTemplate():
                del self.templates[old.namespace, old.name]

    def _swap_claim(self, key: ObjectName, new: ResourceClaim | None) -> None:
        old = _swap(self.claims, key, new)
        before = set() if old is None else set(old.devices)
        after = set() if new is None else set(new.devices)
        for device in before - after:
            self._use(device, -1)
        for device in after - before:
            self._use(device, 1)

    def _use(self, device: DeviceID, claims: int) -> None:
        after = self.in_use.get(device, 0) + claims
        if after:
            self.in_use[device] = after
        else:
            del self.in_use[device]
        for name in self._by_pool.get((device.driver, device.pool), ()):
            node_name = self._slices[name].node_name
            if node_name is None:
                self._note_all()
            else:
                self._note(self.nodes.slots.get(node_name))

    def _swap_slice(self, name: str, new: ResourceSlice | None) -> None:
        old = _swap(self._slices, name, new)
        if old is not None:
            self._forget_slice(old)
        if new is not None:
            self._note_slice(new)
        self._pools.clear()
        examines = self.version.partitions_devices and not self.version.hides_counters
        for resource_slice in (old, new):
            if resource_slice is not None:
                if examines:
                    self._examine(resource_slice.pool_id)
                for other in self._by_pool.get(resource_slice.pool_id, ()):
                    self._touch_slice(self._slices[other])
                self._touch_slice(resource_slice)

    def _examine(self, pool_id: PoolID) -> None:
        """Record whether a pool troubles nodes that see nothing of it but its sets of counters."""
        slices = [self._slices[name] for name in self._by_pool.get(pool_id, ())]
        held = [resource_slice for resource_slice in slices if resource_slice.counter_sets]
        pool = None
        if held:
            seen = [AccessibleSlice(resource_slice) for resource_slice in held]
            pool = gather_pool(seen, slices, counts=True)
        before = self._troubled.pop(pool_id, None)
        if pool is not None and (pool.is_incomplete or pool.is_invalid):
            self._troubled[pool_id] = pool
        if self._troubled.get(pool_id) != before:
            self._note_all()

    def _note_slice(self, new: ResourceSlice) -> None:
        self._by_pool.setdefault(new.pool_id, {})[new.name] = None
        if new.node_name is None:
            self._wide[new.name] = None
        else:
            self._by_node.setdefault(new.node_name, {})[new.name] = None

    def _forget_slice(self, old: ResourceSlice) -> None:
        _discard(self._by_pool, old.pool_id, old.name)
        if old.node_name is None:
            del self._wide[old.name]
        else:
            _discard(self._by_node, old.node_name, old.name)

    # Invalidation

    def touch(self, slot: int) -> None:
        """Record that a node was added, removed, or updated."""
        self._reached.pop(slot, None)
        self._note(slot)

    def _touch_slice(self, resource_slice: ResourceSlice) -> None:
        """Record that a slice was added, removed, or updated."""
        if resource_slice.node_name is None:
            self._reached.clear()
            self._note_all()
            return
        slot = self.nodes.slots.get(resource_slice.node_name)
        if slot is not None:
            self.touch(slot)

    def _note(self, slot: int | None) -> None:
        """Record that the verdicts on a node may have changed."""
        if slot is None or not self._verdicts:
            return
        if len(self._touched) == TOUCHED_MAX:
            self._note_all()
        else:
            self._touched.append(slot)

    def _note_all(self) -> None:
        """Record that the verdicts on all nodes may have changed."""
        self._forgotten += len(self._touched) + 1
        self._touched.clear()

    # Digests

    def objects(self) -> Iterator[DeviceObject]:
        """Yield all objects by kind, ordered by name."""
        kinds: tuple[Mapping[Any, DeviceObject], ...] = (
            self.claims,
            self.classes,
            self.templates,
            self._slices,
        )
        for known in kinds:
            for key in sorted(known):
                yield known[key]


def with_placeholders(wanted: Iterable[WantedClaim]) -> tuple[WantedClaim, ...]:
    """Return claims named only by their position; `with_names` restores the names in a text."""
    return tuple([WantedClaim(f"<{n}>", claim.spec) for n, claim in enumerate(wanted)])


def with_names(text: str, wanted: Iterable[WantedClaim]) -> str:
    """Replace the placeholders in a reason with the names of the claims."""
    for number, claim in enumerate(wanted):
        text = text.replace(f"claim <{number}>", f"claim {claim.name}")
    return text


def with_allocation(
    claim: ResourceClaim, grants: Iterable[Grant], selector: NodeSelector | None
) -> ResourceClaim:
    """Return a claim with the granted devices allocated and one more consumer."""
    granted = tuple(grants)
    devices = tuple([grant.device for grant in granted if not grant.admin_access])
    return replace(
        claim,
        is_allocated=True,
        devices=devices,
        preference=claim.spec.preference({grant.request for grant in granted}),
        node_selector=selector,
        consumers=claim.consumers + 1,
    )


def _resized(values: npt.NDArray[N], size: int) -> npt.NDArray[N]:
    """Return a copy of an array with `size` entries; new ones are 0."""
    resized: npt.NDArray[N] = np.zeros(size, dtype=values.dtype)
    kept = min(size, len(values))
    resized[:kept] = values[:kept]
    return resized


def _swap(known: dict[K, V], key: K, new: V | None) -> V | None:
    old = known.pop(key, None)
    if new is not None:
        known[key] = new
    return old


def _discard(index: dict[K, dict[str, None]], key: K, name: str) -> None:
    members = index[key]
    del members[name]
    if not members:
        del index[key]
