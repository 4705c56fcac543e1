"""Finding the best node of a large cluster without looking at every node.

Nodes are grouped by the leading bits of their tie-break, so that among equal scores the right
group is known before any node of it is looked at. Each set of rules keeps the greatest score of
every group within every domain; what a pod's relations add or forbid by domain is added to those.
"""

import numpy as np

from service.engine.columns import Ints, Slots
from service.engine.ranks import TIE_BITS, VETO
from service.engine.topology import TopologyKey

BLOCK_BITS = 8
BLOCKS = 1 << BLOCK_BITS
BLOCK_SHIFT = TIE_BITS - BLOCK_BITS
LARGE = 16_384
"""From so many nodes on, looking at blocks first is quicker."""


class Blocks:
    """The nodes of each block."""

    def __init__(self) -> None:
        self._members: list[list[int]] = [[] for _ in range(BLOCKS)]
        self._arrays: dict[int, Slots] = {}

    def enter(self, slot: int, tie: int) -> None:
        self._members[tie >> BLOCK_SHIFT].append(slot)
        self._arrays.pop(tie >> BLOCK_SHIFT, None)

    def leave(self, slot: int, tie: int) -> None:
        self._members[tie >> BLOCK_SHIFT].remove(slot)
        self._arrays.pop(tie >> BLOCK_SHIFT, None)

    def members(self, block: int) -> Slots:
        """The slots in a block."""
        found = self._arrays.get(block)
        if found is None:
            found = self._arrays[block] = np.array(self._members[block], dtype=np.intp)
        return found


class Tops:
    """The greatest score per domain of a key and block, kept up to date; negative without any.

    Without a key all nodes are of one domain.
    """

    def __init__(self, key: TopologyKey | None, ties: Ints, blocks: Blocks, ranks: Ints) -> None:
        self._key = key
        self.version = 0 if key is None else key.version
        self._ties = ties
        self._blocks = blocks
        self._ranks = ranks
        domains = 1 if key is None else key.capacity + 1
        self.scores: Ints = np.full((domains, BLOCKS), VETO >> TIE_BITS, dtype=np.int64)
        """Shape (capacity + 1, blocks); the last row is of nodes without the key."""
        cells = ties >> BLOCK_SHIFT
        if key is not None:
            cells = cells + (key.domain_of % domains) * BLOCKS
        np.maximum.at(self.scores.reshape(-1), cells, ranks >> TIE_BITS)

    def repair(self, slot: int, before: int, after: int) -> None:
        """A node's rank has changed."""
        block = int(self._ties[slot]) >> BLOCK_SHIFT
        domain = -1 if self._key is None else self._key.cells[slot]
        top = self.scores[domain, block]
        if after >> TIE_BITS >= top:
            self.scores[domain, block] = after >> TIE_BITS
        elif before >> TIE_BITS == top:
            members = self._blocks.members(block)
            ranks = self._ranks.take(members)
            if self._key is not None:
                ranks = ranks[self._key.domain_of.take(members) == domain]
            self.scores[domain, block] = ranks.max() >> TIE_BITS


def best_block(scores: Ints, tie: int) -> tuple[int, int]:
    """The greatest score, and of the blocks that have it the one with the best tie-break.

    `scores` has the shape (blocks,).
    """
    top = scores.max()
    having = np.flatnonzero(scores == top)
    return int(top), int(having[(having ^ (tie >> BLOCK_SHIFT)).argmax()])
