"""The domain of a node label that a pod's group leaves to it."""

from typing import NamedTuple

import numpy as np

from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.nodes.rank import VETO
from service.engine.state.nodes.vetoes import Vetoes

FEW_NODES = 32
"""In so few nodes it is quicker to look at each by itself."""
GROUP_TOPOLOGY = "GroupTopology"
"""Stands for a plugin where a node is left out because the pod's group is in another domain."""


class GroupDomain(NamedTuple):
    """The nodes of one domain of a label, for members of a group that has to be in one domain."""

    vetoes: Vetoes
    """Excludes the nodes outside of the domain."""
    domain: str
    """Label and value, as `rack=a`; only the label if no node has it."""

    @property
    def reason(self) -> str:
        """What is said of the nodes outside of the domain."""
        if "=" in self.domain:
            return f"node(s) outside of {self.domain}, where the pod's group has to be"
        return f"node(s) without the label {self.domain}, which the pod's group asks for"


def group_domain(nodes: NodeTable, name: str, value: str | None) -> GroupDomain:
    """Leave the nodes whose label has this value; none if the value is None, or if none has it."""
    key = nodes.key(name)
    domain = None if value is None else key.values.ids.get(value)
    slots = key.members[domain] if domain is not None else []
    told = name if value is None else f"{name}={value}"
    if len(slots) <= FEW_NODES:
        return GroupDomain(Vetoes(nodes.itself, only=tuple(slots)), told)
    return GroupDomain(Vetoes(key, nodes=np.where(key.domain_of == domain, 0, VETO)), told)
