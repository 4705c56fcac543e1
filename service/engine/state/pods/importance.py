"""The placed pods of each node as arrays for preemption, the most important first.

A pod is more important than another if its priority is higher or, at equal priority, if it has run
longer.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

import numpy as np

from service.engine.state.nodes.columns import Ids, Ints, Mask, Slots
from service.engine.state.nodes.node_rules import PodUsage
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.pods.classes import PodClass
from service.model.pods.pod import Pod

NO_POD: Final = 2**62
"""The priority in an empty cell, which is higher than that of any pod."""
DEPTH_MIN = 8
DEPTH_MAX = 128
"""The maximum number of pods on a node in the arrays; nodes with more pods are crowded and left
out."""
PODS = "pods"
"""A pseudo resource that every pod uses one unit of."""

PlacedPod = tuple[Pod, PodClass, PodUsage]
PlacedOn = Callable[[int], Iterable[PlacedPod]]


def importance(pod: Pod) -> tuple[int, int, str]:
    """Return a sort key that puts the most important pods first."""
    return -pod.priority, started_at(pod), f"{pod.namespace}/{pod.name}"


def started_at(pod: Pod) -> int:
    """Return a pod's start time in seconds, or its creation time until the start is reported."""
    return _seconds(pod.started or pod.created)


@lru_cache(maxsize=65_536)
def _seconds(time: str) -> int:
    try:
        return int(datetime.fromisoformat(time).replace(tzinfo=UTC).timestamp())
    except (ValueError, OverflowError):
        return 0


class ImportanceTable:
    """The pods of each node in order of importance, as arrays of shape (depth, nodes).

    It is filled on first use, and repaired for the nodes whose pods have changed.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._position = -1
        self._pods: list[tuple[Pod, ...]] = []
        self._ids: dict[PodClass, int] = {}
        self.classes: list[PodClass] = []
        """The classes, including those without pods, indexed by the ids in `class_ids`."""
        self._allocate(DEPTH_MIN, 0)

    def _allocate(self, depth: int, width: int) -> None:
        self.priorities: Ints = np.full((depth, width), NO_POD, dtype=np.int64)
        self.starts: Ints = np.zeros((depth, width), dtype=np.int64)
        self.class_ids: Ids = np.zeros((depth, width), dtype=np.int32)
        self.crowded: Mask = np.zeros(width, dtype=np.bool_)
        """The nodes with more pods than the arrays hold, shape (nodes,)."""
        self._amounts: dict[str, Ints] = {}
        self.used = 0
        """The highest number of pods on a node."""

    @property
    def depth(self) -> int:
        """The number of pods per node that the arrays have space for."""
        return len(self.priorities)

    def pods_on(self, slot: int) -> tuple[Pod, ...]:
        """Return the pods of a node, most important first."""
        return self._pods[slot]

    def amounts(self, resource: str) -> Ints:
        """Return the amount of a resource that each pod uses, shape (depth, nodes)."""
        amounts = self._amounts.get(resource)
        if amounts is None:
            amounts = self._amounts[resource] = np.zeros_like(self.priorities)
            self._position = -1
        return amounts

    def sizes(self) -> Iterator[int]:
        """Yield the size in bytes of each array."""
        yield self.priorities.nbytes + self.starts.nbytes + self.class_ids.nbytes
        yield from (int(amount.nbytes) for amount in self._amounts.values())

    def forget_dropped(self) -> None:
        """Drop the amounts of dropped resources, and start over if any class was dropped."""
        for resource in [
            amount for amount in self._amounts if not self._nodes.users.resources[amount]
        ]:
            if resource != PODS:
                del self._amounts[resource]
        if any(pod_class.is_dropped for pod_class in self.classes):
            self._restart(self.depth, self._nodes.size)

    def refresh(self, placed_on: PlacedOn, resources: Iterable[str] = ()) -> None:
        """Bring all arrays up to date, including the amounts of `resources`."""
        width = self._nodes.size
        if width != self.priorities.shape[1] or len(self.classes) > _classes_max(self.priorities):
            self._restart(DEPTH_MIN, width)
        for resource in resources:
            self.amounts(resource)
        slots = self._nodes.used_since(self._position)
        while not self._repair(slots, placed_on):
            self._restart(min(2 * self.depth, DEPTH_MAX), width)
            slots = self._nodes.used_since(self._position)
        self._position = self._nodes.usage_log.position

    def _restart(self, depth: int, width: int) -> None:
        known = list(self._amounts)
        self._allocate(depth, width)
        self._pods = [()] * width
        self._ids, self.classes = {}, []
        for resource in known:
            self.amounts(resource)
        self._position = -1

    def _repair(self, slots: Slots, placed_on: PlacedOn) -> bool:
        """Rewrite the columns of some nodes, or return False if one of them needs more depth."""
        self.priorities[:, slots] = NO_POD
        for amounts in self._amounts.values():
            amounts[:, slots] = 0
        entries = _Entries(self._amounts)
        for slot in slots.tolist():
            placed = sorted(placed_on(slot), key=_importance_of_placed)
            self.crowded[slot] = len(placed) > DEPTH_MAX
            if len(placed) > DEPTH_MAX:
                self._pods[slot] = ()
                continue
            if len(placed) > self.depth:
                return False
            self.used = max(self.used, len(placed))
            self._pods[slot] = tuple([placed_pod[0] for placed_pod in placed])
            for rank, (pod, pod_class, use) in enumerate(placed):
                entries.add(rank, slot, pod, self._id(pod_class), use)
        self._write(entries)
        return True

    def _id(self, pod_class: PodClass) -> int:
        known = self._ids.get(pod_class)
        if known is None:
            known = self._ids[pod_class] = len(self.classes)
            self.classes.append(pod_class)
        return known

    def _write(self, entries: "_Entries") -> None:
        where = entries.ranks, entries.slots
        self.priorities[where] = entries.priorities
        self.starts[where] = entries.starts
        self.class_ids[where] = entries.class_ids
        for resource, (ranks, slots, amounts) in entries.amounts.items():
            self._amounts[resource][ranks, slots] = amounts


class _Entries:
    """Cells collected for writing with one assignment per array."""

    def __init__(self, resources: Iterable[str]) -> None:
        self.ranks: list[int] = []
        self.slots: list[int] = []
        self.priorities: list[int] = []
        self.starts: list[int] = []
        self.class_ids: list[int] = []
        self.amounts: dict[str, tuple[list[int], list[int], list[int]]] = {
            resource: ([], [], []) for resource in resources
        }

    def add(self, rank: int, slot: int, pod: Pod, class_id: int, use: PodUsage) -> None:
        self.ranks.append(rank)
        self.slots.append(slot)
        self.priorities.append(pod.priority)
        self.starts.append(started_at(pod))
        self.class_ids.append(class_id)
        for resource, amount in use.amounts:
            lists = self.amounts.get(resource)
            if lists is not None:
                lists[0].append(rank)
                lists[1].append(slot)
                lists[2].append(amount)


def _importance_of_placed(placed: PlacedPod) -> tuple[int, int, str]:
    return importance(placed[0])


def _classes_max(priorities: Ints) -> int:
    """Return the number of classes that may accumulate before those without pods are dropped."""
    return 1024 + 2 * priorities.size
