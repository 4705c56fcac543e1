"""NodePorts: a host port is unique per node, protocol, and IP; 0.0.0.0 stands for all IPs."""

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar

import numpy as np
from typing_extensions import override

from service.engine.framework.events import Change
from service.engine.framework.plugin import Headroom, Headrooms, NodePlugin
from service.engine.state.nodes.columns import Mask, Rows
from service.engine.state.nodes.node_rules import NodeRules
from service.engine.state.nodes.node_table import HostPort, NodeTable
from service.engine.state.pods.classes import PodClass

NAME = "NodePorts"
REASON = "node(s) didn't have free ports for the requested pod ports"
WILDCARD = "0.0.0.0"  # noqa: S104 - an address in a manifest, not one we bind to


class NodePorts(NodePlugin):
    name: ClassVar[str] = NAME
    filters: ClassVar[bool] = True
    reads_usage: ClassVar[bool] = True
    reason: ClassVar[str] = REASON
    events: ClassVar[frozenset[Change]] = frozenset(
        {Change.NODE_ADDED, Change.POD_LEFT, Change.POD_PORTS_CHANGED}
    )

    @override
    def applies(self, rules: NodeRules) -> bool:
        return bool(rules.needs.ports)

    @override
    def admits(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Mask:
        mask = np.ones(nodes.size, dtype=np.bool_)
        for port in rules.needs.ports:
            for slot in nodes.port_users.get((port[1], port[2]), ()):
                if _conflicts(nodes, slot, port):
                    mask[slot] = False
        return mask[rows]

    @override
    def admits_one(self, nodes: NodeTable, rules: NodeRules, slot: int) -> bool:
        """Return whether one node passes, without creating arrays."""
        return not any(_conflicts(nodes, slot, port) for port in rules.needs.ports)

    @override
    def headrooms(self, nodes: NodeTable, pod_class: PodClass) -> Headrooms:
        wanted = pod_class.template.rules.needs.ports
        if not wanted:
            return Headrooms()
        spare = np.zeros(nodes.size, dtype=np.int64)
        for _, protocol, number in wanted:
            for slot in nodes.port_users.get((protocol, number), ()):
                held = nodes.ports[slot] or Counter[HostPort]()
                spare[slot] = -sum(pods * _clashes(port, wanted) for port, pods in held.items())

        def taken(other: PodClass) -> int:
            return sum(_clashes(port, wanted) for port in other.template.rules.needs.ports)

        return Headrooms((Headroom(REASON, spare, taken=taken),))


def _clashes(held: HostPort, wanted: Iterable[HostPort]) -> bool:
    return any(_clash(held, port) for port in wanted)


def _clash(one: HostPort, other: HostPort) -> bool:
    return one[1:] == other[1:] and (one[0] == other[0] or WILDCARD in (one[0], other[0]))


def _conflicts(nodes: NodeTable, slot: int, wanted: HostPort) -> bool:
    held: Iterable[HostPort] = nodes.ports[slot] or ()
    return any(_clash(port, wanted) for port in held)
