"""Counts of pods in topology domains, updated with every change instead of recounted.

A counter belongs to one topology key; `add(slot, ±k)` tells it of pods that it counts. Which pods
it counts is decided once for each class (`service.engine.state.pod_classes.pod_classes`).
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import numpy as np
from typing_extensions import override

from service.engine.state.node_columns.columns import Column, DirtyLog, Ints, Mask
from service.engine.state.node_columns.rank_as_one_integer import VETO
from service.engine.state.node_columns.topology import NO_DOMAIN, TopologyKey


class DomainCounter:
    """The number of pods, or of owners of a term, in each domain of a key."""

    __slots__ = ("_cells", "_counts", "changed", "key", "total")

    def __init__(self, key: TopologyKey) -> None:
        self.key = key
        self.total = 0
        """The number of pods on nodes that have the key."""
        self._keep(np.zeros(key.capacity + 1, dtype=np.int64))
        self.changed = DirtyLog(limit=256)
        """The domains whose count has changed."""

    def add(self, slot: int, pods: int) -> None:
        domain = self.key.cells[slot]
        if domain == NO_DOMAIN:
            return
        if domain >= len(self._cells) - 1:
            self._grow()
        after = self._cells[domain] + pods
        assert after >= 0
        self._cells[domain] = after
        self.total += pods
        self.changed.append(domain)

    @property
    def counts(self) -> Ints:
        """The counts by domain, shape (capacity + 1,), int64.

        The last entry is always 0: it is read with the index -1, for nodes without the key.
        """
        if len(self._counts) <= self.key.capacity:
            self._grow()
        return self._counts

    def in_domain(self, domain: int) -> int:
        return self._cells[domain] if domain < len(self._cells) else 0

    def beside(self, slot: int) -> int:
        """Return how many are counted in the domain of a node, those on it included; 0 if it has none."""
        domain = self.key.cells[slot]
        return 0 if domain == NO_DOMAIN else self.in_domain(domain)

    def held_domains(self) -> list[int]:
        """Return for each domain `VETO` if it holds any pod, else 0.

        The last entry is 0, for nodes without the key.
        """
        return [VETO if pods else 0 for pods in self.counts.tolist()]

    def _grow(self) -> None:
        grown = np.zeros(self.key.capacity + 1, dtype=np.int64)
        kept = len(self._counts) - 1
        grown[:kept] = self._counts[:kept]
        self._keep(grown)

    def _keep(self, counts: Ints) -> None:
        self._counts = counts
        self._cells = counts.data


class DomainLimit(NamedTuple):
    """The domains that are full for a pod, as a rule of anti-affinity allows no more in them."""

    pods: DomainCounter
    """The pods that the rule matches."""
    full_at: int
    """With so many of them, at least 1, a domain takes the pod no longer."""
    owners: DomainCounter | None = None
    """The pods that have the rule, if they are placed: only their domains can be full."""

    @property
    def key(self) -> TopologyKey:
        return self.pods.key

    @property
    def counts(self) -> Ints:
        """Return 1 for each full domain, else 0, shape (capacity + 1,), int64.

        The last entry is 0, for nodes without the key.
        """
        full = self.pods.counts >= self.full_at
        if self.owners is not None:
            full &= self.owners.counts > 0
        return full.astype(np.int64)

    def in_domain(self, domain: int) -> int:
        """Return 1 for a full domain, else 0."""
        owned = self.owners is None or self.owners.in_domain(domain) > 0
        return int(owned and self.pods.in_domain(domain) >= self.full_at)

    def held_domains(self) -> list[int]:
        """Return for each domain `VETO` if it is full, else 0; the last entry is 0."""
        return [VETO if full else 0 for full in self.counts.tolist()]


Held: TypeAlias = DomainCounter | DomainLimit
"""What closes a domain to a pod: any pod that is counted there, or as many as a rule allows."""


class Eligibility:
    """A set of nodes over which spreading counts: those with all keys that the policies let in.

    `mask` has the shape (nodes,). `nodes_of` has for each key the number of eligible nodes in each
    domain: a domain exists for the constraint if it has any.
    """

    def __init__(self, keys: Iterable[TopologyKey], size: int) -> None:
        self.users = 0
        """How many spread rules count over this set."""
        self._mask = Column(np.bool_, 0, size)
        self.nodes_of: dict[str, DomainCounter] = {key.name: DomainCounter(key) for key in keys}

    @property
    def mask(self) -> Mask:
        return self._mask.values

    def admits(self, slot: int) -> bool:
        return bool(self._mask.cells[slot])

    def resize(self, size: int) -> None:
        self._mask.resize(size)

    def counts_its_nodes(self) -> bool:
        """Whether `nodes_of` has as many nodes in each domain as are in the set."""
        for counter in self.nodes_of.values():
            domains = counter.key.domain_of[self.mask]
            size = counter.key.capacity
            if not np.array_equal(counter.counts[:size], np.bincount(domains, minlength=size)):
                return False
        return True

    def enter(self, slot: int) -> None:
        self._mask.cells[slot] = True
        for counter in self.nodes_of.values():
            counter.add(slot, 1)

    def leave(self, slot: int) -> None:
        if not self._mask.cells[slot]:
            return
        self._mask.cells[slot] = False
        for counter in self.nodes_of.values():
            counter.add(slot, -1)


class SpreadCounter(DomainCounter):
    """Counts only the pods on eligible nodes."""

    __slots__ = ("eligibility",)

    def __init__(self, key: TopologyKey, eligibility: Eligibility) -> None:
        super().__init__(key)
        self.eligibility = eligibility

    @override
    def add(self, slot: int, pods: int) -> None:
        if self.eligibility.admits(slot):
            super().add(slot, pods)
