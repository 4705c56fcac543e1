"""The best node found from the root of a tree, without looking at every node.

The nodes are the leaves of a binary trie over their tie-breaks; each branch knows the greatest score below it. Among
equal scores the way down takes at each bit what the pod's own tie-break makes the greater. A key of few domains has one
such tree per domain, so that what a pod's relations add or forbid by domain is decided at the roots.
"""

from collections.abc import Sequence

import numpy as np

from service.engine.state.columns import Ints
from service.engine.state.rank_bits import TIE_BITS, VETO
from service.engine.state.tree_layout import Layout
from service.engine.state.vetoes import Vetoes

DISAPPOINTMENTS_MAX = 32
"""After so many leaves of the greatest score whose nodes are all excluded, all nodes are looked at."""


class BestNodeTree:
    """The greatest score below each branch, repaired leaf by leaf; negative where there is none."""

    __slots__ = (
        "_branches",
        "_leaf_of",
        "_leaves",
        "_order",
        "_ranks",
        "_scores",
        "_starts",
        "layout",
    )

    def __init__(self, layout: Layout, ranks: Ints) -> None:
        """Given the ranks, shape (nodes,), whose later changes `repair` is told of."""
        self.layout = layout
        self._ranks = ranks.data
        self._leaf_of, self._order, self._starts = layout.leaf_of, layout.order, layout.starts
        self._leaves, self._branches = layout.leaves, layout.branches
        scores = np.full((layout.trees, layout.branches), VETO >> TIE_BITS, dtype=np.int64)
        np.maximum.at(scores.reshape(-1), layout.slots, ranks >> TIE_BITS)
        level = layout.leaves
        while level > 1:
            below = scores[:, level : 2 * level]
            level >>= 1
            np.maximum(below[:, ::2], below[:, 1::2], out=scores[:, level : 2 * level])
        self._scores: list[int] = scores.reshape(-1).tolist()

    @property
    def size_in_bytes(self) -> int:
        """Of the scores, each an integer of its own in a list."""
        return 40 * len(self._scores)

    def repair(self, slot: int) -> None:
        """The rank of a node has changed."""
        scores, leaf = self._scores, self._leaf_of[slot]
        scores[leaf] = self._greatest_at(leaf)
        branch = leaf % self._branches
        root = leaf - branch
        while branch > 1:
            one, other = scores[root + branch], scores[root + (branch ^ 1)]
            greatest = max(other, one)
            branch >>= 1
            if scores[root + branch] == greatest:
                return
            scores[root + branch] = greatest

    def _greatest_at(self, leaf: int) -> int:
        greatest = VETO
        for index in range(self._starts[leaf], self._starts[leaf + 1]):
            rank = self._ranks[self._order[index]]
            greatest = max(greatest, rank)
        return greatest >> TIE_BITS

    def top(self, tree: int) -> int:
        """The greatest score in a tree."""
        return self._scores[tree * self._branches + 1]

    def find(self, tree: int, tie: int, vetoes: Sequence[Vetoes]) -> int:
        """The slot with the greatest score in a tree that nothing excludes, the best for a tie-break.

        -1 where all nodes of that score are excluded, or so many that others may do it quicker.
        """
        scores, leaves, root = self._scores, self._leaves, tree * self._branches
        top = scores[root + 1]
        branch, bit = 1, TIE_BITS - 1
        others: list[int] = []
        for _ in range(DISAPPOINTMENTS_MAX):
            while branch < leaves:
                branch = 2 * branch + (1 ^ (tie >> bit & 1))
                bit -= 1
                if scores[root + branch] != top:
                    branch ^= 1
                elif scores[root + (branch ^ 1)] == top and vetoes:
                    others += (branch ^ 1, bit)
            slot = self._best_at(root + branch, top, tie, vetoes)
            if slot >= 0 or not others:
                return slot
            bit = others.pop()
            branch = others.pop()
        return -1

    def _best_at(self, leaf: int, top: int, tie: int, vetoes: Sequence[Vetoes]) -> int:
        best, greatest = -1, -1
        for index in range(self._starts[leaf], self._starts[leaf + 1]):
            slot = self._order[index]
            rank = self._ranks[slot]
            if rank >> TIE_BITS == top and rank ^ tie > greatest:
                if vetoes and any(each.at(slot) for each in vetoes):
                    continue
                best, greatest = slot, rank ^ tie
        return best
