"""Pods counted per topology domain, kept up to date by every change instead of recounted.

A counter belongs to one topology key and is told of each pod that it counts by `add(slot, ±k)`.
Who is told of what is decided once per pod class (`service.engine.classes`).
"""

from collections.abc import Iterable

import numpy as np
from typing_extensions import override

from service.engine.columns import Column, DirtyLog, Ints, Mask
from service.engine.topology import NO_DOMAIN, TopologyKey

REPAIR_LIMIT = 64
"""More crossed domains than this are cheaper to read anew."""


class DomainCounter:
    """How many pods (or owners of a term) each domain of a key holds."""

    __slots__ = ("_counts", "_crossed", "_key_version", "_presence", "_seen", "key", "total")

    def __init__(self, key: TopologyKey) -> None:
        self.key = key
        self.total = 0
        """Pods on nodes that have the key."""
        self._counts: Ints = np.zeros(key.capacity + 1, dtype=np.int64)
        self._crossed = DirtyLog(limit=256)
        self._presence: Mask | None = None
        self._key_version = -1
        self._seen = 0

    def add(self, slot: int, pods: int) -> None:
        domain = int(self.key.domain_of[slot])
        if domain == NO_DOMAIN:
            return
        if domain >= len(self._counts) - 1:
            self._grow()
        before = int(self._counts[domain])
        after = before + pods
        assert after >= 0
        self._counts[domain] = after
        self.total += pods
        if (before == 0) != (after == 0):
            self._crossed.append(domain)

    @property
    def counts(self) -> Ints:
        """Shape (capacity + 1,): pods per domain; the last entry is zero, for index -1."""
        if len(self._counts) <= self.key.capacity:
            self._grow()
        return self._counts

    def per_node(self) -> Ints:
        """Shape (nodes,): the count of each node's domain, 0 without the key."""
        return self.counts.take(self.key.domain_of)

    def presence(self) -> Mask:
        """Shape (nodes,), read-only: whether the node's domain holds any.

        Repaired for the domains that became empty or occupied since the last call.
        """
        crossed = self._crossed.since(self._seen)
        if (
            self._presence is None
            or self._key_version != self.key.version
            or crossed is None
            or len(crossed) > REPAIR_LIMIT
        ):
            self._presence = self.per_node() > 0
            self._key_version = self.key.version
        else:
            for domain in crossed:
                self._presence[self.key.members[domain]] = self._counts[domain] > 0
        self._seen = self._crossed.position
        return self._presence

    def _grow(self) -> None:
        grown = np.zeros(self.key.capacity + 1, dtype=np.int64)
        kept = len(self._counts) - 1
        grown[:kept] = self._counts[:kept]
        self._counts = grown


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

    def resize(self, size: int) -> None:
        self._mask.resize(size)

    def enter(self, slot: int) -> None:
        self._mask.values[slot] = True
        for counter in self.nodes_of.values():
            counter.add(slot, 1)

    def leave(self, slot: int) -> None:
        if not self._mask.values[slot]:
            return
        self._mask.values[slot] = False
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
        if self.eligibility.mask[slot]:
            super().add(slot, pods)
