"""Ranks with what affinity to other pods adds, over a key of many domains (the hostname, mostly).

InterPodAffinity scores a node by where its sum of weights lies between the least and the greatest of the feasible
nodes. Where all nodes but a few have the least, these few are looked at, and the best of the others is known without
affinity. As long as the bounds stay, a placement changes the ranks of the nodes of one domain only, and the best node
is found from the root of a `BestNodeTree`.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from service.engine.plugin import Scale, bounds_of
from service.engine.ranking.best_node_tree import BestNodeTree
from service.engine.ranking.outliers import Outliers
from service.engine.state.columns import Ints
from service.engine.state.nodes import NodeTable
from service.engine.state.views import Weighed, WeighedSum

PATIENCE = 8
"""To look at all nodes so many times costs what putting them in order costs."""
PATIENCE_MAX = 4_096
SEEN_AGAIN: Final = 2
REPAIRS_MAX = 64
"""With more nodes changed all are looked at."""
NOBODY: Final = (0, -1)
"""The bounds where no node is feasible."""


class AffinityRanks:
    """Of one set of terms that share their key, where nothing else depends on who is feasible."""

    __slots__ = (
        "_added",
        "_best_node_tree",
        "_bounds",
        "_cells",
        "_key",
        "_nodes",
        "_outliers",
        "_patience",
        "_population",
        "_scale",
        "_served",
        "_sums",
        "_usage_seen",
        "_view",
        "_waited",
    )

    def __init__(self, nodes: NodeTable, terms: tuple[Weighed, ...], scale: Scale) -> None:
        self._nodes = nodes
        self._scale = scale
        self._key = terms[0].counter.key
        self._view = WeighedSum(terms)
        self._outliers = Outliers(self._view, scale)
        self._usage_seen = 0
        self._sums = np.zeros(0, dtype=np.int64).data
        """The sum of weights of each node."""
        self._cells = self._sums
        """The rank of each, affinity included; negative where a filter fails."""
        self._population: dict[int, int] = {}
        """How many feasible nodes have each sum."""
        self._bounds = _bounds_of(self._population)
        """The least and the greatest of these sums when that was looked at last."""
        self._added: list[int] = []
        """To the rank at each distance from the least."""
        self._best_node_tree: BestNodeTree | None = None
        """None while the bounds are not known to last."""
        self._served = self._waited = 0
        self._patience = PATIENCE

    @property
    def best_node_tree(self) -> BestNodeTree | None:
        """All nodes in order; None while the bounds are not known to last."""
        return self._best_node_tree

    @property
    def outliers(self) -> tuple[int, ...] | None:
        """The nodes whose sum is another than that of most; None where they are not known, or many."""
        return self._outliers.slots

    @property
    def served(self) -> int:
        """How many placements that order has served so far."""
        return self._served

    @property
    def passes(self) -> int:
        """How often all nodes were looked at for want of a quicker way, the first time included."""
        return self._waited

    @property
    def patience(self) -> int:
        """After so many passes nodes are put in order."""
        return self._patience

    @property
    def size_in_bytes(self) -> int:
        size = self._view.size_in_bytes
        if self._best_node_tree is not None:
            size += 2 * self._sums.nbytes + self._best_node_tree.size_in_bytes
        return size

    def best(
        self, ranks: Ints, tie: int, without_affinity: Callable[[], BestNodeTree | None]
    ) -> tuple[int, int] | None:
        """The slot of the greatest rank, and that rank.

        None where looking at all nodes is cheaper, and where no node is feasible. `ranks`, shape (nodes,), and the
        best_node_tree, which is asked for only where it helps, are those without affinity.
        """
        if self._waited == 0:  # terms that only one pod has are not looked into
            self._waited = 1
            return None
        moved = self._moved()
        if self._best_node_tree is not None and not self._repair(
            ranks, self._best_node_tree, moved
        ):
            self._drop()
        if self._best_node_tree is None:
            self._outliers.follow(moved)
            found = self._outliers.best(ranks, tie, without_affinity)
            if found is not None:
                return found
            self._wait(ranks)
        if self._best_node_tree is None:
            return None
        self._served += 1
        slot = self._best_node_tree.find(0, tie, ())
        return slot, self._cells[slot]

    def _moved(self) -> set[int] | None:
        """The nodes whose sum changed since the last call; None if they are many."""
        domains = self._view.repair()
        members = self._key.members
        if domains is None or sum(len(members[each]) for each in domains) > REPAIRS_MAX:
            return None
        return {slot for domain in domains for slot in members[domain]}

    def _wait(self, ranks: Ints) -> None:
        """All nodes are looked at once more; what is asked for often is worth finding a quicker way."""
        self._waited += 1
        if self._waited == SEEN_AGAIN:
            self._outliers.find()
        if self._waited > self._patience:
            self._best_node_tree = self._build(ranks)

    def _drop(self) -> None:
        """The bounds did not last; the sooner they changed, the longer is waited before the next try."""
        lasted = self._served >= self._patience
        self._patience = PATIENCE if lasted else min(2 * self._patience, PATIENCE_MAX)
        self._best_node_tree = None
        self._served = self._waited = 0
        self._outliers.follow(None)

    def _build(self, ranks: Ints) -> BestNodeTree | None:
        """Put all nodes in order; None where the bounds have changed of late, or lie too far apart."""
        sums = self._view.values()
        bounds = bounds_of(sums, ranks)
        before, self._bounds = self._bounds, (bounds.least, bounds.greatest) if bounds else NOBODY
        added = self._scale(bounds.greatest - bounds.least) if bounds else None
        if bounds is None or added is None or self._bounds != before:
            self._drop()
            return None
        above = bounds.above(sums)
        counts = np.bincount(above[ranks >= 0]).tolist()
        self._population = {bounds.least + at: count for at, count in enumerate(counts) if count}
        self._added = added.tolist()
        raised = ranks + added.take(above)
        self._sums, self._cells = sums.copy().data, raised.data
        self._usage_seen = self._nodes.usage_log.position
        return BestNodeTree(self._nodes.layout(None), raised)

    def _repair(self, ranks: Ints, best_node_tree: BestNodeTree, moved: set[int] | None) -> bool:
        """Bring up to date the nodes whose sum or pods changed; False where the bounds are others now."""
        used = self._nodes.usage_log.since(self._usage_seen)
        if used is None or moved is None or len(used) > REPAIRS_MAX:
            return False
        self._usage_seen += len(used)
        changed = moved.union(used)
        sums, cells = self._view.values().data, ranks.data
        for slot in changed:
            self._move(slot, sums[slot], cells[slot])
            best_node_tree.repair(slot)
        return self._bounds == _bounds_of(self._population)

    def _move(self, slot: int, total: int, rank: int) -> None:
        """A node's sum and its rank without affinity are these now."""
        population, before = self._population, self._sums[slot]
        if self._cells[slot] >= 0:
            population[before] -= 1
            if not population[before]:
                del population[before]
        if rank >= 0:
            population[total] = population.get(total, 0) + 1
            above = total - self._bounds[0]
            rank += self._added[above] if 0 <= above < len(self._added) else 0
        self._sums[slot], self._cells[slot] = total, rank


def _bounds_of(population: dict[int, int]) -> tuple[int, int]:
    return (min(population), max(population)) if population else NOBODY
