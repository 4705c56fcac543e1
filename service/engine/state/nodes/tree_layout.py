"""The positions of nodes in binary trees over their tie-breaks, which yield the best node.

Positions depend on the nodes alone, so all trees of one topology key share a layout.
"""

import numpy as np

from service.engine.state.nodes.columns import Ints
from service.engine.state.nodes.rank import TIE_BITS
from service.engine.state.nodes.topology import TopologyKey

LEAF = 4
"""The average number of nodes at a leaf."""


class Layout:
    """Assigns each node to a tree and to a leaf of it.

    A key has one tree per domain; without a key there is one tree for all nodes.
    """

    __slots__ = ("key", "leaf_of", "leaves", "order", "slots", "starts", "trees", "version")

    def __init__(self, key: TopologyKey | None, ties: Ints) -> None:
        self.key = key
        self.version = 0 if key is None else key.version
        self.trees = 1 if key is None else key.capacity + 1
        """The number of trees; the last one holds the nodes without the key."""
        depth = (len(ties) // (LEAF * self.trees)).bit_length()
        self.leaves = 1 << depth
        """The number of leaves per tree. Leaves are numbered after the branches above them,
        starting with the root, 1."""
        slots = self.leaves + (ties >> (TIE_BITS - depth))
        if key is not None:
            slots = slots + (key.domain_of % self.trees) * self.branches
        self.slots: Ints = slots
        """The leaf of each node, shape (nodes,), as an index over the branches of all trees."""
        self.leaf_of = slots.data
        self.order = np.argsort(slots, kind="stable").data
        ends = np.cumsum(np.bincount(slots, minlength=self.trees * self.branches))
        self.starts = np.concatenate((np.zeros(1, dtype=np.int64), ends)).data
        """The position in `order` where the nodes of each leaf begin."""

    @property
    def branches(self) -> int:
        """How many indices one tree takes: one unused, then its branches, then its leaves."""
        return 2 * self.leaves
