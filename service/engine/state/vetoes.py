"""Nodes that one rule on other pods excludes."""

import numpy as np

from service.engine.state.columns import Ints
from service.engine.state.rank_bits import VETO
from service.engine.state.topology import TopologyKey


class Vetoes:
    """Where one rule on other pods excludes nodes: `VETO`, else 0."""

    __slots__ = ("_nodes", "by_domain", "key")

    def __init__(
        self, key: TopologyKey, by_domain: list[int] | None = None, nodes: Ints | None = None
    ) -> None:
        """Given per domain for a key of few, the last entry for nodes without it, or per node."""
        self.key = key
        self.by_domain = by_domain
        self._nodes = nodes

    @property
    def may_exclude(self) -> bool:
        """False where it is plain that no node is excluded."""
        if self.by_domain is None or not self.key.on_every_slot:
            return True
        return any(
            veto and slots for veto, slots in zip(self.by_domain, self.key.members, strict=False)
        )

    @property
    def nodes(self) -> Ints:
        """Shape (nodes,), read-only."""
        if self._nodes is None:
            self._nodes = self.key.pattern(self.by_domain or ())
        return self._nodes

    @property
    def spared(self) -> int:
        """How many nodes with the key are not excluded, for a key of few domains."""
        pairs = zip(self.by_domain or (), self.key.members, strict=False)
        return sum(len(slots) for veto, slots in pairs if not veto)

    def at(self, slot: int) -> int:
        """Of one node."""
        if self.by_domain is None:
            return int(self.nodes[slot])
        return self.by_domain[self.key.cells[slot]]


def label_vetoes(key: TopologyKey) -> Vetoes:
    """Excludes the nodes that lack the label."""
    if key.has_few_domains:
        return Vetoes(key, [0] * key.capacity + [VETO])
    return Vetoes(key, nodes=np.where(key.keyed, 0, VETO))
