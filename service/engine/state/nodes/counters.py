"""Counts of pods per topology domain, and node values derived from them.

A counter belongs to one topology key. `add(slot, ±k)` records the addition or removal of counted
pods, so nothing is ever recounted. Which pods a counter counts is decided once for each class
(`service.engine.state.pods.classes`).

A view holds one value per node, derived from the counts of the node's domain, and is repaired as
the counts change. Views serve topology keys with many domains (mostly the hostname), where
recomputing all nodes would dominate the cost of a placement. The least recently used views are
evicted.
"""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from typing_extensions import override

from service.engine.state.nodes.columns import Column, Ints, Mask
from service.engine.state.nodes.rank import VETO
from service.engine.state.nodes.topology import NO_DOMAIN, TopologyKey

CHANGE_LOG_MAX = 256
"""The number of changes that a counter logs."""
REPAIRS_MAX = 64
"""The number of changed domains above which recomputing all nodes is cheaper."""
VIEWS_BYTES_MAX = 64 * 1024 * 1024
VIEW_OVERHEAD_BYTES = 1_024
"""The size of a view in bytes without its values."""
_NO_COUNTS: Ints = np.zeros(1, dtype=np.int64)
"""The counts shared by all counters that have never counted a pod; the first pod allocates a
counter's own array."""


class DirtyLog:
    """A log of changed slots or domains, so that a cache repairs only what it missed.

    Old entries are dropped. A reader that needs them gets None from `since`, and must rebuild.
    """

    __slots__ = ("_entries", "_limit", "_start", "position")

    def __init__(self, limit: int) -> None:
        self._entries: list[int] = []
        self._start = 0
        self._limit = limit
        self.position = 0
        """The number of slots ever appended."""

    def __len__(self) -> int:
        return len(self._entries)

    def append(self, slot: int) -> None:
        self._entries.append(slot)
        self.position += 1
        if len(self._entries) > self._limit:
            half = len(self._entries) // 2
            del self._entries[:half]
            self._start += half

    def since(self, position: int) -> list[int] | None:
        """Return the slots logged since `position`, or None if some were dropped."""
        if position < self._start:
            return None
        return self._entries[position - self._start :]


class DomainCounter:
    """The number of pods, or of owners of a term, in each domain of a topology key."""

    __slots__ = (
        "_cells",
        "_changed_domains",
        "_counts",
        "_least",
        "is_dropped",
        "key",
        "total",
        "users",
    )

    def __init__(self, key: TopologyKey) -> None:
        self.key = key
        self.total = 0
        """The number of pods on nodes that have the key."""
        self.users = 0
        """The number of template rules that read the counter; 0 for a part of another structure."""
        self.is_dropped = False
        """Whether the counter was dropped as unused, so that it no longer tracks pods."""
        self._least = 0
        """The least count that a domain can have: below 0 only while pods are discounted."""
        self._keep(_NO_COUNTS)
        self._changed_domains: DirtyLog | None = None

    def add(self, slot: int, pods: int) -> None:
        domain = self.key.cells[slot]
        if domain == NO_DOMAIN:
            return
        if domain >= len(self._cells) - 1:
            self._grow()
        after = self._cells[domain] + pods
        assert after >= self._least
        self._cells[domain] = after
        self.total += pods
        if self._changed_domains is not None:
            self._changed_domains.append(domain)

    def discount(self, slot: int, pods: int) -> None:
        """Subtract pods that were never added, so that a count can become negative."""
        domain = self.key.cells[slot]
        if domain == NO_DOMAIN:
            return
        if domain >= len(self._cells) - 1:
            self._grow()
        self._least -= pods
        self._cells[domain] -= pods
        self.total -= pods
        if self._changed_domains is not None:
            self._changed_domains.append(domain)

    def change_log(self) -> DirtyLog:
        """Return the log of domains with changed counts; logging starts with the first call."""
        if self._changed_domains is None:
            self._changed_domains = DirtyLog(CHANGE_LOG_MAX)
        return self._changed_domains

    @property
    def counts(self) -> Ints:
        """The count of each domain, shape (capacity + 1,), int64, read-only.

        The last entry is always 0, and is read by index -1 for nodes without the key.
        """
        if len(self._counts) <= self.key.capacity:
            if not self.total:
                return self.key.zeros
            self._grow()
        return self._counts

    @property
    def is_viewed(self) -> bool:
        """Whether any view of the counter was ever created."""
        return self._changed_domains is not None

    @property
    def size_in_bytes(self) -> int:
        """The size in bytes of the counts once allocated."""
        return 8 * (self.key.capacity + 1)

    def in_domain(self, domain: int) -> int:
        return self._cells[domain] if domain < len(self._cells) else 0

    def in_domain_of(self, slot: int) -> int:
        """Return the count in a node's domain, or 0 if the node has no domain."""
        domain = self.key.cells[slot]
        return 0 if domain == NO_DOMAIN else self.in_domain(domain)

    def vetoes_by_domain(self) -> list[int]:
        """Return `VETO` for each domain that holds pods, and 0 for all others.

        The last entry is 0, for nodes without the key.
        """
        return [VETO if pods else 0 for pods in self.counts.tolist()]

    def _grow(self) -> None:
        grown = np.zeros(self.key.capacity + 1, dtype=np.int64)
        size = len(self._counts) - 1
        grown[:size] = self._counts[:size]
        self._keep(grown)

    def _keep(self, counts: Ints) -> None:
        self._counts = counts
        self._cells = counts.data


class DomainLimit(NamedTuple):
    """The domains that are full for a pod because an anti-affinity term limits their pods."""

    pods: DomainCounter
    """The pods that the term matches."""
    full_at: int
    """The number of pods, at least 1, at which a domain is full."""
    owners: DomainCounter | None = None
    """The placed pods that have the term, if only their domains can be full, or None."""

    @property
    def key(self) -> TopologyKey:
        return self.pods.key

    @property
    def counts(self) -> Ints:
        """The value 1 for each full domain, and 0 for all others, shape (capacity + 1,), int64.

        The last entry is 0, for nodes without the key.
        """
        full = self.pods.counts >= self.full_at
        if self.owners is not None:
            full &= self.owners.counts > 0
        return full.astype(np.int64)

    def in_domain(self, domain: int) -> int:
        """Return 1 if a domain is full, else 0."""
        owned = self.owners is None or self.owners.in_domain(domain) > 0
        return int(owned and self.pods.in_domain(domain) >= self.full_at)

    def vetoes_by_domain(self) -> list[int]:
        """Return `VETO` for each full domain, and 0 for all others; the last entry is 0."""
        return [VETO if full else 0 for full in self.counts.tolist()]


DomainBlocker: TypeAlias = DomainCounter | DomainLimit
"""What excludes a pod from a domain: any counted pod, or as many as a term allows."""


class IncludedNodes:
    """The nodes included in a spread constraint by its keys and node inclusion policies.

    `mask` has the shape (nodes,). For each key, `nodes_of` holds the number of included nodes in
    each domain; domains without any do not exist for the constraint.
    """

    def __init__(self, keys: Iterable[TopologyKey], size: int) -> None:
        self.users = 0
        """The number of spread rules that use this set."""
        self._mask = Column(np.bool_, 0, size)
        self.nodes_of: dict[str, DomainCounter] = {key.name: DomainCounter(key) for key in keys}

    @property
    def mask(self) -> Mask:
        return self._mask.values

    def admits(self, slot: int) -> bool:
        return bool(self._mask.cells[slot])

    def resize(self, size: int) -> None:
        self._mask.resize(size)

    def counts_match(self) -> bool:
        """Return whether `nodes_of` agrees with `mask`."""
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
    """A counter of the pods on included nodes only."""

    __slots__ = ("included_nodes",)

    def __init__(self, key: TopologyKey, included_nodes: IncludedNodes) -> None:
        super().__init__(key)
        self.included_nodes = included_nodes

    @override
    def add(self, slot: int, pods: int) -> None:
        if self.included_nodes.admits(slot):
            super().add(slot, pods)

    @override
    def discount(self, slot: int, pods: int) -> None:
        if self.included_nodes.admits(slot):
            super().discount(slot, pods)


class NodeView(ABC):
    """One int64 value per node, derived from counters of one topology key."""

    __slots__ = ("_counters", "_key", "_key_version", "_seen", "_values")

    def __init__(self, counters: Sequence[DomainCounter]) -> None:
        self._counters = counters
        self._key = counters[0].key
        self._key_version = -1
        self._seen = [0] * len(counters)
        self._values: Ints = np.zeros(0, dtype=np.int64)

    def values(self) -> Ints:
        """Return the values of all nodes, shape (nodes,), int64, read-only."""
        self.repair()
        return self._values

    def repair(self) -> set[int] | None:
        """Update the values, and return the changed domains, or None if all may have changed."""
        changed = self._changed_domains()
        if changed is None or self._key_version != self._key.version:
            self._values = self._key.on_nodes(self._per_domain())
            self._key_version = self._key.version
            return None
        for domain in changed:
            self._key.write(self._values, domain, self._in_domain(domain))
        return changed

    @property
    def size_in_bytes(self) -> int:
        return int(self._values.nbytes)

    def at(self, slot: int) -> int:
        """Return the value of one node, as of the last repair."""
        return self._values.data[slot]

    def holds(self) -> bool:
        """Return whether the values, once repaired, equal freshly computed ones."""
        return bool(np.array_equal(self.values(), self._key.on_nodes(self._per_domain())))

    @property
    def is_dropped(self) -> bool:
        """Whether a counter of the view is dropped, so that the view is never requested again."""
        return any(counter.is_dropped for counter in self._counters)

    def _changed_domains(self) -> set[int] | None:
        """Return the domains changed since the last call, or None if there are too many."""
        changed: set[int] = set()
        missed = False
        for index, counter in enumerate(self._counters):
            log = counter.change_log()
            domains = log.since(self._seen[index])
            self._seen[index] = log.position
            if domains is None:
                missed = True
            else:
                changed.update(domains)
        return None if missed or len(changed) > REPAIRS_MAX else changed

    @abstractmethod
    def _per_domain(self) -> Ints:
        """Return the value of each domain, shape (capacity + 1,), int64.

        The last entry is for nodes without the key.
        """

    @abstractmethod
    def _in_domain(self, domain: int) -> int: ...


class BlockedView(NodeView):
    """`VETO` for nodes in a domain that holds counted pods or is full, and 0 for all others."""

    __slots__ = ("_counter",)

    def __init__(self, counter: DomainBlocker) -> None:
        super().__init__(_counters(counter))
        self._counter = counter

    @override
    def _per_domain(self) -> Ints:
        return np.minimum(self._counter.counts, 1) * VETO

    @override
    def _in_domain(self, domain: int) -> int:
        return VETO if self._counter.in_domain(domain) else 0


def _counters(blocker: DomainBlocker) -> Sequence[DomainCounter]:
    if isinstance(blocker, DomainCounter):
        return (blocker,)
    return (blocker.pods,) if blocker.owners is None else (blocker.pods, blocker.owners)


class WeightedTerm(NamedTuple):
    """The contribution of one affinity term to a domain's score."""

    counter: DomainCounter
    weight: int
    """The weight of the term; negative for anti-affinity."""
    once: bool
    """Whether any positive number of pods counts as one."""

    def per_domain(self) -> Ints:
        """Return the values of all domains, shape (capacity + 1,), int64."""
        counts = self.counter.counts
        return self.weight * (np.minimum(counts, 1) if self.once else counts)

    def in_domain(self, domain: int) -> int:
        """Return the value of one domain."""
        pods = self.counter.in_domain(domain)
        return self.weight * (min(pods, 1) if self.once else pods)


class WeightedSum(NodeView):
    """The sum of the weighted terms of one topology key."""

    __slots__ = ("_terms",)

    def __init__(self, terms: Sequence[WeightedTerm]) -> None:
        super().__init__([term.counter for term in terms])
        self._terms = terms

    @override
    def _per_domain(self) -> Ints:
        per_domain = [term.per_domain() for term in self._terms]
        return sum(per_domain[1:], per_domain[0])

    @override
    def _in_domain(self, domain: int) -> int:
        return sum(term.in_domain(domain) for term in self._terms)


class NodeViews:
    """A cluster's cached views, least recently used first."""

    def __init__(self) -> None:
        self._views: OrderedDict[object, NodeView] = OrderedDict()

    def __len__(self) -> int:
        """Return how many views are cached."""
        return len(self._views)

    def cached(self) -> tuple[NodeView, ...]:
        """Return all views, least recently used first."""
        return tuple(self._views.values())

    def forget(self) -> None:
        """Drop all views, which are rebuilt on demand."""
        self._views.clear()

    def forget_dropped(self) -> None:
        """Drop the views of dropped counters."""
        for name in [name for name, view in self._views.items() if view.is_dropped]:
            del self._views[name]

    def blocked(self, blocker: DomainBlocker) -> Ints:
        """Return `VETO` for nodes in a blocked domain, else 0, shape (nodes,), int64, read-only."""
        view = self._views.get(blocker)
        return self._values(blocker, view or BlockedView(blocker))

    def weighted_sum(self, terms: tuple[WeightedTerm, ...]) -> Ints:
        """Return the sum of terms of one key for each node, shape (nodes,), int64, read-only."""
        view = self._views.get(terms)
        return self._values(terms, view or WeightedSum(terms))

    def _values(self, name: object, view: NodeView) -> Ints:
        self._views[name] = view
        self._views.move_to_end(name)
        values = view.values()
        while len(self._views) > max(1, VIEWS_BYTES_MAX // (VIEW_OVERHEAD_BYTES + values.nbytes)):
            self._views.popitem(last=False)
        return values
