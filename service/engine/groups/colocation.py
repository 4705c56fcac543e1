"""Colocation of group members in one domain of a node label, and the order of trying domains."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from service.engine.cluster import Cluster
from service.engine.state.nodes.columns import Ints
from service.engine.state.nodes.topology import TopologyKey
from service.model.pods.pod import Pod
from service.model.pods.requests import pod_requests

_SCORED = ("cpu", "memory")
"""The resources used to compare domains, as NodeResourcesFit compares nodes."""


class Colocation(NamedTuple):
    """Group members, by index, that must be on nodes with the same value of a label."""

    key: str
    members: tuple[int, ...]
    value: str | None = None
    """The value already fixed by other members of the group, or None."""


def domains_of(
    cluster: Cluster, colocation: Colocation, pods: Sequence[Pod], hints: Sequence[str | None]
) -> list[str | None]:
    """Return the label values to try for these members, in order.

    The value of a hinted node is first. If no node has the label, the only value is None.
    """
    if colocation.value is not None:
        return [colocation.value]
    values: dict[str | None, None] = dict.fromkeys(_hinted_values(cluster, colocation, hints))
    values.update(dict.fromkeys(domains_by_fit(cluster, colocation.key, pods)))
    return list(values) or [None]


def domains_by_fit(cluster: Cluster, key: str, pods: Sequence[Pod]) -> list[str]:
    """Return a label's values, those with enough cpu and memory first, then the fullest first.

    The fullest domain is the one with the greatest utilization of both with these pods, as in
    Kubernetes' score of domains for a group (MostAllocated). Ties are ordered by value.
    """
    column = cluster.nodes.key(key)
    requests = [pod_requests(pod.spec).amounts for pod in pods]
    wanted = {name: sum(request.get(name, 0) for request in requests) for name in _SCORED}
    fits = [_fits(cluster, column, name, amount) for name, amount in wanted.items()]
    order = []
    for value, domain in column.values.items():
        suffices = all(sufficient[domain] for sufficient, _ in fits)
        share = sum(shares[domain] for _, shares in fits)
        order.append((not suffices, -share, value))
    return [value for _, _, value in sorted(order)]


def _fits(
    cluster: Cluster, column: TopologyKey, resource: str, wanted: int
) -> tuple[list[bool], list[float]]:
    """Return whether each domain has room for an amount, and its utilization with that amount."""
    allocatable = cluster.nodes.allocatable(resource)
    requested = cluster.nodes.requested(resource)
    free = _by_domain(column, np.maximum(allocatable - requested, 0))
    shares = (_by_domain(column, requested) + wanted) / np.maximum(
        _by_domain(column, allocatable), 1
    )
    sufficient: list[bool] = (free >= wanted).tolist()
    return sufficient, shares.tolist()


def _by_domain(column: TopologyKey, per_node: Ints) -> Ints:
    """Sum amounts over the nodes of each domain; the last entry is for nodes without the label."""
    sums = np.zeros(column.capacity + 1, dtype=np.int64)
    np.add.at(sums, column.domain_of, per_node)
    return sums


def _hinted_values(
    cluster: Cluster, colocation: Colocation, hints: Iterable[str | None]
) -> list[str | None]:
    """Return the label value of the first hinted node that has the label, or an empty list."""
    nodes = list(hints)
    for index in colocation.members if nodes else ():
        name = nodes[index]
        node = None if name is None else cluster.node(name)
        if node is not None and colocation.key in node.labels:
            return [node.labels[colocation.key]]
    return []
