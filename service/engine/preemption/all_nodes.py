"""Preemption dry runs on many nodes at once.

They rely on the `Headrooms` of filters: for each limited amount, what each node has left and what
each placed pod takes. The removable pods of all nodes are reprieved in parallel, the most important
pod of each node first. Filters without headrooms are left to `service.engine.preemption.one_node`.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from service.engine.framework.plugin import Headroom, Headrooms, Plugin
from service.engine.preemption.budgets import Budgets, violating_on
from service.engine.preemption.victims import OFFSET, Cost, Removability, Victims
from service.engine.state.nodes.columns import Ints, Mask, Slots
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.pods.classes import PodClass
from service.engine.state.pods.importance import PODS, ImportanceTable

FAR = 2**62


class Verdict(NamedTuple):
    """The verdict on nodes after all their removable pods have left."""

    fitting: Slots
    """The nodes that the pod then fits on."""
    unsure: Slots
    """The nodes that must be tried one by one."""
    reasons: Counter[str]
    """Why the pod does not fit on the other nodes."""
    rooms: tuple[Headroom, ...]
    """The headrooms that may run out as pods are reprieved."""


class Removable:
    """The evictable pods of some nodes."""

    def __init__(
        self,
        table: ImportanceTable,
        slots: Slots,
        removability: Removability,
        *,
        follows_code: bool = False,
    ) -> None:
        """Create the pods; with `follows_code`, they give back what kube-scheduler's code says."""
        self._follows_code = follows_code
        self.table = table
        self.slots = slots
        self.priorities: Ints = table.priorities[: table.used].take(slots, axis=1)
        self.mask: Mask = self.priorities < removability.priority
        if removability.namespaces is not None and table.classes:
            allowed = np.array(
                [removability.allows(pod_class.namespace) for pod_class in table.classes]
            )
            self.mask &= allowed.take(table.class_ids[: table.used].take(slots, axis=1))

    def taken(self, room: Headroom) -> Ints | None:
        """Return the amount of a headroom that each pod takes, in the shape of `mask`, or None."""
        if room.resource == PODS:
            return self.mask.astype(np.int64)
        if room.resource:
            amounts: Ints = self.table.amounts(room.resource)[: self.table.used].take(
                self.slots, axis=1
            )
            amounts *= self.mask
            return amounts
        taken = room.taken
        if self._follows_code and room.taken_in_code is not None:
            taken = room.taken_in_code
        if taken is None:
            return None
        by_class = np.array([taken(pod_class) for pod_class in self.table.classes], dtype=np.int64)
        counts: Ints = by_class.take(
            self.table.class_ids[: self.table.used].take(self.slots, axis=1)
        )
        counts *= self.mask
        if room.counted is not None:
            counts *= room.counted.take(self.slots)
        return counts

    def left(self, room: Headroom) -> Ints:
        """Return each node's headroom once its removable pods have left, shape (slots,)."""
        spare: Ints = room.spare.take(self.slots)
        if not room.is_given and not (spare < 0).any():
            return spare
        taken = self.taken(room)
        if taken is None:
            return spare
        freed: Ints = taken.sum(axis=0)
        return spare - freed if room.is_given else spare + freed


def judge(
    removable: Removable, nodes: NodeTable, pod_class: PodClass, filters: Sequence[Plugin]
) -> Verdict:
    """Apply filters to the nodes as if their removable pods had left."""
    slots = removable.slots
    deciding = np.ones(len(slots), dtype=np.bool_)
    unsure = np.zeros(len(slots), dtype=np.bool_)
    reasons: Counter[str] = Counter()
    rooms: list[Headroom] = []
    for plugin in filters:
        headrooms = plugin.headrooms(nodes, pod_class)
        if headrooms is None:
            unsure |= deciding
            break
        if headrooms.unsure is not None:
            unsure |= headrooms.unsure.take(slots) & deciding
            deciding &= ~unsure
        if headrooms.rooms:
            deciding &= ~_refused_nodes(headrooms, removable, deciding, reasons)
            rooms += [room for room in headrooms.rooms if not room.is_given]
    fitting = slots[deciding & ~unsure]
    return Verdict(fitting, slots[unsure], reasons, tuple(_scarce(rooms, fitting)))


def _refused_nodes(
    headrooms: Headrooms, removable: Removable, deciding: Mask, reasons: Counter[str]
) -> Mask:
    """Return the nodes that one filter refuses, shape (slots,), adding its reasons to `reasons`."""
    refused = np.zeros_like(deciding)
    for room in headrooms.rooms:
        lacking = (removable.left(room) < 0) & deciding
        if headrooms.first_only:
            lacking &= ~refused
        count = int(lacking.sum())
        if count:
            reasons[room.reason] += count
            refused |= lacking
    return refused


def _scarce(rooms: Sequence[Headroom], slots: Slots) -> list[Headroom]:
    """Return the headrooms that are insufficient on some node if all of its pods stay."""
    return [room for room in rooms if (room.spare.take(slots) < 0).any()]


class PreemptionCandidates:
    """Nodes where preemption helps, with their victims in arrays of shape (depth, slots)."""

    def __init__(
        self,
        table: ImportanceTable,
        verdict: Verdict,
        removability: Removability,
        budgets: Budgets,
        *,
        follows_code: bool = False,
    ) -> None:
        removable = Removable(table, verdict.fitting, removability, follows_code=follows_code)
        self.slots = verdict.fitting
        self._table = table
        self._priorities = removable.priorities
        self._violating: Mask | None = None
        if budgets.items:
            self._violating = violating_on(self.slots, removable.mask, table, budgets)
        self._victims = _victims(removable, verdict.rooms, self._violating)

    def best(self) -> tuple[Cost, Slots]:
        """Return the lowest cost, and all nodes that have it; there must be candidates."""
        columns = np.arange(len(self.slots))
        cost = []
        for criterion in (
            self._violations(),
            self._highest(),
            (self._victims * (self._priorities + OFFSET)).sum(axis=0),
            self._victims.sum(axis=0),
            -self._earliest(),
        ):
            values = criterion.take(columns)
            least = int(values.min())
            cost.append(least)
            columns = columns[values == least]
        return Cost(*cost), self.slots[columns]

    def costs(self) -> dict[int, Cost]:
        """Return the cost of each node, ignoring start times; nodes may have no victims at all."""
        rows = zip(
            self.slots.tolist(),
            self._violations().tolist(),
            self._highest().tolist(),
            (self._victims * (self._priorities + OFFSET)).sum(axis=0).tolist(),
            self._victims.sum(axis=0).tolist(),
            strict=True,
        )
        return {
            slot: Cost(violations, highest, priorities, victims, 0)
            for slot, violations, highest, priorities, victims in rows
        }

    def victims_on(self, slot: int) -> Victims:
        """Return the victims on one candidate node."""
        column = int(np.flatnonzero(self.slots == slot)[0])
        return self._victims_at(column)

    def all(self) -> dict[int, Victims]:
        """Return the victims on every candidate node."""
        return {slot: self._victims_at(column) for column, slot in enumerate(self.slots.tolist())}

    def _victims_at(self, column: int) -> Victims:
        pods = self._table.pods_on(int(self.slots[column]))
        ranks = np.flatnonzero(self._victims[:, column]).tolist()
        return Victims(tuple([pods[rank] for rank in ranks]), int(self._violations()[column]))

    def _violations(self) -> Ints:
        if self._violating is None:
            return np.zeros(len(self.slots), dtype=np.int64)
        violations: Ints = (self._violating & self._victims).sum(axis=0)
        return violations

    def _highest(self) -> Ints:
        highest: Ints = np.where(self._victims, self._priorities, -FAR).max(axis=0, initial=-FAR)
        return highest

    def _earliest(self) -> Ints:
        counted = self._victims & (self._priorities == self._highest())
        starts = self._table.starts[: self._table.used].take(self.slots, axis=1)
        earliest: Ints = np.where(counted, starts, FAR).min(axis=0)
        return earliest


def _victims(removable: Removable, rooms: Sequence[Headroom], violating: Mask | None) -> Mask:
    """Reprieve as many pods as possible, those protected by budgets first; return the rest."""
    taken = [amounts for room in rooms if (amounts := removable.taken(room)) is not None]
    left = [removable.left(room) for room in rooms if room.resource or room.taken is not None]
    if violating is None:
        return _reprieve(removable.mask, taken, left)
    protected = _reprieve(removable.mask & violating, taken, left)
    return protected | _reprieve(removable.mask & ~violating, taken, left)


def _reprieve(removable: Mask, taken: Sequence[Ints], left: Sequence[Ints]) -> Mask:
    """Return the pods that cannot be reprieved, trying the rows in order.

    `left` holds the remaining amounts on the nodes, each of shape (slots,); reprieved pods reduce
    them.
    """
    victims = np.zeros_like(removable)
    for rank, candidates in enumerate(removable):
        if not candidates.any():
            continue
        stays = candidates.copy()
        for amounts, spare in zip(taken, left, strict=True):
            stays &= amounts[rank] <= spare
        for amounts, spare in zip(taken, left, strict=True):
            np.subtract(spare, amounts[rank], out=spare, where=stays)
        victims[rank] = candidates & ~stays
    return victims
