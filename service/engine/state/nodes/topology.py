"""Node labels as columns: for each label key, the id of every node's value, which is its domain.

Arrays over domains have one more entry than there are domains, which is always zero. The id for "no
such label", -1, selects this entry, so `counts[domain_of]` needs no mask.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from typing_extensions import override

from service.engine.state.nodes.columns import Column, Interner, Ints, Mask, Slots
from service.model.core.selectors import parse_integer

NO_DOMAIN: Final = -1
FEW_DOMAINS = 32
"""The maximum number of domains for which plain integers are faster than short arrays."""
_PATTERNS_MAX = 16
KEY_BYTES, DOMAIN_BYTES = 1_536, 224
"""The approximate sizes in bytes of a key without its column, and of one domain."""


class TopologyKey:
    """The domains of one label key, with the slots of their nodes."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.values: Interner[str] = Interner()
        self.members: list[list[int]] = []
        self._labeled = 0
        self.capacity = 4
        self.version = 0
        """Incremented whenever a node enters or leaves a domain."""
        # intp is NumPy's own index type; lookups with a narrower type are several times slower.
        self._column = Column(np.intp, NO_DOMAIN, size)
        self.cells = self._column.cells
        """The memory of `domain_of`, for access to single nodes."""
        self.has_few_domains = self.capacity <= FEW_DOMAINS
        """Whether the capacity is small enough for plain integers."""
        self.is_dropped = False
        """Whether the key was dropped as unused, so that it no longer tracks the nodes."""
        self._keyed: tuple[int, Mask] | None = None
        self._numbers: tuple[int, Ints, Mask] | None = None
        self._zeros: Ints = np.zeros(0, dtype=np.int64)
        self._patterns: dict[tuple[int, ...], Ints] = {}
        self._patterns_version = -1

    @property
    def domain_of(self) -> Slots:
        """The domain of each node, shape (nodes,), intp, or -1 for nodes without the label."""
        return self._column.values

    @property
    def on_every_slot(self) -> bool:
        """Whether every slot, used or free, has the label."""
        return self._labeled == len(self._column.values)

    @property
    def keyed(self) -> Mask:
        """A mask of the nodes that have the label, shape (nodes,), read-only."""
        if self._keyed is None or self._keyed[0] != self.version:
            self._keyed = (self.version, self.domain_of >= 0)
        return self._keyed[1]

    def numbers(self) -> tuple[Ints, Mask]:
        """Return the values as integers and a mask of those that are integers, shape (values + 1,).

        The last entry, for nodes without the label, is not an integer.
        """
        if self._numbers is None or self._numbers[0] != self.version:
            numbers = np.zeros(len(self.values) + 1, dtype=np.int64)
            are_numbers = np.zeros(len(self.values) + 1, dtype=np.bool_)
            for value, index in self.values.items():
                number = parse_integer(value)
                if number is not None:
                    numbers[index], are_numbers[index] = number, True
            self._numbers = (self.version, numbers, are_numbers)
        return self._numbers[1], self._numbers[2]

    @property
    def zeros(self) -> Ints:
        """Zeros for all domains and for nodes without the key, shape (capacity + 1,), read-only."""
        if len(self._zeros) != self.capacity + 1:
            self._zeros = np.zeros(self.capacity + 1, dtype=np.int64)
            self._zeros.flags.writeable = False
        return self._zeros

    @property
    def size_in_bytes(self) -> int:
        """The approximate size in bytes of the column and of the lists of nodes by domain."""
        columns = int(self._column.values.nbytes) + 8 * self._labeled
        return KEY_BYTES + columns + DOMAIN_BYTES * len(self.members)

    def on_nodes(self, per_domain: Ints) -> Ints:
        """Map values by domain, shape (capacity + 1,), to nodes, shape (nodes,), int64."""
        return per_domain.take(self._column.values)

    def write(self, per_node: Ints, domain: int, value: int) -> None:
        """Set the entries of a domain's nodes in a per-node array, shape (nodes,)."""
        members = self.members[domain]
        if len(members) == 1:
            per_node.data[members[0]] = value
        else:
            per_node[members] = value

    def pattern(self, per_domain: Sequence[int]) -> Ints:
        """Map values of few domains to their nodes, shape (nodes,), int64, read-only.

        This is the variant of `on_nodes` for plain integers. Recent results are cached, because the
        same values recur as pods are added and removed.
        """
        if self._patterns_version != self.version:
            self._patterns, self._patterns_version = {}, self.version
        name = tuple(per_domain)
        known = self._patterns.get(name)
        if known is None:
            if len(self._patterns) == _PATTERNS_MAX:
                self._patterns.clear()
            known = self._patterns[name] = self.on_nodes(np.array(name, dtype=np.int64))
        return known

    def resize(self, size: int) -> None:
        self._column.resize(size)
        self.cells = self._column.cells
        self.version += 1

    def enter(self, slot: int, value: str) -> None:
        domain = self.values.intern(value)
        if domain == len(self.members):
            self.members.append([])
            while domain >= self.capacity:
                self.capacity *= 2
            self.has_few_domains = self.capacity <= FEW_DOMAINS
        self.members[domain].append(slot)
        self._labeled += 1
        self._column.values[slot] = domain
        self.version += 1

    def leave(self, slot: int) -> None:
        domain = int(self._column.values[slot])
        if domain == NO_DOMAIN:
            return
        members = self.members[domain]
        members.remove(slot)
        self._labeled -= 1
        if not members:
            value = self.values.values[domain]
            assert value is not None
            self.values.release(value)
        self._column.values[slot] = NO_DOMAIN
        self.version += 1


class NodeItself(TopologyKey):
    """A pseudo key that makes each node a domain of its own; the domain id is the slot."""

    def __init__(self, size: int) -> None:
        super().__init__("", 0)
        self.resize(size)

    @override
    def resize(self, size: int) -> None:
        super().resize(size)
        known = len(self.members)
        self._column.values[known:] = np.arange(known, size)
        self.members += [[slot] for slot in range(known, size)]
        while size > self.capacity:
            self.capacity *= 2
