"""NodePorts: a host port is held once per node, protocol and IP; 0.0.0.0 stands for all IPs."""

from collections.abc import Iterable
from typing import ClassVar

import numpy as np
from typing_extensions import override

from service.engine.cluster_events import Change
from service.engine.plugin import NodePlugin
from service.engine.state.columns import Mask, Rows
from service.engine.state.nodes import HostPort, NodeTable
from service.engine.state.rules import NodeRules

NAME = "NodePorts"
REASON = "node(s) didn't have free ports for the requested pod ports"
WILDCARD = "0.0.0.0"  # noqa: S104 - an address in a manifest, not one we bind to


class NodePorts(NodePlugin):
    name: ClassVar[str] = NAME
    filters: ClassVar[bool] = True
    reads_usage: ClassVar[bool] = True
    reason: ClassVar[str] = REASON
    events: ClassVar[frozenset[Change]] = frozenset({Change.NODE_ADDED, Change.POD_LEFT})

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
        """`admits` for one node."""
        return not any(_conflicts(nodes, slot, port) for port in rules.needs.ports)


def _conflicts(nodes: NodeTable, slot: int, wanted: HostPort) -> bool:
    held: Iterable[HostPort] = nodes.ports[slot] or ()
    return any(
        (protocol, port) == wanted[1:] and (ip == wanted[0] or WILDCARD in (ip, wanted[0]))
        for ip, protocol, port in held
    )
