"""Members of a group that have to be in one domain of a node label, and which domain is tried first."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from service.engine.cluster import Cluster
from service.engine.state.nodes.columns import Ints
from service.engine.state.nodes.topology import TopologyKey
from service.model.pods.pod import Pod
from service.model.pods.requests import pod_requests

_SCORED = ("cpu", "memory")
"""The resources by which domains are compared, as NodeResourcesFit compares nodes."""


class Colocation(NamedTuple):
    """Members of a group, by their indexes, that have to be on nodes with the same value of a label."""

    key: str
    members: tuple[int, ...]
    value: str | None = None
    """The value for which others of the group have decided already."""


def domains_of(
    cluster: Cluster, colocation: Colocation, pods: Sequence[Pod], hints: Sequence[str | None]
) -> list[str | None]:
    """Return the values of the label with which to try these members, in their order.

    The value of a hint comes first. If no node has the label, there is only None.
    """
    if colocation.value is not None:
        return [colocation.value]
    values: dict[str | None, None] = dict.fromkeys(_hinted(cluster, colocation, hints))
    values.update(dict.fromkeys(domains_by_fit(cluster, colocation.key, pods)))
    return list(values) or [None]


def domains_by_fit(cluster: Cluster, key: str, pods: Sequence[Pod]) -> list[str]:
    """Return the values of a label: first where cpu and memory suffice for the pods, fullest first.

    Fullest is where the greatest share of both would be in use with these pods, as Kubernetes scores
    the domains for a group (MostAllocated). Equal ones come in the order of their values.
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
    """Return of each domain whether it has room for an amount in all, and how full it would be."""
    allocatable = cluster.nodes.allocatable(resource)
    requested = cluster.nodes.requested(resource)
    free = _by_domain(column, np.maximum(allocatable - requested, 0))
    shares = (_by_domain(column, requested) + wanted) / np.maximum(
        _by_domain(column, allocatable), 1
    )
    sufficient: list[bool] = (free >= wanted).tolist()
    return sufficient, shares.tolist()


def _by_domain(column: TopologyKey, per_node: Ints) -> Ints:
    """Return the sums over the nodes of each domain; the last is of those without the label."""
    sums = np.zeros(column.capacity + 1, dtype=np.int64)
    np.add.at(sums, column.domain_of, per_node)
    return sums


def _hinted(
    cluster: Cluster, colocation: Colocation, hints: Iterable[str | None]
) -> list[str | None]:
    """Return the value that the members had before a lost race, if they were placed then."""
    sent = list(hints)
    for index in colocation.members if sent else ():
        name = sent[index]
        node = None if name is None else cluster.node(name)
        if node is not None and colocation.key in node.labels:
            return [node.labels[colocation.key]]
    return []
