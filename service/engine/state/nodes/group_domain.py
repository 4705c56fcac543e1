"""The single topology domain that a group confines a member to."""

from typing import NamedTuple

import numpy as np

from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.nodes.rank import VETO
from service.engine.state.nodes.vetoes import Vetoes

FEW_NODES = 32
"""The number of nodes up to which checking each node is faster than using an array."""
GROUP_TOPOLOGY = "GroupTopology"
"""The plugin name reported for nodes outside the domain of the pod's group."""


class GroupDomain(NamedTuple):
    """The nodes of one domain of a label, for group members that must share a domain."""

    vetoes: Vetoes
    """Vetoes of the nodes outside the domain."""
    domain: str
    """The label and value, such as `rack=a`, or only the label if no node has it."""

    @property
    def reason(self) -> str:
        """The reason given for nodes outside the domain."""
        if "=" in self.domain:
            return f"node(s) outside of {self.domain}, where the pod's group has to be"
        return f"node(s) without the label {self.domain}, which the pod's group asks for"


def group_domain(nodes: NodeTable, name: str, value: str | None) -> GroupDomain:
    """Return the domain of the nodes whose label has a value, which is empty if there are none."""
    key = nodes.key(name)
    domain = None if value is None else key.values.ids.get(value)
    slots = key.members[domain] if domain is not None else []
    domain_name = name if value is None else f"{name}={value}"
    if len(slots) <= FEW_NODES:
        return GroupDomain(Vetoes(nodes.itself, only=tuple(slots)), domain_name)
    return GroupDomain(Vetoes(key, nodes=np.where(key.domain_of == domain, 0, VETO)), domain_name)
