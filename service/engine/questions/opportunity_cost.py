"""Opportunity cost: the nodes that a pod with anti-affinity against everybody takes from others.

Source: "Denial of Service" in the design of inter-pod affinity. Once placed, a pod costs the
domain that its node is in. Until then it costs the largest or the average domain among the nodes
that its own node affinity leaves. Of several topology keys the one that costs most counts, which
for nested domains (nodes in zones) is exactly what they take together.
"""

from typing import NamedTuple

import numpy as np

from service.engine.cluster import Cluster
from service.engine.state.columns import ALL, Ints, Mask
from service.engine.state.nodes import NodeTable
from service.engine.state.rules import NodeRules
from service.engine.state.selectors import required_mask
from service.model.objects import Pod

REMEMBERED_MAX = 1_024
"""Costs of pods to come that are kept; all are forgotten when there are more."""
_AMOUNT_MAX = 2**48
"""More than this of a node's resource counts as this much, so that no sum leaves int64."""

TopologyKeys = tuple[str, ...]


class Extent(NamedTuple):
    """A part of the cluster: cpu in milli, memory in bytes, and how many nodes it is."""

    cpu: int
    memory: int
    nodes: int


NOTHING = Extent(0, 0, 0)


class OpportunityCosts:
    """What pods cost while nodes stay as they are: drop it when one comes, goes or changes."""

    def __init__(self, cluster: Cluster, *, average: bool) -> None:
        self._cluster = cluster
        self._average = average
        self._columns = _allocatable(cluster.nodes)
        self._taken: dict[TopologyKeys, Ints] = {}
        self._to_come: dict[tuple[NodeRules, TopologyKeys], Extent] = {}

    def cost(self, pod: Pod, keys: TopologyKeys) -> Extent:
        """What a pod takes under these keys (at least one): where it is, or where it may go.

        A pod on a node that is not there takes nothing until the node comes.
        """
        if pod.node_name is None:
            return self._expected(pod, keys)
        slot = self._cluster.nodes.slots.get(pod.node_name)
        return NOTHING if slot is None else _extent(self._taken_under(keys)[:, slot])

    def _expected(self, pod: Pod, keys: TopologyKeys) -> Extent:
        rules = self._cluster.class_of(pod).template.rules
        found = self._to_come.get((rules, keys))
        if found is None:
            if len(self._to_come) >= REMEMBERED_MAX:
                self._to_come.clear()
            taken = self._taken_under(keys)[:, _left_by(self._cluster.nodes, rules)]
            found = self._to_come[rules, keys] = self._typical(taken)
        return found

    def _typical(self, taken: Ints) -> Extent:
        """The average (rounded up) or the largest of shape (3, nodes), resource by resource."""
        count = taken.shape[1]
        if not count:
            return NOTHING
        return _extent(-(-taken.sum(axis=1) // count) if self._average else taken.max(axis=1))

    def _taken_under(self, keys: TopologyKeys) -> Ints:
        """Shape (3, nodes): what a pod takes on each node."""
        if keys not in self._taken:
            each = [_domains(self._cluster.nodes, self._columns, key) for key in keys]
            self._taken[keys] = np.maximum.reduce(each)
        return self._taken[keys]


def _allocatable(nodes: NodeTable) -> Ints:
    """Shape (3, nodes): cpu, memory, and 1; all 0 where there is no node."""
    columns = (nodes.allocatable("cpu"), nodes.allocatable("memory"), nodes.alive)
    stacked: Ints = np.minimum(np.stack(columns).astype(np.int64), _AMOUNT_MAX)
    return stacked


def _domains(nodes: NodeTable, columns: Ints, name: str) -> Ints:
    """Shape (3, nodes): the sum over each node's domain, 0 without the key.

    A key that no node has stands for the whole cluster.
    """
    key = nodes.key(name)
    if not key.keyed.any():
        return np.repeat(columns.sum(axis=1, keepdims=True), nodes.size, axis=1)
    sums = np.zeros((len(columns), len(key.members) + 1), dtype=np.int64)
    for row, column in zip(sums, columns, strict=True):
        np.add.at(row, key.domain_of, column)
    sums[:, -1] = 0  # nodes without the key were added up here
    return sums[:, key.domain_of]


def _left_by(nodes: NodeTable, rules: NodeRules) -> Mask:
    """Shape (nodes,): where node affinity lets the pod go; everywhere if that is nowhere yet."""
    mask = nodes.alive & required_mask(nodes, rules.required, ALL)
    if rules.enforced.anything:
        mask &= required_mask(nodes, rules.enforced, ALL)
    if rules.node_name is not None:
        named = np.zeros_like(mask)
        slot = nodes.slots.get(rules.node_name)
        named[[] if slot is None else [slot]] = True
        mask &= named
    return mask if mask.any() else nodes.alive


def _extent(column: Ints) -> Extent:
    return Extent(*(int(amount) for amount in column))
