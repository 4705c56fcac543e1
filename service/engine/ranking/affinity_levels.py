"""The best node for a pod scored by affinity, found without examining every node.

Nodes with equal sums of weights are on one level. InterPodAffinity adds the same score to all nodes
of a level, so only the best node of each level needs to be compared.
"""

from array import array
from bisect import bisect_left, insort
from collections.abc import Mapping
from typing import Final

import numpy as np

from service.engine.framework.plugin import FAR, Scale
from service.engine.state.nodes.columns import Ints
from service.engine.state.nodes.rank import TIE_BITS, VETO
from service.engine.state.nodes.tree_layout import Layout

TIE_MASK: Final = (1 << TIE_BITS) - 1
BYTES_A_NODE: Final = 24
"""The bytes stored per node: its level, its rank, and the rank again in its level's array."""


class AffinityLevels:
    """The ranks of the feasible nodes of each level, in ascending order.

    Each level is a plain array, because NumPy can fill it at once, and inserting or deleting a rank
    moves the tail in one piece. Moving a node to another level takes 4 µs at 5,000 nodes, and 16 µs
    at 50,000.
    """

    __slots__ = ("_layout", "_levels", "_ranks", "_sums")

    def __init__(self, layout: Layout, sums: Ints, ranks: Ints) -> None:
        """Copy `sums` and `ranks`, both of shape (nodes,), int64; `move` makes later changes."""
        self._layout = layout
        self._sums, self._ranks = sums.copy().data, ranks.copy().data
        feasible = ranks >= 0
        sums, ranks = sums[feasible], ranks[feasible]
        self._levels = {
            level: array("q", np.sort(ranks[sums == level]).tobytes()) for level in distinct(sums)
        }

    def __len__(self) -> int:
        return len(self._levels)

    @property
    def size_in_bytes(self) -> int:
        return BYTES_A_NODE * len(self._sums)

    @property
    def ordered(self) -> "Mapping[int, array[int]]":
        """The ranks of the nodes of each level, in ascending order."""
        return self._levels

    def best(self, tie: int, scale: Scale) -> tuple[int, int]:
        """Return the best node's slot and its rank including affinity; there must be a level."""
        least = min(self._levels)
        span = max(self._levels) - least
        top_scores = {
            level: (ordered[-1] >> TIE_BITS) + scale(level - least, span)
            for level, ordered in self._levels.items()
        }
        top_score = max(top_scores.values())
        best, greatest = 0, VETO
        for level, score in top_scores.items():
            if score == top_score:
                level_best = _best_of(self._levels[level], tie)
                rank = (score << TIE_BITS) | (level_best & TIE_MASK)
                if rank ^ tie > greatest ^ tie:
                    best, greatest = self._slot_of(level_best, level), rank
        return best, greatest

    def move(self, slot: int, level: int, rank: int) -> None:
        """Move a node to a level, with its rank without affinity."""
        level_before, rank_before = self._sums[slot], self._ranks[slot]
        if level == level_before and rank == rank_before:
            return
        self._sums[slot], self._ranks[slot] = level, rank
        if rank_before >= 0:
            ordered = self._levels[level_before]
            del ordered[bisect_left(ordered, rank_before)]
            if not ordered:
                del self._levels[level_before]
        if rank >= 0:
            insort(self._levels.setdefault(level, array("q")), rank)

    def _slot_of(self, rank: int, level: int) -> int:
        layout = self._layout
        leaf = layout.leaves + ((rank & TIE_MASK) * layout.leaves >> TIE_BITS)
        for index in range(layout.starts[leaf], layout.starts[leaf + 1]):
            slot = layout.order[index]
            if self._ranks[slot] == rank and self._sums[slot] == level:
                return slot
        raise AssertionError(f"no node of level {level} has the rank {rank}")


def distinct(sums: Ints) -> list[int]:
    """Return the distinct sums; with `return_counts`, NumPy sorts, which is ten times as fast."""
    levels: list[int] = np.unique(sums, return_counts=True)[0].tolist()
    return levels


def _best_of(ordered: "array[int]", tie: int) -> int:
    """Return the rank with the highest score, using a tie-break among equal scores.

    The best rank is the nearest, by exclusive or, to `ideal`: the same score with the complement of
    the tie-break. A neighbor of `ideal` in the order shares as many leading bits with it as the
    best rank does, and few other ranks share as many.
    """
    ideal = (ordered[-1] | TIE_MASK) ^ tie
    place = bisect_left(ordered, ideal)
    nearest = ordered[place] ^ ideal if place < len(ordered) else FAR
    for step in (-1, 1):
        at = place + step
        while 0 <= at < len(ordered):
            distance = ordered[at] ^ ideal
            if distance > 2 * nearest:  # it and all ranks beyond share a shorter prefix
                break
            nearest = min(nearest, distance)
            at += step
    return nearest ^ ideal
