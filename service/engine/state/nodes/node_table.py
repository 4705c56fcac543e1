"""A cluster's nodes as columns: one slot per node, one array per property that plugins read."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from service.engine.state.nodes.columns import Column, Ids, Ints, Mask, SharedInterner, Slots
from service.engine.state.nodes.counters import (
    VIEW_OVERHEAD_BYTES,
    DirtyLog,
    NodeViews,
)
from service.engine.state.nodes.rank import TIE_BITS
from service.engine.state.nodes.topology import NodeItself, TopologyKey
from service.engine.state.nodes.tree_layout import Layout
from service.model.core.primitives import Taint
from service.model.core.quantity import amounts
from service.model.nodes.node import Node
from service.model.pods.cluster_topology import CLUSTER_KEY, topology_value

HOSTNAME = "kubernetes.io/hostname"

AMOUNT_MAX = 2**52
"""The cap on a resource amount, which keeps sums over pods and scores within int64. Amounts are
exact up to four petabytes, with up to two thousand pods on a node."""

EXACT_MAX = 2**46
"""The greatest amount for which 100 * amount is below 2**53, so that a floating-point division
never rounds the quotient up to a whole number."""

USAGE_LOG_MAX = 64
"""The number of changes of pods that are logged in order; finding older ones requires a search over
all slots."""

PORT_BYTES = 160
"""The approximate size in bytes of the counter of a host port."""

HostPort = tuple[str, str, int]
"""A host IP ("0.0.0.0" for all), protocol, and port."""


def image_name(image: str) -> str:
    """Add the tag `:latest` to an image without a tag; a colon before a `/` precedes a port."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def without_times(taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """Return taints without their times of addition, which no scheduling rule reads.

    This lets nodes that lose their zone at different times share one taint set.
    """
    if all(taint.time_added is None for taint in taints):
        return taints
    return tuple(replace(taint, time_added=None) for taint in taints)


def tie_hash(name: str) -> int:
    """Hash a node or pod name to an integer below 2**TIE_BITS that is equal in every process.

    The hashes of both names break ties between nodes with equal scores.
    """
    return int.from_bytes(blake2b(name.encode(), digest_size=TIE_BITS // 8).digest(), "big")


class ColumnUsers:
    """Reference counts of resource and label key columns, held by nodes and rules."""

    __slots__ = ("keys", "resources", "unused")

    def __init__(self) -> None:
        self.resources: Counter[str] = Counter(("cpu", "memory"))
        self.keys: Counter[str] = Counter()
        self.unused: dict[str, None] = {}
        """The keys and resources whose columns currently have no references."""

    def release(self, users: Counter[str], name: str, columns: Mapping[str, object]) -> None:
        """Remove a reference to a resource or key, whose column is in `columns`."""
        users[name] -= 1
        if not users[name]:
            del users[name]
            if name in columns:
                self.unused[name] = None


class NodeTable:
    """All nodes of a cluster; `size` counts all slots, and `alive` marks those in use."""

    def __init__(self) -> None:
        self.size = self.count = 0
        self.slots: dict[str, int] = {}
        self.nodes: list[Node | None] = []
        self._free: list[int] = []
        self._columns: dict[Column, None] = {}
        self._alive = self._column(np.bool_)
        self._tie = self._column(np.int64)
        self._unschedulable = self._column(np.bool_)
        self._allowed_pods = self._column(np.int64)
        self._pods = self._column(np.int64)
        self._taint_set = self._column(np.int32)
        self._scored_cpu, self._scored_memory = self._column(np.int64), self._column(np.int64)
        self._scored = {"cpu": self._scored_cpu, "memory": self._scored_memory}
        self._divisors = {name: self._column(np.float64, 1) for name in ("cpu", "memory")}
        self._uneven: set[int] = set()
        """Slots of nodes without cpu or memory, or with more than `EXACT_MAX`."""
        self._allocatable: dict[str, Column] = {}
        self._requested: dict[str, Column] = {}
        self.users = ColumnUsers()
        for resource in ("cpu", "memory"):
            self._resource(resource)
        self.taint_sets = SharedInterner[tuple[Taint, ...]](())
        self._feature_set = self._column(np.int32)
        self.feature_sets = SharedInterner[tuple[str, ...]](())
        self.keys: dict[str, TopologyKey] = {}
        self.itself = NodeItself(0)
        self.views = NodeViews()
        self._layouts: dict[TopologyKey | None, Layout] = {}
        self._layouts_of = -1
        self.ports: list[Counter[HostPort] | None] = []
        self.port_users: dict[tuple[str, int], Counter[int]] = {}
        self.images: dict[str, dict[int, int]] = {}
        """The size of each image in bytes, by image name and slot."""
        self.usage_log = DirtyLog(limit=USAGE_LOG_MAX)
        """The log of slots whose pods have changed."""
        self._used_at = self._column(np.int64)
        """The position of `usage_log` after the last change of pods on each node."""
        self.version = 0
        """Incremented whenever a node is added, updated, or removed."""
        self.labels_version = 0
        """Incremented whenever a node is added, removed, or relabeled."""

    def _column(self, dtype: type[np.generic], fill: int = 0) -> Column:
        column = Column(dtype, fill, self.size)
        self._columns[column] = None
        return column

    def _resource(self, name: str) -> tuple[Column, Column]:
        """Return the allocatable and requested columns of a resource, creating them if needed."""
        if name not in self._allocatable:
            self._allocatable[name] = self._column(np.int64)
            self._requested[name] = self._column(np.int64)
            if not self.users.resources[name]:
                self.users.unused[name] = None
        return self._allocatable[name], self._requested[name]

    @property
    def alive(self) -> Mask:
        return self._alive.values

    @property
    def tie(self) -> Ints:
        return self._tie.values

    @property
    def unschedulable(self) -> Mask:
        return self._unschedulable.values

    @property
    def allowed_pods(self) -> Ints:
        return self._allowed_pods.values

    @property
    def pods(self) -> Ints:
        """The number of placed pods on each node, shape (nodes,), int64."""
        return self._pods.values

    @property
    def taint_set(self) -> Ids:
        return self._taint_set.values

    @property
    def feature_set(self) -> Ids:
        return self._feature_set.values

    def resources(self) -> list[str]:
        """Return the resources with columns: those of any node or requested by any pod."""
        return sorted(self._allocatable)

    def by_name(self) -> Slots:
        """Return the slots of the nodes, ordered by name."""
        return np.array([self.slots[name] for name in sorted(self.slots)], dtype=np.intp)

    def allocatable(self, resource: str) -> Ints:
        """Return the amount of a resource on each node, shape (nodes,), int64.

        The unit is a milli-unit for cpu, and a whole unit for all other resources.
        """
        column = self._allocatable.get(resource) or self._resource(resource)[0]
        return column.values

    def requested(self, resource: str) -> Ints:
        """Return the sum of the placed pods' requests on each node, in units of `allocatable`."""
        column = self._requested.get(resource) or self._resource(resource)[1]
        return column.values

    def scored(self, resource: str) -> Ints:
        """Return the requested cpu or memory with defaults for containers without requests."""
        return self._scored[resource].values

    def divisor(self, resource: str) -> npt.NDArray[np.float64]:
        """Return the allocatable cpu or memory as a float64 divisor, or 1 if a node has none."""
        return self._divisors[resource].values

    @property
    def divides_evenly(self) -> bool:
        """Whether every node has cpu and memory, both at most `EXACT_MAX`."""
        return not self._uneven

    # Each method below returns one node's value of a column above, as a plain integer.

    def tie_at(self, slot: int) -> int:
        return self._tie.cells[slot]

    def has_room_for_pod(self, slot: int) -> bool:
        return self._pods.cells[slot] < self._allowed_pods.cells[slot]

    def allocatable_at(self, resource: str, slot: int) -> int:
        try:
            return self._allocatable[resource].cells[slot]
        except KeyError:  # no node has the resource
            return 0

    def requested_at(self, resource: str, slot: int) -> int:
        try:
            return self._requested[resource].cells[slot]
        except KeyError:  # no pod has requested the resource
            return 0

    def scored_at(self, resource: str, slot: int) -> int:
        return self._scored[resource].cells[slot]

    def key(self, name: str) -> TopologyKey:
        """Return the column of a label key, creating it on first use."""
        key = self.keys.get(name)
        if key is None:
            key = self.keys[name] = TopologyKey(name, self.size)
            if not self.users.keys[name]:
                self.users.unused[name] = None
            self._fill(key)
        return key

    def _fill(self, key: TopologyKey) -> None:
        """Fill the column of a new key from the labels of all nodes."""
        name = key.name
        for slot, node in enumerate(self.nodes):
            if node is None or (name not in node.labels and name != CLUSTER_KEY):
                continue
            value = topology_value(node.labels, name)
            if value is not None:
                key.enter(slot, value)

    def layout(self, key: TopologyKey | None) -> Layout:
        """Return the tree layout of all nodes: one tree per domain of a key, or one for None."""
        if self._layouts_of != self.version:
            self._layouts, self._layouts_of = {}, self.version
        layout = self._layouts.get(key)
        if layout is None or (key is not None and layout.version != key.version):
            layout = self._layouts[key] = Layout(key, self.tie)
        return layout

    # Changes of nodes. Before these calls, the cluster subtracts the nodes' pods from the counters,
    # and afterwards it adds them again.

    def add(self, node: Node) -> int:
        """Add a new node without pods in a free slot, and return the slot."""
        slot = self._free.pop() if self._free else self._grow()
        self.slots[node.name] = slot
        self.count += 1
        self._alive.values[slot] = True
        # The complement gives the highest rank to the smallest hash.
        tie = tie_hash(node.name) ^ (2**TIE_BITS - 1)
        self._tie.cells[slot] = tie
        self.describe(slot, node)
        return slot

    def remove(self, slot: int) -> None:
        """Free a slot whose pods have been subtracted."""
        node = self.nodes[slot]
        assert node is not None
        assert self.pods[slot] == 0
        self.forget(slot)
        self.nodes[slot] = None
        del self.slots[node.name]
        self._alive.values[slot] = False
        self._free.append(slot)
        self.count -= 1
        self.version += 1
        self.labels_version += 1

    def describe(self, slot: int, node: Node) -> None:
        """Write a node's own columns."""
        before = self.nodes[slot]
        if before is None or before.labels != node.labels:
            self.labels_version += 1
        self.nodes[slot] = node
        self._unschedulable.values[slot] = node.unschedulable
        self.users.resources.update(node.allocatable.keys())
        self._set_allocatable(slot, node.allocatable)
        for resource, column in self._divisors.items():
            amount = self.allocatable_at(resource, slot)
            column.values[slot] = amount or 1
            if not 0 < amount <= EXACT_MAX:
                self._uneven.add(slot)
        self._taint_set.values[slot] = self.taint_sets.hold(without_times(node.taints))
        self._feature_set.values[slot] = self.feature_sets.hold(node.declared_features)
        for name, key in self.keys.items():
            value = topology_value(node.labels, name)
            if value is not None:
                key.enter(slot, value)
        self._add_images(slot, node)
        self.version += 1

    def forget(self, slot: int) -> None:
        """Clear a node's own columns; the inverse of `describe`."""
        node = self.nodes[slot]
        assert node is not None
        for key in self.keys.values():
            key.leave(slot)
        self.taint_sets.drop(without_times(node.taints))
        self.feature_sets.drop(node.declared_features)
        self.release_resources(node.allocatable)
        self._set_allocatable(slot, {})
        self._uneven.discard(slot)
        self._remove_images(slot, node)

    def _set_allocatable(self, slot: int, allocatable: Mapping[str, str | int | float]) -> None:
        for column in self._allocatable.values():
            column.values[slot] = 0
        self._allowed_pods.values[slot] = 0
        for resource, exact in amounts(allocatable).items():
            amount = min(exact, AMOUNT_MAX)
            if resource == "pods":
                self._allowed_pods.values[slot] = amount
                continue
            self._resource(resource)
            self._allocatable[resource].values[slot] = amount

    def _add_images(self, slot: int, node: Node) -> None:
        for image in node.images:
            for name in image.names:
                self.images.setdefault(name, {})[slot] = image.size_bytes

    def _remove_images(self, slot: int, node: Node) -> None:
        for image in node.images:
            for name in image.names:
                holders = self.images.get(name, {})
                holders.pop(slot, None)
                if not holders:
                    self.images.pop(name, None)

    def _grow(self) -> int:
        slot = self.size
        self.size += 1
        self.nodes.append(None)
        self.ports.append(None)
        for column in self._columns:
            column.resize(self.size)
        for key in self.keys.values():
            key.resize(self.size)
        self.itself.resize(self.size)
        return slot

    # Usage

    def use(
        self, slot: int, amounts: Iterable[tuple[str, int]], scored: tuple[int, int], pods: int
    ) -> None:
        """Add the usage of one pod to a node (`pods` = 1), or subtract it (`pods` = -1)."""
        for resource, amount in amounts:
            self._requested[resource].cells[slot] += pods * amount
        self._scored_cpu.cells[slot] += pods * scored[0]
        self._scored_memory.cells[slot] += pods * scored[1]
        self._pods.cells[slot] += pods
        self.usage_log.append(slot)
        self._used_at.cells[slot] = self.usage_log.position

    def used_since(self, position: int) -> Slots:
        """Return the slots whose pods have changed since `usage_log` was at a position."""
        return np.flatnonzero(self._used_at.values > position)

    def use_ports(self, slot: int, ports: Iterable[HostPort], pods: int) -> None:
        """Add the host ports of one pod (`pods` = 1), or subtract them (`pods` = -1)."""
        held = self.ports[slot]
        if held is None:
            held = self.ports[slot] = Counter()
        for port in ports:
            name = (port[1], port[2])
            held[port] += pods
            users = self.port_users.setdefault(name, Counter())
            users[slot] += pods
            if not held[port]:
                del held[port]
            if not users[slot]:
                del users[slot]
                if not users:
                    del self.port_users[name]
        if not held:
            self.ports[slot] = None

    # References to the columns of resources and label keys

    def track(self, resources: Iterable[str]) -> None:
        """Create columns for resources that pods are about to use, with a reference to each."""
        for resource in resources:
            self.users.resources[resource] += 1
            self._resource(resource)

    def release_resources(self, resources: Iterable[str]) -> None:
        """Remove a reference to each of these resources."""
        for resource in resources:
            self.users.release(self.users.resources, resource, self._allocatable)

    def hold_keys(self, names: Iterable[str]) -> None:
        """Add a reference to each of these label keys, whose columns need not exist yet."""
        for name in names:
            self.users.keys[name] += 1

    def release_keys(self, names: Iterable[str]) -> None:
        """Remove a reference to each of these label keys."""
        for name in names:
            self.users.release(self.users.keys, name, self.keys)

    def sizes(self) -> Iterator[tuple[str, int]]:
        """Yield the kind and approximate size in bytes of each column, view, and port counter."""
        yield from (("label keys", key.size_in_bytes) for key in self.keys.values())
        for columns in (self._allocatable, self._requested):
            yield from (("resources", int(column.values.nbytes)) for column in columns.values())
        for users in self.port_users.values():
            yield "host ports", PORT_BYTES * (1 + len(users))
        for held in self.ports:
            if held is not None:
                yield "host ports", PORT_BYTES * (1 + len(held))
        for view in self.views.cached():
            yield "views", VIEW_OVERHEAD_BYTES + view.size_in_bytes

    def drop_unused(self) -> None:
        """Drop the columns of resources and label keys without references."""
        for name in self.users.unused:
            if name in self._allocatable and not self.users.resources[name]:
                del self._columns[self._allocatable.pop(name)]
                del self._columns[self._requested.pop(name)]
            if name in self.keys and not self.users.keys[name]:
                key = self.keys.pop(name)
                key.is_dropped = True
                self._layouts.pop(key, None)
        self.users.unused.clear()
