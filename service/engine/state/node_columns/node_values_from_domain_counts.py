"""Views: for each node a value that follows from the counts of its domain, repaired as they change.

They are for topology keys of many domains (mostly the hostname), where computing all nodes anew
would cost more than everything else. The least recently used views are forgotten.
"""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from typing_extensions import override

from service.engine.state.node_columns.columns import Ints
from service.engine.state.node_columns.pod_counts_by_domain import DomainCounter, Held
from service.engine.state.node_columns.rank_as_one_integer import VETO

REPAIRS_MAX = 64
"""If more domains have changed, computing all nodes anew is cheaper."""
VIEWS_BYTES_MAX = 64 * 1024 * 1024


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
        """Whether the values, brought up to date, are what they would be if computed now."""
        return bool(np.array_equal(self.values(), self._key.on_nodes(self._per_domain())))

    def _changed(self) -> set[int] | None:
        """Return the domains whose counts changed since the last call; None if they are many."""
        changed: set[int] = set()
        missed = False
        for index, counter in enumerate(self._counters):
            domains = counter.changed.since(self._seen[index])
            self._seen[index] = counter.changed.position
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


class HeldView(NodeView):
    """`VETO` if the node's domain holds any counted pod, or is full; else 0."""

    __slots__ = ("_counter",)

    def __init__(self, counter: Held) -> None:
        super().__init__(_counters(counter))
        self._counter = counter

    @override
    def _per_domain(self) -> Ints:
        return np.minimum(self._counter.counts, 1) * VETO

    @override
    def _in_domain(self, domain: int) -> int:
        return VETO if self._counter.in_domain(domain) else 0


def _counters(held: Held) -> Sequence[DomainCounter]:
    if isinstance(held, DomainCounter):
        return (held,)
    return (held.pods,) if held.owners is None else (held.pods, held.owners)


class Weighed(NamedTuple):
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


class WeighedSum(NodeView):
    """The sum of terms of one topology key."""

    __slots__ = ("_terms",)

    def __init__(self, terms: Sequence[Weighed]) -> None:
        super().__init__([each.counter for each in terms])
        self._terms = terms

    @override
    def _per_domain(self) -> Ints:
        per_domain = [each.per_domain() for each in self._terms]
        return sum(per_domain[1:], per_domain[0])

    @override
    def _in_domain(self, domain: int) -> int:
        return sum(each.in_domain(domain) for each in self._terms)


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

    def held(self, counter: Held) -> Ints:
        """Return `VETO` if the node's domain is closed, else 0; (nodes,), int64, read-only."""
        view = self._views.get(counter)
        return self._values(counter, view or HeldView(counter))

    def weighed(self, terms: tuple[Weighed, ...]) -> Ints:
        """Return for each node the sum of terms of one key; shape (nodes,), int64, read-only."""
        view = self._views.get(terms)
        return self._values(terms, view or WeighedSum(terms))

    def _values(self, name: object, view: NodeView) -> Ints:
        self._views[name] = view
        self._views.move_to_end(name)
        values = view.values()
        while len(self._views) > max(1, VIEWS_BYTES_MAX // max(1, values.nbytes)):
            self._views.popitem(last=False)
        return values
