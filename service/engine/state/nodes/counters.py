"""Counts of pods in topology domains, and the values of nodes that follow from them.

A counter belongs to one topology key; `add(slot, ±k)` tells it of pods that it counts, so that
nothing is recounted. Which pods it counts is decided once for each class
(`service.engine.state.pods.classes`).

A view has for each node a value that follows from the counts of its domain, and is repaired as they
change. Views are for topology keys of many domains (mostly the hostname), where computing all nodes
anew would cost more than everything else. The least recently used views are forgotten.
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
"""How many changes of a counter its log keeps."""
REPAIRS_MAX = 64
"""If more domains have changed, computing all nodes anew is cheaper."""
VIEWS_BYTES_MAX = 64 * 1024 * 1024
VIEW_OVERHEAD_BYTES = 1_024
"""What a view takes besides its values."""
_NO_COUNTS: Ints = np.zeros(1, dtype=np.int64)
"""The counts of all counters that never counted a pod; the first pod makes an array of their own."""


class DirtyLog:
    """The slots (or domains) that changed, in order, so that a cache repairs only what it missed.

    Old entries are dropped: a reader that needs them gets None from `since`, and has to rebuild.
    """

    __slots__ = ("_entries", "_limit", "_start", "position")

    def __init__(self, limit: int) -> None:
        self._entries: list[int] = []
        self._start = 0
        self._limit = limit
        self.position = 0
        """How many slots were ever appended."""

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
        """Return the slots from `position` on, or None if they are no longer known."""
        if position < self._start:
            return None
        return self._entries[position - self._start :]


class DomainCounter:
    """The number of pods, or of owners of a term, in each domain of a key."""

    __slots__ = ("_cells", "_changed", "_counts", "is_dropped", "key", "total", "users")

    def __init__(self, key: TopologyKey) -> None:
        self.key = key
        self.total = 0
        """The number of pods on nodes that have the key."""
        self.users = 0
        """How many rules of templates use the counter; one that is part of something else has none."""
        self.is_dropped = False
        """Whether nothing uses the counter any more, so that it no longer follows any pods."""
        self._keep(_NO_COUNTS)
        self._changed: DirtyLog | None = None

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
        if self._changed is not None:
            self._changed.append(domain)

    def changed(self) -> DirtyLog:
        """Return the log of the domains whose count has changed since somebody first asked for it."""
        if self._changed is None:
            self._changed = DirtyLog(CHANGE_LOG_MAX)
        return self._changed

    @property
    def counts(self) -> Ints:
        """The counts by domain, shape (capacity + 1,), int64, read-only.

        The last entry is always 0: it is read with the index -1, for nodes without the key.
        """
        if len(self._counts) <= self.key.capacity:
            if not self.total:
                return self.key.zeros
            self._grow()
        return self._counts

    @property
    def is_viewed(self) -> bool:
        """Whether any view was ever made of the counter."""
        return self._changed is not None

    @property
    def size_in_bytes(self) -> int:
        """The size of the counts once there are any."""
        return 8 * (self.key.capacity + 1)

    def in_domain(self, domain: int) -> int:
        return self._cells[domain] if domain < len(self._cells) else 0

    def in_domain_of(self, slot: int) -> int:
        """Return how many are counted in the domain of a node, those on it included; 0 if it has none."""
        domain = self.key.cells[slot]
        return 0 if domain == NO_DOMAIN else self.in_domain(domain)

    def vetoes_by_domain(self) -> list[int]:
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

    def vetoes_by_domain(self) -> list[int]:
        """Return for each domain `VETO` if it is full, else 0; the last entry is 0."""
        return [VETO if full else 0 for full in self.counts.tolist()]


DomainBlocker: TypeAlias = DomainCounter | DomainLimit
"""What closes a domain to a pod: any pod that is counted there, or as many as a rule allows."""


class IncludedNodes:
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

    def counts_match(self) -> bool:
        """Return whether `nodes_of` has as many nodes in each domain as are in the set."""
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

    __slots__ = ("included_nodes",)

    def __init__(self, key: TopologyKey, included_nodes: IncludedNodes) -> None:
        super().__init__(key)
        self.included_nodes = included_nodes

    @override
    def add(self, slot: int, pods: int) -> None:
        if self.included_nodes.admits(slot):
            super().add(slot, pods)


class NodeView(ABC):
    """A view of counters of one topology key."""

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
        """Update the values; return the domains that changed, or None if all may have."""
        changed = self._changed()
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
        """Return whether the values, brought up to date, are what they would be if computed now."""
        return bool(np.array_equal(self.values(), self._key.on_nodes(self._per_domain())))

    @property
    def is_dropped(self) -> bool:
        """Whether one of the counters is no longer kept, so that nobody can ask for the view again."""
        return any(counter.is_dropped for counter in self._counters)

    def _changed(self) -> set[int] | None:
        """Return the domains whose counts changed since the last call, or None if they are many."""
        changed: set[int] = set()
        missed = False
        for index, counter in enumerate(self._counters):
            log = counter.changed()
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
    """`VETO` if the node's domain holds any counted pod, or is full; else 0."""

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


def _counters(held: DomainBlocker) -> Sequence[DomainCounter]:
    if isinstance(held, DomainCounter):
        return (held,)
    return (held.pods,) if held.owners is None else (held.pods, held.owners)


class WeightedTerm(NamedTuple):
    """The part that one term adds to the score of a domain."""

    counter: DomainCounter
    weight: int
    """The weight is negative for anti-affinity."""
    once: bool
    """Whether any number of pods counts as one."""

    def per_domain(self) -> Ints:
        """Return the values of all domains, shape (capacity + 1,), int64."""
        counts = self.counter.counts
        return self.weight * (np.minimum(counts, 1) if self.once else counts)

    def in_domain(self, domain: int) -> int:
        """Return the value of one domain."""
        pods = self.counter.in_domain(domain)
        return self.weight * (min(pods, 1) if self.once else pods)


class WeightedSum(NodeView):
    """The sum of terms of one topology key."""

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
    """The views of one cluster."""

    def __init__(self) -> None:
        self._views: OrderedDict[object, NodeView] = OrderedDict()

    def __len__(self) -> int:
        """Return how many views are kept."""
        return len(self._views)

    def kept(self) -> tuple[NodeView, ...]:
        """Return all views, the least recently used first."""
        return tuple(self._views.values())

    def forget(self) -> None:
        """Drop all views; each is made anew when it is asked for."""
        self._views.clear()

    def forget_dropped(self) -> None:
        """Drop the views of counters that are no longer kept."""
        for name in [name for name, view in self._views.items() if view.is_dropped]:
            del self._views[name]

    def held(self, counter: DomainBlocker) -> Ints:
        """Return `VETO` if the node's domain is closed, else 0; (nodes,), int64, read-only."""
        view = self._views.get(counter)
        return self._values(counter, view or BlockedView(counter))

    def weighted_sum(self, terms: tuple[WeightedTerm, ...]) -> Ints:
        """Return for each node the sum of terms of one key; shape (nodes,), int64, read-only."""
        view = self._views.get(terms)
        return self._values(terms, view or WeightedSum(terms))

    def _values(self, name: object, view: NodeView) -> Ints:
        self._views[name] = view
        self._views.move_to_end(name)
        values = view.values()
        while len(self._views) > max(1, VIEWS_BYTES_MAX // (VIEW_OVERHEAD_BYTES + values.nbytes)):
            self._views.popitem(last=False)
        return values
