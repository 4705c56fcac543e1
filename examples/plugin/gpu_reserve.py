"""GpuReserve: nodes with GPUs are for pods that ask for them, and those share a node rather than start on another."""

from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
from typing_extensions import override

from service.engine.cluster_events import Change
from service.engine.plugin import MAX_NODE_SCORE, Failure, NodePlugin
from service.engine.state.columns import ALL, Ints, Mask, Rows, at
from service.engine.state.nodes import NodeTable
from service.engine.state.rules import NodeRules


class GpuReserve(NodePlugin):
    """`args: {resource: …}` names the resource; without it, nvidia.com/gpu."""

    name: ClassVar[str] = "GpuReserve"
    filters: ClassVar[bool] = True
    weight: ClassVar[int] = 2
    reads_usage: ClassVar[bool] = True
    reason: ClassVar[str] = "node(s) keep their GPUs for pods that ask for them"
    events: ClassVar[frozenset[Change]] = frozenset({Change.NODE_ADDED, Change.NODE_RESIZED})
    takes_arguments: ClassVar[bool] = True

    def __init__(self, resource: str = "nvidia.com/gpu") -> None:
        self._resource = resource

    @classmethod
    @override
    def configured(cls, arguments: Mapping[str, object]) -> Self:
        unknown = arguments.keys() - {"resource"}
        resource = arguments.get("resource", "nvidia.com/gpu")
        if unknown or not isinstance(resource, str) or not resource:
            raise ValueError("takes the name of a resource, as resource, and nothing else")
        return cls(resource)

    @override
    def applies(self, rules: NodeRules) -> bool:
        return not self._asked(rules)

    @override
    def admits(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Mask:
        without: Mask = at(nodes.allocatable(self._resource), rows) == 0
        return without if self.applies(rules) else np.ones_like(without)

    @override
    def node_failures(self, nodes: NodeTable, rules: NodeRules) -> list[Failure]:
        """Pods that go make no room for one that asks for no GPU."""
        return [Failure(self.reason, ~self.admits(nodes, rules, ALL), unresolvable=True)]

    @override
    def scores_for(self, rules: NodeRules) -> bool:
        return bool(self._asked(rules))

    @override
    def scores(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints:
        """The share of the node's GPUs that is in use, in percent."""
        capacity = at(nodes.allocatable(self._resource), rows)
        used = np.minimum(at(nodes.requested(self._resource), rows), capacity)
        return used * MAX_NODE_SCORE // np.maximum(capacity, 1)

    def _asked(self, rules: NodeRules) -> int:
        return dict(rules.needs.amounts).get(self._resource, 0)
