"""Sets of nodes that objects select: by node affinity, by zones, by topologies, by a selector.

Many objects select the same nodes, such as those of a zone. A set is worked out once for each
distinct rule and kept until a node comes, goes, or gets other labels.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator

import msgspec
import numpy as np

from service.engine.state.nodes.columns import ALL, Mask
from service.engine.state.nodes.node_selectors import holds_by_value, term_mask
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.nodes.rank import VETO
from service.engine.state.nodes.topology import TopologyKey
from service.engine.state.nodes.vetoes import Vetoes
from service.model.objects.persistent_volumes import ZONE_KEYS, Topology, ZoneLabels
from service.model.objects.pods_and_nodes import LabelSelector, NodeSelector

FEW_NODES = 32
"""Up to so many nodes are looked at one by one, in plain integers."""
BYTES_MAX = 32 * 1024 * 1024
OVERHEAD_BYTES = 512
BETA_PREFIX, PREFIX = "failure-domain.beta.kubernetes.io/", "topology.kubernetes.io/"


class NodeSet:
    """Some of the nodes."""

    __slots__ = ("_key_version", "_size", "keys", "size_in_bytes", "slots", "vetoes")

    def __init__(self, nodes: NodeTable, mask: Mask, keys: Iterable[str]) -> None:
        """`keys` are the labels on which it depends who is in the set."""
        self.keys = tuple(keys)
        self._size = nodes.size
        self.slots: tuple[int, ...] | None = None
        """The nodes, where they are few."""
        inside = mask & nodes.alive
        if np.count_nonzero(inside) <= FEW_NODES:
            self.slots = tuple(np.flatnonzero(inside).tolist())
            self.vetoes = Vetoes(nodes.itself, only=self.slots)
        else:
            self.vetoes = _by_domain(nodes, inside, self.keys) or Vetoes(
                nodes.itself, nodes=np.where(inside, 0, VETO)
            )
        self._key_version = self.vetoes.key.version
        is_wide = self.slots is None and self.vetoes.by_domain is None
        self.size_in_bytes = OVERHEAD_BYTES + (8 * self._size if is_wide else 0)

    @property
    def is_current(self) -> bool:
        """Whether the domains by which it is told are still numbered as they were.

        A node that is described anew leaves its domains and enters them again.
        """
        return self.vetoes.key.version == self._key_version

    @property
    def mask(self) -> Mask:
        """Shape (nodes,): who is in the set."""
        if self.slots is None:
            inside: Mask = self.vetoes.nodes == 0
            return inside
        mask = np.zeros(self._size, dtype=np.bool_)
        mask[list(self.slots)] = True
        return mask


def _by_domain(nodes: NodeTable, inside: Mask, keys: Iterable[str]) -> Vetoes | None:
    """The set by the domains of a key of few domains; None if it divides a domain of each key."""
    for name in keys:
        key = nodes.key(name)
        if not key.has_few_domains:
            continue
        every = _count(key, nodes.alive)
        within = _count(key, inside)
        if ((within == 0) | (within == every)).all():
            vetoed = np.where(within == 0, VETO, 0).tolist()
            return Vetoes(key, [*vetoed[1:], vetoed[0]])
    return None


def _count(key: TopologyKey, mask: Mask) -> np.ndarray[tuple[int, ...], np.dtype[np.intp]]:
    """Shape (capacity + 1,): how many nodes of each domain; first, of those without the label."""
    return np.bincount(key.domain_of[mask] + 1, minlength=key.capacity + 1)


class NodeSets:
    """The sets that were asked for, the least recently used going first."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._seen = -1
        self._known: OrderedDict[Hashable, NodeSet] = OrderedDict()
        self._bytes = 0

    def of_affinity(self, selector: NodeSelector, identity: bytes) -> NodeSet:
        """Return the nodes that match a node selector; an empty term matches none."""
        return self._get(
            ("affinity", identity), lambda: self._affine(selector), lambda: _keys_of(selector)
        )

    def of_zones(self, zones: ZoneLabels) -> NodeSet:
        """The nodes in the zones and regions of a volume; a node without any is everywhere."""
        return self._get(("zones", zones), lambda: self._zoned(zones), lambda: ZONE_KEYS)

    def of_topologies(self, topologies: tuple[Topology, ...]) -> NodeSet:
        """Return the nodes for which volumes can be made."""
        return self._get(
            ("topologies", topologies),
            lambda: self._allowed(topologies),
            lambda: dict.fromkeys(key for term in topologies for key, _ in term),
        )

    def of_selector(self, selector: LabelSelector) -> NodeSet:
        """Return the nodes whose labels match a label selector."""
        return self._get(
            ("selector", msgspec.json.encode(selector)),
            lambda: self._selected(selector),
            lambda: dict.fromkeys(
                (
                    *(selector.match_labels or {}),
                    *(expression.key for expression in selector.match_expressions or ()),
                )
            ),
        )

    def _get(
        self,
        identity: Hashable,
        mask: Callable[[], Mask],
        keys: Callable[[], Iterable[str]],
    ) -> NodeSet:
        if self._seen != self._nodes.labels_version:
            for each in self._known.values():
                self._nodes.release_keys(each.keys)
            self._known.clear()
            self._bytes = 0
            self._seen = self._nodes.labels_version
        found = self._known.get(identity)
        if found is not None:
            if found.is_current:
                self._known.move_to_end(identity)
                return found
            self._drop(self._known.pop(identity))
        made = self._known[identity] = NodeSet(self._nodes, mask(), keys())
        self._nodes.hold_keys(made.keys)
        self._bytes += made.size_in_bytes
        while self._bytes > BYTES_MAX and len(self._known) > 1:
            _, oldest = self._known.popitem(last=False)
            self._drop(oldest)
        return made

    def _drop(self, node_set: NodeSet) -> None:
        self._bytes -= node_set.size_in_bytes
        self._nodes.release_keys(node_set.keys)

    def sizes(self) -> Iterator[int]:
        """Yield about the size in bytes of each set."""
        yield from (each.size_in_bytes for each in self._known.values())

    def _affine(self, selector: NodeSelector) -> Mask:
        mask = np.zeros(self._nodes.size, dtype=np.bool_)
        for term in selector.node_selector_terms:
            mask |= term_mask(self._nodes, term, ALL, empty=False)
        return mask

    def _zoned(self, zones: ZoneLabels) -> Mask:
        nowhere = ~np.logical_or.reduce([self._nodes.key(name).keyed for name in ZONE_KEYS])
        inside = np.ones(self._nodes.size, dtype=np.bool_)
        for name, values in zones:
            has = self._has(name, values)
            if name.startswith(BETA_PREFIX):
                # A node with the newer label alone is in the zone of that.
                newer = self._has(name.replace(BETA_PREFIX, PREFIX), values)
                has = np.where(self._nodes.key(name).keyed, has, newer)
            inside &= has
        everywhere: Mask = nowhere | inside
        return everywhere

    def _allowed(self, topologies: tuple[Topology, ...]) -> Mask:
        """Any of the terms, each with all its labels; one without any matches nothing."""
        mask = np.zeros(self._nodes.size, dtype=np.bool_)
        for term in topologies:
            if term:
                mask |= np.logical_and.reduce([self._has(key, values) for key, values in term])
        return mask

    def _selected(self, selector: LabelSelector) -> Mask:
        mask = np.ones(self._nodes.size, dtype=np.bool_)
        for name, value in (selector.match_labels or {}).items():
            mask &= self._has(name, (value,))
        for requirement in selector.match_expressions or ():
            key = self._nodes.key(requirement.key)
            mask &= holds_by_value(requirement, key).take(key.domain_of)
        return mask

    def _has(self, name: str, values: Iterable[str]) -> Mask:
        """Return the nodes that have one of these values of a label."""
        key = self._nodes.key(name)
        table = np.zeros(len(key.values) + 1, dtype=np.bool_)
        for value in values:
            index = key.values.ids.get(value)
            if index is not None:
                table[index] = True
        mask: Mask = table.take(key.domain_of)
        return mask


def _keys_of(selector: NodeSelector) -> Iterable[str]:
    return dict.fromkeys(
        each.key
        for term in selector.node_selector_terms
        for each in (term.match_expressions if term else None) or ()
    )
