"""Vetoes: the nodes that one rule excludes, by domain or by node."""

import numpy as np

from service.engine.state.nodes.columns import Ints
from service.engine.state.nodes.rank import VETO
from service.engine.state.nodes.topology import TopologyKey


class Vetoes:
    """The nodes that one rule excludes, as `VETO` for these and 0 for all others."""

    __slots__ = ("_nodes", "by_domain", "key", "only")

    def __init__(
        self,
        key: TopologyKey,
        by_domain: list[int] | None = None,
        nodes: Ints | None = None,
        only: tuple[int, ...] | None = None,
    ) -> None:
        """Store the values by domain, for a key with few domains, or by node.

        The last entry of `by_domain` is for nodes without the key. If few nodes are allowed, `only`
        holds their slots, and each node's domain is the one that `key` assigns.
        """
        self.key = key
        self.by_domain = by_domain
        self.only = only
        self._nodes = nodes

    @property
    def may_exclude(self) -> bool:
        """Whether any node may be excluded; False only if that is cheap to prove."""
        if self.only is not None:
            return True
        if self.by_domain is None or not self.key.on_every_slot:
            return True
        return any(
            veto and slots for veto, slots in zip(self.by_domain, self.key.members, strict=False)
        )

    @property
    def nodes(self) -> Ints:
        """The values of all nodes, shape (nodes,), int64, read-only."""
        if self._nodes is None:
            if self.only is None:
                self._nodes = self.key.pattern(self.by_domain or ())
            else:
                self._nodes = np.full(len(self.key.domain_of), VETO, dtype=np.int64)
                self._nodes[list(self.only)] = 0
        return self._nodes

    @property
    def open_nodes(self) -> int:
        """The number of nodes that have a key with few domains and are not excluded."""
        pairs = zip(self.by_domain or (), self.key.members, strict=False)
        return sum(len(slots) for veto, slots in pairs if not veto)

    def at(self, slot: int) -> int:
        """Return the value of one node."""
        if self.only is not None:
            return 0 if slot in self.only else VETO
        if self.by_domain is None:
            return int(self.nodes[slot])
        return self.by_domain[self.key.cells[slot]]


def label_vetoes(key: TopologyKey) -> Vetoes:
    """Return vetoes of the nodes that lack a label."""
    if key.has_few_domains:
        return Vetoes(key, [0] * key.capacity + [VETO])
    return Vetoes(key, nodes=np.where(key.keyed, 0, VETO))
