"""GpuReserve keeps nodes with GPUs for pods that ask for GPUs, and fills one after the other."""

from typing import Annotated, ClassVar, Self

import numpy as np
from msgspec import Meta
from typing_extensions import override

from service.plugin import (
    ALL,
    MAX_NODE_SCORE,
    Arguments,
    Change,
    ClusterConfig,
    Failure,
    Ints,
    Mask,
    NodePlugin,
    NodeRules,
    NodeTable,
    Rows,
    SchedulerProfile,
    at,
)


class GpuReserveArgs(Arguments, frozen=True, kw_only=True):
    """The `args` of the plugin: `resource` is the name under which nodes offer GPUs."""

    resource: Annotated[str, Meta(min_length=1)] = "nvidia.com/gpu"


class GpuReserve(NodePlugin):
    """Keeps nodes with GPUs for pods that ask for them.

    It scores a node by the share of its GPUs that is in use.
    """

    name: ClassVar[str] = "GpuReserve"
    filters: ClassVar[bool] = True
    weight: ClassVar[int] = 2
    reads_usage: ClassVar[bool] = True
    reason: ClassVar[str] = "node(s) keep their GPUs for pods that ask for them"
    events: ClassVar[frozenset[Change]] = frozenset({Change.NODE_ADDED, Change.NODE_RESIZED})
    arguments: ClassVar[type[Arguments] | None] = GpuReserveArgs

    def __init__(self, resource: str) -> None:
        self._resource = resource

    @classmethod
    @override
    def of(cls, profile: SchedulerProfile, config: ClusterConfig) -> Self:
        return cls(profile.arguments_of(cls.name, GpuReserveArgs).resource)

    @override
    def applies(self, rules: NodeRules) -> bool:
        return not self._asked(rules)

    @override
    def admits(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Mask:
        without: Mask = at(nodes.allocatable(self._resource), rows) == 0
        return without if self.applies(rules) else np.ones_like(without)

    @override
    def node_failures(self, nodes: NodeTable, rules: NodeRules) -> list[Failure]:
        """Return the only reason; it cannot be resolved, as evicting pods would not help."""
        return [Failure(self.reason, ~self.admits(nodes, rules, ALL), unresolvable=True)]

    @override
    def scores_for(self, rules: NodeRules) -> bool:
        return bool(self._asked(rules))

    @override
    def scores(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints:
        """Return the share of each node's GPUs that is in use, in percent."""
        capacity = at(nodes.allocatable(self._resource), rows)
        used = np.minimum(at(nodes.requested(self._resource), rows), capacity)
        return used * MAX_NODE_SCORE // np.maximum(capacity, 1)

    def _asked(self, rules: NodeRules) -> int:
        return dict(rules.needs.amounts).get(self._resource, 0)
