"""A local search for better nodes for placed pods.

First, single pods move, the one with the largest gain each time, until no single move is an
improvement. Then pods move together: pairs that block each other and, if there are few pods, random
selections with a fixed seed, each followed by single moves. The search ends without further
improvements, or when its budget is used up. The search changes only the engine, tentatively; the
caller undoes the changes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import combinations
from random import Random
from typing import NamedTuple

from service.engine import Cluster
from service.engine.optimize.annealing import AnnealingModel
from service.engine.optimize.moves import Costs, MoveEvaluator
from service.model.core.primitives import ObjectName
from service.model.pods.pod import Pod
from service.scheduler.decide.context import Steps

TRIALS_MAX = 6_000
"""How many best-node computations are made for pods that move together."""
FEW = 48
"""Up to this many kinds of pods, all pairs are tried, and random moves are made."""
EXACT_MAX = 2_000
"""Up to this many kinds of pods, all are tried first; beyond, estimates set the order."""
_ESTIMATED = -1
"""Replaces the number of moves after which a pod was tried, if it was not tried."""
WIDTH = 8
"""How many nodes are tried for a pod that moves together with others."""
WISHES = 4
"""For how many of a pod's preferred nodes the search tries pods that may make room."""

Places = dict[ObjectName, int]
"""The slot of each pod's new node."""


class _Kind(NamedTuple):
    """Pods of one class on one node, which no rule can distinguish."""

    number: int
    """The number of the class, in the order in which pods are named."""
    slot: int


class LocalSearch:
    """Moves pods tentatively for as long as a move lowers the costs of the cluster."""

    def __init__(
        self,
        cluster: Cluster,
        moving: MoveEvaluator,
        pods: Iterable[ObjectName],
        moves_max: int | None,
        is_late: Callable[[], bool],
    ) -> None:
        self._cluster = cluster
        self._moving = moving
        self._moves_max = moves_max
        self._is_late = is_late
        self._chance = Random(0)  # noqa: S311 - it is to be the same each time
        self._trials = 0
        self._from: Places = {key: self._slot(key) for key in pods}
        self._moved: set[ObjectName] = set()
        self.changes: Costs = self._moving.none
        """The accumulated change of the measures."""
        self.history: list[Places] = []
        """The improving moves, in order."""
        self.ended_early = False
        """Whether the search left options untried because of time or the move limit."""

    @property
    def places(self) -> Places:
        """The new nodes of the moving pods."""
        return {key: self._slot(key) for key in self._from if key in self._moved}

    def search(self) -> Steps[None]:
        """Search for better nodes, and leave the pods on them."""
        if self._moving.is_least():
            return
        yield from self._move_singly()
        better = True
        while better and not self._is_over():
            better = yield from self._move_in_pairs()
            if better:
                yield from self._move_singly()
        if 1 < len(self._from) <= FEW and not self._is_over():
            yield from self._arrange()

    # Single pods

    def _move_singly(self) -> Steps[None]:
        """Move the pod that gains most, repeatedly, until none gains anything."""
        kinds = self._kinds()
        queue = yield from self._ordered(kinds)
        version, swept = 0, len(kinds) <= EXACT_MAX
        while not self._is_over():
            if not queue:
                if swept:
                    return
                queue = yield from self._tried(kinds, version)
                swept = True
                continue
            _, at, kind = heappop(queue)
            members = kinds.get(kind)
            if not members:
                continue
            improvement = yield from self._try(members[0])
            if improvement is None:
                continue
            change, slot = improvement
            # Estimates are upper bounds; exact values would require trying every pod before each
            # move.
            is_tried = bool(queue) and queue[0][1] != _ESTIMATED
            if is_tried and at != version and (change, version, kind) > queue[0]:
                heappush(queue, (change, version, kind))
                continue
            key = members.pop(0)
            self._accept({key: slot}, change)
            version += 1
            swept = False
            new = _Kind(kind.number, slot)
            kinds[new].append(key)
            for moved_kind in (kind, new):
                heappush(queue, (change, version - 1, moved_kind))

    def _ordered(
        self, kinds: dict[_Kind, list[ObjectName]]
    ) -> Steps[list[tuple[Costs, int, _Kind]]]:
        if len(kinds) <= EXACT_MAX:
            return (yield from self._tried(kinds, 0))
        queue: list[tuple[Costs, int, _Kind]] = []
        by_class: defaultdict[int, list[_Kind]] = defaultdict(list)
        for kind in kinds:
            by_class[kind.number].append(kind)
        for alike in by_class.values():
            if self._is_over():
                break
            estimates = self._moving.estimates(self._pod(kinds[alike[0]][0]))
            for kind in alike:
                estimate = tuple(int(estimate_row[kind.slot]) for estimate_row in estimates)
                if estimate < self._moving.none:
                    queue.append((estimate, _ESTIMATED, kind))
            yield
        heapify(queue)
        return queue

    def _tried(
        self, kinds: dict[_Kind, list[ObjectName]], version: int
    ) -> Steps[list[tuple[Costs, int, _Kind]]]:
        queue = []
        for kind, members in tuple(kinds.items()):
            if self._is_over():
                break
            improvement = None if not members else (yield from self._try(members[0]))
            if improvement is not None:
                queue.append((improvement[0], version, kind))
        heapify(queue)
        return queue

    def _try(self, key: ObjectName) -> Steps[tuple[Costs, int] | None]:
        """Return a pod's best node and the change of the measures, or None for no improvement."""
        pod, mark = self._pod(key), self._cluster.mark()
        watch = self._moving.watch((pod,))
        base = self._moving.unplace(pod)
        options = self._moving.options(pod, base, watch, 1)
        self._cluster.undo(mark)
        yield
        if not options.changes or options.changes[0] >= self._moving.none:
            return None
        return options.changes[0], int(options.slots[0])

    # Several pods

    def _move_in_pairs(self) -> Steps[bool]:
        """Move two pods together if that is an improvement; return whether any moved."""
        kinds = self._kinds()
        firsts = [members[0] for members in kinds.values()]
        if len(firsts) <= FEW:
            pairs: Iterable[tuple[ObjectName, ObjectName]] = combinations(firsts, 2)
        else:
            pairs = self._in_the_way(firsts)
        better = False
        for pair in pairs:
            if self._is_over() or self._is_spent():
                break
            improvement = yield from self._try_together(pair)
            if improvement is not None:
                self._accept(*improvement)
                better = True
        return better

    def _in_the_way(self, firsts: Sequence[ObjectName]) -> Iterable[tuple[ObjectName, ObjectName]]:
        """Yield pods, each paired with another pod on a node that the first would prefer."""
        for key in firsts:
            pod, mark = self._pod(key), self._cluster.mark()
            self._moving.unplace(pod)
            wished = self._moving.preferred_nodes(pod, WISHES)
            self._cluster.undo(mark)
            self._trials += 1
            for slot in wished:
                for other, _ in tuple(self._cluster.placed_on(slot)):
                    name = (other.namespace, other.name)
                    if name in self._from and name != key:
                        yield key, name

    def _try_together(self, keys: Sequence[ObjectName]) -> Steps[tuple[Places, Costs] | None]:
        """Return the best nodes for pods removed together, or None for no improvement."""
        pods, mark = [self._pod(key) for key in keys], self._cluster.mark()
        watch = self._moving.watch(pods)
        base = self._moving.none
        for pod in pods:
            base = _sum(base, self._moving.unplace(pod))
        best, places = self._moving.none, None
        first, last = pods
        options = self._moving.options(first, base, None, WIDTH)
        self._trials += 1
        for slot, change in zip(options.slots, options.changes, strict=True):
            moment = self._cluster.mark()
            self._moving.put(first, int(slot))
            last_options = self._moving.options(last, change, watch, 1)
            self._trials += 1
            self._cluster.undo(moment)
            if last_options.changes and last_options.changes[0] < best:
                best = last_options.changes[0]
                places = dict(zip(keys, (int(slot), int(last_options.slots[0])), strict=True))
        self._cluster.undo(mark)
        yield
        return None if places is None or not self._may(places) else (places, best)

    def _arrange(self) -> Steps[None]:
        """Search for nodes for all pods at once, and move the pods whose node changes."""
        pods = [self._pod(key) for key in self._from]
        arranging = AnnealingModel(self._cluster, self._moving, pods, list(self._from.values()))
        if not arranging.is_small:
            return
        for places in arranging.search(self._chance.random):
            if self._is_over():
                return
            yield
            if places:
                change = self._moving.change([(self._pod(key), places[key]) for key in places])
                if change is not None and change < self._moving.none and self._may(places):
                    self._accept(places, change)

    # State

    def _is_over(self) -> bool:
        """Return whether no further pod may move, or time is up."""
        over = self._moves_max is not None and len(self._moved) >= self._moves_max
        if over or self._is_late():
            self.ended_early = True
        return self.ended_early

    def _is_spent(self) -> bool:
        return self._trials >= TRIALS_MAX

    def _may(self, places: Places) -> bool:
        if self._moves_max is None:
            return True
        moved = self._moved | places.keys()
        return sum(places.get(key) != self._from[key] for key in moved) <= self._moves_max

    def _accept(self, places: Places, change: Costs) -> None:
        pods = [self._pod(key) for key in places]
        for pod in pods:
            self._moving.unplace(pod)
        for pod, slot in zip(pods, places.values(), strict=True):
            self._moving.put(pod, slot)
        self.history.append(places)
        self._note(places, change)

    def _note(self, keys: Iterable[ObjectName], change: Costs) -> None:
        self._moving.invalidate()
        self.changes = _sum(self.changes, change)
        for key in keys:
            if self._slot(key) == self._from[key]:
                self._moved.discard(key)
            else:
                self._moved.add(key)

    def _kinds(self) -> defaultdict[_Kind, list[ObjectName]]:
        kinds: defaultdict[_Kind, list[ObjectName]] = defaultdict(list)
        numbers: dict[object, int] = {}
        for key in self._from:
            pod = self._pod(key)
            alike = (self._cluster.class_of(pod), None if pod.resize is None else key)
            number = numbers.setdefault(alike, len(numbers))
            kinds[_Kind(number, self._slot(key))].append(key)
        return kinds

    def _pod(self, key: ObjectName) -> Pod:
        pod = self._cluster.pod(*key)
        assert pod is not None
        return pod

    def _slot(self, key: ObjectName) -> int:
        return self._cluster.nodes.slots[self._pod(key).node_name or ""]


def _sum(one: Costs, other: Costs) -> Costs:
    return tuple(a + b for a, b in zip(one, other, strict=True))
