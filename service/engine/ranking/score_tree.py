"""A tree that yields the best node from its root, without examining every node.

The nodes are at the leaves of a binary trie over their tie-breaks; each branch stores the highest
score below it. If both children have the same score, the descent chooses, at each bit, the child
that the pod's own tie-break makes greater. A topology key with few domains has one such tree per
domain, so that scores and vetoes by domain are applied at the roots.
"""

from collections.abc import Sequence

import numpy as np

from service.engine.state.nodes.columns import Ints
from service.engine.state.nodes.rank import TIE_BITS, VETO
from service.engine.state.nodes.tree_layout import Layout
from service.engine.state.nodes.vetoes import Vetoes

VETOED_LEAVES_MAX = 32
"""The number of leaves with only excluded top-scoring nodes after which a pass over all nodes is
cheaper."""


class BestNodeTree:
    """The highest score below each branch, repaired leaf by leaf; negative if nothing fits."""

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
        """Build the trees from ranks, shape (nodes,), int64, sharing their memory.

        Call `repair` after changing a rank.
        """
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
        """The size of the scores, which are separate integer objects in a list."""
        return 40 * len(self._scores)

    def repair(self, slot: int) -> None:
        """Update the branches above a node whose rank has changed."""
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

    @property
    def size(self) -> int:
        """The number of branches and leaves of all trees."""
        return len(self._scores)

    def holds(self, start: int, stop: int) -> bool:
        """Return whether the scores of these branches and leaves match the scores below them.

        If all do, each branch stores the highest score below it.
        """
        scores = self._scores
        for index in range(start, min(stop, len(scores))):
            branch = index % self._branches
            if branch >= self._leaves:
                expected = self._greatest_at(index)
            elif branch:
                below = index + branch  # the root of its tree, and twice the branch
                expected = max(scores[below], scores[below + 1])
            else:
                continue
            if scores[index] != expected:
                return False
        return True

    def _greatest_at(self, leaf: int) -> int:
        greatest = VETO
        for index in range(self._starts[leaf], self._starts[leaf + 1]):
            rank = self._ranks[self._order[index]]
            greatest = max(greatest, rank)
        return greatest >> TIE_BITS

    def top(self, tree: int) -> int:
        """Return the highest score in a tree."""
        return self._scores[tree * self._branches + 1]

    def find(self, tree: int, tie: int, vetoes: Sequence[Vetoes]) -> int:
        """Return the slot with the highest score in a tree that no veto excludes, or -1.

        Among equal scores, it is the best for the tie-break `tie`. -1 means that all nodes with
        that score are excluded, or so many that a pass over all nodes may be faster.
        """
        scores, leaves, root = self._scores, self._leaves, tree * self._branches
        top = scores[root + 1]
        branch, bit = 1, TIE_BITS - 1
        others: list[int] = []
        for _ in range(VETOED_LEAVES_MAX):
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
                if vetoes and any(veto.at(slot) for veto in vetoes):
                    continue
                best, greatest = slot, rank ^ tie
        return best
