"""Opportunity cost: the nodes that a pod with anti-affinity against all pods denies to others.

The source is the section "Denial of Service" in the design of inter-pod affinity. A placed pod
costs the domain of its node. A pending pod costs the largest or the average domain of the nodes
that its own node affinity admits. If a pod has several topology keys, the most expensive one
counts; for nested domains (nodes in zones) this is exactly what they take together.
"""

from typing import NamedTuple

import numpy as np

from service.engine.cluster import Cluster
from service.engine.state.nodes.columns import ALL, Ints, Mask
from service.engine.state.nodes.node_rules import (
    NodeRules,
    size_of_rules,
)
from service.engine.state.nodes.node_selectors import required_mask
from service.engine.state.nodes.node_table import NodeTable
from service.model.pods.pod import Pod

REMEMBERED_MAX = 1_024
"""The maximum number of cached costs of pending pods; exceeding it clears the cache."""
KEYS_REMEMBERED_MAX = 16
"""The maximum number of sets of topology keys with cached extents; exceeding it clears the cache.
"""
REMEMBERED_BYTES_MAX = 8 * 1024 * 1024
"""The approximate maximum size in bytes of the rules in the cache of costs."""
_AMOUNT_MAX = 2**48
"""The cap on a node's amount of a resource, so that sums fit in int64."""

TopologyKeys = tuple[str, ...]


class Extent(NamedTuple):
    """A part of the cluster: cpu in milli-units, memory in bytes, and the number of nodes."""

    cpu: int
    memory: int
    nodes: int


NOTHING = Extent(0, 0, 0)


class OpportunityCosts:
    """Computes opportunity costs of pods; valid until a node is added, removed, or changed."""

    def __init__(self, cluster: Cluster, *, average: bool) -> None:
        self._cluster = cluster
        self._average = average
        self._columns = _allocatable(cluster.nodes)
        self._taken: dict[TopologyKeys, Ints] = {}
        self._to_come: dict[tuple[NodeRules, TopologyKeys], Extent] = {}
        self._to_come_bytes = 0
        """The approximate size in bytes of the cached rules."""

    def cost(self, pod: Pod, keys: TopologyKeys) -> Extent:
        """Return the cost of a pod under one or more topology keys.

        The cost is that of the pod's node or, for a pending pod, of the nodes that it may be placed
        on. A pod bound to a missing node costs nothing until that node is added.
        """
        if pod.node_name is None:
            return self._expected_cost(pod, keys)
        slot = self._cluster.nodes.slots.get(pod.node_name)
        return NOTHING if slot is None else _extent(self._taken_under(keys)[:, slot])

    def _expected_cost(self, pod: Pod, keys: TopologyKeys) -> Extent:
        rules = self._cluster.class_of(pod).template.rules
        extent = self._to_come.get((rules, keys))
        if extent is None:
            self._to_come_bytes += size_of_rules(rules.static_key)
            too_large = self._to_come_bytes > REMEMBERED_BYTES_MAX
            if too_large or len(self._to_come) >= REMEMBERED_MAX:
                self._to_come.clear()
                self._to_come_bytes = 0
            taken = self._taken_under(keys)[:, _left_by(self._cluster.nodes, rules)]
            extent = self._to_come[rules, keys] = self._typical(taken)
        return extent

    def _typical(self, taken: Ints) -> Extent:
        """Return the average (rounded up) or the maximum of each row of shape (3, nodes)."""
        count = taken.shape[1]
        if not count:
            return NOTHING
        return _extent(-(-taken.sum(axis=1) // count) if self._average else taken.max(axis=1))

    def _taken_under(self, keys: TopologyKeys) -> Ints:
        """Return the cost of a pod on each node, shape (3, nodes)."""
        if keys not in self._taken:
            if len(self._taken) >= KEYS_REMEMBERED_MAX:
                self._taken.clear()
            by_key = [_domains(self._cluster.nodes, self._columns, key) for key in keys]
            self._taken[keys] = np.maximum.reduce(by_key)
        return self._taken[keys]


def _allocatable(nodes: NodeTable) -> Ints:
    """Return each node's cpu, memory, and count (1), shape (3, nodes), int64; 0 for free slots."""
    columns = (nodes.allocatable("cpu"), nodes.allocatable("memory"), nodes.alive)
    stacked: Ints = np.minimum(np.stack(columns).astype(np.int64), _AMOUNT_MAX)
    return stacked


def _domains(nodes: NodeTable, columns: Ints, name: str) -> Ints:
    """Return sums over each node's domain, shape (3, nodes), which are 0 for nodes without the key.

    If no node has the key, the whole cluster counts as one domain.
    """
    key = nodes.key(name)
    if not key.keyed.any():
        return np.repeat(columns.sum(axis=1, keepdims=True), nodes.size, axis=1)
    sums = np.zeros((len(columns), len(key.members) + 1), dtype=np.int64)
    for row, column in zip(sums, columns, strict=True):
        np.add.at(row, key.domain_of, column)
    sums[:, -1] = 0  # the entry -1 is for nodes without the key
    return sums[:, key.domain_of]


def _left_by(nodes: NodeTable, rules: NodeRules) -> Mask:
    """Return the nodes that node affinity admits, or all if it admits none, shape (nodes,)."""
    mask = nodes.alive & required_mask(nodes, rules.required, ALL)
    if rules.enforced.restricts:
        mask &= required_mask(nodes, rules.enforced, ALL)
    if rules.node_name is not None:
        named = np.zeros_like(mask)
        slot = nodes.slots.get(rules.node_name)
        named[[] if slot is None else [slot]] = True
        mask &= named
    return mask if mask.any() else nodes.alive


def _extent(column: Ints) -> Extent:
    return Extent(*(int(amount) for amount in column))
