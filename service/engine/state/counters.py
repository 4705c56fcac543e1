"""Pods counted per topology domain, kept up to date by every change instead of recounted.

A counter belongs to one topology key and is told of each pod that it counts by `add(slot, ±k)`.
Who is told of what is decided once per pod class (`service.engine.state.classes`).
"""

from collections.abc import Iterable

import numpy as np
from typing_extensions import override

from service.engine.state.columns import Column, DirtyLog, Ints, Mask
from service.engine.state.rank_bits import VETO
from service.engine.state.topology import NO_DOMAIN, TopologyKey


class DomainCounter:
    """How many pods (or owners of a term) each domain of a key holds."""

    __slots__ = ("_cells", "_counts", "changed", "key", "total")

    def __init__(self, key: TopologyKey) -> None:
        self.key = key
        self.total = 0
        """Pods on nodes that have the key."""
        self._keep(np.zeros(key.capacity + 1, dtype=np.int64))
        self.changed = DirtyLog(limit=256)
        """Domains whose count changed."""

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
        """Shape (capacity + 1,): pods per domain; the last entry is zero, for index -1."""
        if len(self._counts) <= self.key.capacity:
            self._grow()
        return self._counts

    def in_domain(self, domain: int) -> int:
        return self._cells[domain] if domain < len(self._cells) else 0

    def held_domains(self) -> list[int]:
        """Per domain `VETO` if it holds any, else 0; last, 0 for nodes without the key."""
        return [VETO if pods else 0 for pods in self.counts.tolist()]

    def _grow(self) -> None:
        grown = np.zeros(self.key.capacity + 1, dtype=np.int64)
        kept = len(self._counts) - 1
        grown[:kept] = self._counts[:kept]
        self._keep(grown)

    def _keep(self, counts: Ints) -> None:
        self._counts = counts
        self._cells = counts.data


class Eligibility:
    """A set of nodes that spreading counts over: those with all keys that the policies let in.

    `mask` has the shape (nodes,). `nodes_of` gives, per key, the eligible nodes per domain, which
    says what domains there are.
    """

    def __init__(self, keys: Iterable[TopologyKey], size: int) -> None:
        self.users = 0
        """Spread rules that count over this set."""
        self._mask = Column(np.bool_, 0, size)
        self.nodes_of: dict[str, DomainCounter] = {key.name: DomainCounter(key) for key in keys}

    @property
    def mask(self) -> Mask:
        return self._mask.values

    def admits(self, slot: int) -> bool:
        return bool(self._mask.cells[slot])

    def resize(self, size: int) -> None:
        self._mask.resize(size)

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
    """Counts only pods on eligible nodes."""

    __slots__ = ("eligibility",)

    def __init__(self, key: TopologyKey, eligibility: Eligibility) -> None:
        super().__init__(key)
        self.eligibility = eligibility

    @override
    def add(self, slot: int, pods: int) -> None:
        if self.eligibility.admits(slot):
            super().add(slot, pods)
