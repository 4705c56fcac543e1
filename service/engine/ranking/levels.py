"""The best node where affinity to other pods scores, without looking at every node.

Nodes whose sums of weights are equal are on one level. InterPodAffinity adds the same to all of a level, so which of
them is the best has nothing to do with affinity, and only the best of each level is looked at.
"""

from array import array
from bisect import bisect_left, insort
from typing import Final

import numpy as np

from service.engine.plugin import FAR, Scale
from service.engine.state.columns import Ints
from service.engine.state.rank_bits import TIE_BITS, VETO
from service.engine.state.tree_layout import Layout

TIE_MASK: Final = (1 << TIE_BITS) - 1
BYTES_A_NODE: Final = 24
"""Its level, its rank, and the rank once more in its level."""


class Levels:
    """The ranks of the feasible nodes of each level, in order.

    Plain arrays: NumPy fills them at once, and what is behind a rank that comes or goes is moved in one piece. For a
    node to change its level takes 4 µs at 5,000 nodes, 16 at 50,000.
    """

    __slots__ = ("_layout", "_levels", "_ranks", "_sums")

    def __init__(self, layout: Layout, sums: Ints, ranks: Ints) -> None:
        """Given sums and ranks, shape (nodes,), whose later changes `move` is told of."""
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

    def best(self, tie: int, scale: Scale) -> tuple[int, int]:
        """The slot of the greatest rank, affinity included, and that rank. There must be a level."""
        least = min(self._levels)
        span = max(self._levels) - least
        promised = {
            level: (ordered[-1] >> TIE_BITS) + scale(level - least, span)
            for level, ordered in self._levels.items()
        }
        most = max(promised.values())
        best, greatest = 0, VETO
        for level, score in promised.items():
            if score == most:
                found = _best_of(self._levels[level], tie)
                rank = (score << TIE_BITS) | (found & TIE_MASK)
                if rank ^ tie > greatest ^ tie:
                    best, greatest = self._slot_of(found, level), rank
        return best, greatest

    def move(self, slot: int, level: int, rank: int) -> None:
        """The node is on this level now, and has this rank without affinity."""
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
    """The levels that there are. Counted, which has NumPy sort: without, it takes ten times as long."""
    levels: list[int] = np.unique(sums, return_counts=True)[0].tolist()
    return levels


def _best_of(ordered: "array[int]", tie: int) -> int:
    """The rank with the greatest score, among equals the best for a tie-break.

    That is the one nearest, by exclusive or, to the same score with all bits of the tie-break turned. As many bits as
    the nearest has in common with it, a neighbour in the order has too, and few others do.
    """
    ideal = (ordered[-1] | TIE_MASK) ^ tie
    place = bisect_left(ordered, ideal)
    nearest = ordered[place] ^ ideal if place < len(ordered) else FAR
    for step in (-1, 1):
        at = place + step
        while 0 <= at < len(ordered):
            distance = ordered[at] ^ ideal
            if distance > 2 * nearest:  # it has fewer bits in common, and what is behind it no more
                break
            nearest = min(nearest, distance)
            at += step
    return nearest ^ ideal
