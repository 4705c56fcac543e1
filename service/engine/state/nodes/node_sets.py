"""Sets of nodes that objects select by node affinity, zones, topologies, or label selector.

Many objects select the same nodes, such as those of a zone. A set is computed once per distinct
rule, and cached until a node is added, removed, or relabeled.
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
from service.model.core.primitives import LabelSelector, NodeSelector
from service.model.volumes.volume import ZONE_KEYS, Topology, ZoneLabels

FEW_NODES = 32
"""The number of nodes up to which each is checked separately, using plain integers."""
BYTES_MAX = 32 * 1024 * 1024
OVERHEAD_BYTES = 512
BETA_PREFIX, PREFIX = "failure-domain.beta.kubernetes.io/", "topology.kubernetes.io/"


class NodeSet:
    """A set of nodes, stored by slot or as vetoes."""

    __slots__ = ("_key_version", "_size", "keys", "size_in_bytes", "slots", "vetoes")

    def __init__(self, nodes: NodeTable, mask: Mask, keys: Iterable[str]) -> None:
        """Store the nodes in `mask`, whose membership depends on the labels `keys`."""
        self.keys = tuple(keys)
        self._size = nodes.size
        self.slots: tuple[int, ...] | None = None
        """The slots of the nodes if there are few, or None."""
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
        """Whether the domain ids that the set stores its nodes by are still valid.

        They may change when a node is updated, since it leaves and reenters its domains.
        """
        return self.vetoes.key.version == self._key_version

    @property
    def mask(self) -> Mask:
        """The nodes in the set, shape (nodes,)."""
        if self.slots is None:
            inside: Mask = self.vetoes.nodes == 0
            return inside
        mask = np.zeros(self._size, dtype=np.bool_)
        mask[list(self.slots)] = True
        return mask


def _by_domain(nodes: NodeTable, inside: Mask, keys: Iterable[str]) -> Vetoes | None:
    """Return the set as whole domains of a key with few domains, or None if no key allows that."""
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
    """Count the nodes by domain, shape (capacity + 1,); first, those without the label."""
    return np.bincount(key.domain_of[mask] + 1, minlength=key.capacity + 1)


class NodeSets:
    """The cached node sets of a cluster; the least recently used are evicted."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._seen = -1
        self._known: OrderedDict[Hashable, NodeSet] = OrderedDict()
        self._bytes = 0

    def of_affinity(self, selector: NodeSelector, identity: bytes) -> NodeSet:
        """Return the nodes that match a node selector; an empty term matches no node."""
        return self._get(
            ("affinity", identity),
            lambda: self._affinity_mask(selector),
            lambda: _keys_of(selector),
        )

    def of_zones(self, zones: ZoneLabels) -> NodeSet:
        """Return the nodes in a volume's zones and regions, and the nodes without zone labels."""
        return self._get(("zones", zones), lambda: self._zone_mask(zones), lambda: ZONE_KEYS)

    def of_topologies(self, topologies: tuple[Topology, ...]) -> NodeSet:
        """Return the nodes where a StorageClass provisions volumes (`allowedTopologies`)."""
        return self._get(
            ("topologies", topologies),
            lambda: self._topology_mask(topologies),
            lambda: dict.fromkeys(key for term in topologies for key, _ in term),
        )

    def of_selector(self, selector: LabelSelector) -> NodeSet:
        """Return the nodes whose labels match a label selector."""
        return self._get(
            ("selector", msgspec.json.encode(selector)),
            lambda: self._selector_mask(selector),
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
            for node_set in self._known.values():
                self._nodes.release_keys(node_set.keys)
            self._known.clear()
            self._bytes = 0
            self._seen = self._nodes.labels_version
        known = self._known.get(identity)
        if known is not None:
            if known.is_current:
                self._known.move_to_end(identity)
                return known
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
        """Yield the approximate size in bytes of each set."""
        yield from (node_set.size_in_bytes for node_set in self._known.values())

    def _affinity_mask(self, selector: NodeSelector) -> Mask:
        mask = np.zeros(self._nodes.size, dtype=np.bool_)
        for term in selector.node_selector_terms:
            mask |= term_mask(self._nodes, term, ALL, empty=False)
        return mask

    def _zone_mask(self, zones: ZoneLabels) -> Mask:
        nowhere = ~np.logical_or.reduce([self._nodes.key(name).keyed for name in ZONE_KEYS])
        inside = np.ones(self._nodes.size, dtype=np.bool_)
        for name, values in zones:
            has = self._label_mask(name, values)
            if name.startswith(BETA_PREFIX):
                # A node with only the newer label is in the zone that it names.
                newer = self._label_mask(name.replace(BETA_PREFIX, PREFIX), values)
                has = np.where(self._nodes.key(name).keyed, has, newer)
            inside &= has
        everywhere: Mask = nowhere | inside
        return everywhere

    def _topology_mask(self, topologies: tuple[Topology, ...]) -> Mask:
        """Return the nodes that match all labels of any term; an empty term matches no node."""
        mask = np.zeros(self._nodes.size, dtype=np.bool_)
        for term in topologies:
            if term:
                mask |= np.logical_and.reduce(
                    [self._label_mask(key, values) for key, values in term]
                )
        return mask

    def _selector_mask(self, selector: LabelSelector) -> Mask:
        mask = np.ones(self._nodes.size, dtype=np.bool_)
        for name, value in (selector.match_labels or {}).items():
            mask &= self._label_mask(name, (value,))
        for requirement in selector.match_expressions or ():
            key = self._nodes.key(requirement.key)
            mask &= holds_by_value(requirement, key).take(key.domain_of)
        return mask

    def _label_mask(self, name: str, values: Iterable[str]) -> Mask:
        """Return the nodes whose label has one of these values."""
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
        expression.key
        for term in selector.node_selector_terms
        for expression in (term.match_expressions if term else None) or ()
    )
