"""Where the nodes stand in binary trees over their tie-breaks, by which the best of them is found.

The numbers of nodes decide, not what is asked of them: all trees of one topology key share a layout.
"""

import numpy as np

from service.engine.state.columns import Ints
from service.engine.state.rank_bits import TIE_BITS
from service.engine.state.topology import TopologyKey

LEAF = 4
"""Nodes at a leaf, on average."""


class Layout:
    """Which leaf of which tree each node is at: one tree per domain of a key, or one of all nodes."""

    __slots__ = ("key", "leaf_of", "leaves", "order", "slots", "starts", "trees", "version")

    def __init__(self, key: TopologyKey | None, ties: Ints) -> None:
        self.key = key
        self.version = 0 if key is None else key.version
        self.trees = 1 if key is None else key.capacity + 1
        """The last is of nodes without the key."""
        depth = (len(ties) // (LEAF * self.trees)).bit_length()
        self.leaves = 1 << depth
        """Of one tree, which has as many branches before them: numbered from 1, the root."""
        slots = self.leaves + (ties >> (TIE_BITS - depth))
        if key is not None:
            slots = slots + (key.domain_of % self.trees) * self.branches
        self.slots: Ints = slots
        """Shape (nodes,): the leaf of each."""
        self.leaf_of = slots.data
        self.order = np.argsort(slots, kind="stable").data
        ends = np.cumsum(np.bincount(slots, minlength=self.trees * self.branches))
        self.starts = np.concatenate((np.zeros(1, dtype=np.int64), ends)).data
        """Where in `order` the nodes of each leaf begin."""

    @property
    def branches(self) -> int:
        """Of one tree, with its leaves and the number 0, which none has."""
        return 2 * self.leaves
