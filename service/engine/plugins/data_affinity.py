"""DataAffinity, not a plugin of Kubernetes: pods prefer or require nodes with named data sets."""

from collections.abc import Collection
from typing import ClassVar

import numpy as np
from typing_extensions import override

from service.engine.framework.events import Change, ClusterEvent
from service.engine.framework.plugin import (
    MAX_NODE_SCORE,
    Failure,
    NodePlugin,
    PreFilterResult,
    bounds_of,
)
from service.engine.state.nodes.columns import ALL, Ints, Mask, Rows, at
from service.engine.state.nodes.node_rules import NamedDataSet, NodeRules
from service.engine.state.nodes.node_selectors import term_mask
from service.engine.state.nodes.node_table import NodeTable
from service.engine.state.pods.classes import PodClass
from service.model.pods.pod import Pod
from service.model.volumes.data_sets import DATA_SET, data_sets_of

NAME = "DataAffinity"
LACKING = 'node(s) didn\'t have the data set "{}"'
NOT_FOUND = 'data set "{}" not found'


class DataAffinity(NodePlugin):
    name: ClassVar[str] = NAME
    filters: ClassVar[bool] = True
    weight: ClassVar[int] = 2
    normalizes: ClassVar[bool] = True
    prefilters: ClassVar[bool] = True
    is_unnamed_if_skipped: ClassVar[bool] = True
    events: ClassVar[frozenset[Change]] = frozenset({Change.NODE_DESCRIBED, Change.OBJECT_CHANGED})

    @override
    def applies(self, rules: NodeRules) -> bool:
        return rules.data is not None and bool(rules.data.required)

    @override
    def admits(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Mask:
        mask = np.ones(len(at(nodes.alive, rows)), dtype=np.bool_)
        for data_set in _required_data(rules):
            mask &= _nodes_with(nodes, data_set, rows)
        return mask

    @override
    def passing(self, nodes: NodeTable, pod_class: PodClass) -> Mask | None:
        rules = pod_class.template.rules
        return self.admits(nodes, rules, ALL) if self.applies(rules) else None

    @override
    def node_failures(self, nodes: NodeTable, rules: NodeRules) -> list[Failure]:
        return [
            Failure(
                LACKING.format(data_set.name), ~_nodes_with(nodes, data_set, ALL), unresolvable=True
            )
            for data_set in _required_data(rules)
        ]

    @override
    def prefilter(self, nodes: NodeTable, pod_class: PodClass) -> PreFilterResult | None:
        for data_set in _required_data(pod_class.template.rules):
            if data_set.nodes is None:
                return PreFilterResult(reason=NOT_FOUND.format(data_set.name))
        return None

    @override
    def scores_for(self, rules: NodeRules) -> bool:
        return rules.data is not None and bool(rules.data.preferred)

    @override
    def scores(self, nodes: NodeTable, rules: NodeRules, rows: Rows) -> Ints | None:
        """Return the sum of the weights of the preferred data sets on each node."""
        if rules.data is None:
            return None
        total = np.zeros(len(at(nodes.alive, rows)), dtype=np.int64)
        for weight, data_set in rules.data.preferred:
            total += weight * _nodes_with(nodes, data_set, rows)
        return total

    @override
    def normalize(self, raw: Ints, ranks: Ints) -> Ints:
        bounds = bounds_of(raw, ranks)
        if bounds is None or not bounds.greatest:
            return np.zeros_like(raw)
        return bounds.capped(raw) * MAX_NODE_SCORE // bounds.greatest

    @classmethod
    @override
    def helps(cls, event: ClusterEvent, pod: Pod, reasons: Collection[str]) -> bool:
        """Return whether the event concerns a node, or a data set that the pod names."""
        return event.node is not None or any(
            (manifest.kind, manifest.namespace) == (DATA_SET.kind, pod.namespace)
            and manifest.name in data_sets_of(pod.spec)
            for manifest in event.objects
        )


def _required_data(rules: NodeRules) -> tuple[NamedDataSet, ...]:
    return () if rules.data is None else rules.data.required


def _nodes_with(nodes: NodeTable, data: NamedDataSet, rows: Rows) -> Mask:
    """Return the nodes that have a data set, shape (rows,)."""
    mask = np.zeros(len(at(nodes.alive, rows)), dtype=np.bool_)
    if data.nodes is not None:
        for term in data.nodes.node_selector_terms:
            mask |= term_mask(nodes, term, rows, empty=False)
    return mask
