"""What a pod's rules make of the nodes themselves, whatever is placed on them and however much it asks.

Pods that differ in amounts and ports alone share it (`NodeRules.site`), so that a pod with requests seen never before
costs one look at what is free.
"""

from typing import NamedTuple

import numpy as np

from service.engine.pipeline import Pipeline
from service.engine.plugin import NodePlugin
from service.engine.state.columns import ALL, Ints, Mask
from service.engine.state.nodes import NodeTable
from service.engine.state.rules import NodeRules


class RawScore(NamedTuple):
    """A plugin's scores before they are normalised over the candidates, with its weight."""

    plugin: NodePlugin
    weight: int
    scores: Ints
    """Shape (nodes,)."""


class StaticRows:
    """One `NodeRules.site` under one `Pipeline`."""

    __slots__ = (
        "_filters",
        "_nodes",
        "_pipeline",
        "_rules",
        "_seen",
        "constant",
        "mask",
        "raw",
        "scores",
    )

    def __init__(self, nodes: NodeTable, rules: NodeRules, pipeline: Pipeline) -> None:
        self._nodes = nodes
        self._rules = rules
        self._pipeline = pipeline
        self._filters = [each for each in pipeline.static_filters if each.applies(rules)]
        self._seen = -1
        self.mask: Mask = np.zeros(0, dtype=np.bool_)
        """Shape (nodes,): nodes that pass the filters that look at nothing else."""
        self.scores: Ints | None = None
        """Shape (nodes,): the weighed sum of what is final; None where it is 0 everywhere."""
        self.raw: list[RawScore] = []
        """Scores still to be normalised, for those that are not 0 everywhere."""
        self.constant = 0
        """What the scores that are 0 on every node add once normalised."""

    @property
    def size_in_bytes(self) -> int:
        return int(self.mask.nbytes + 8 * len(self.mask) * len(self.raw))

    def refresh(self) -> None:
        """Bring everything up to the present nodes."""
        if self._seen != self._nodes.version:
            self._rebuild()
            self._seen = self._nodes.version

    def _rebuild(self) -> None:
        nodes, rules = self._nodes, self._rules
        mask = nodes.alive.copy()
        for plugin in self._filters:
            mask &= plugin.admits(nodes, rules, ALL)
        self.mask = mask
        self.scores, self.raw, self.constant = None, [], 0
        for plugin, weight in self._pipeline.static_scores:
            scores = plugin.scores(nodes, rules, ALL) if plugin.scores_for(rules) else None
            if scores is not None and len(scores):
                self._add(plugin, weight, scores)

    def _add(self, plugin: NodePlugin, weight: int, scores: Ints) -> None:
        """What is 0 on every node is not kept."""
        if not scores.any():
            nothing = scores[:1]
            self.constant += weight * int(plugin.normalize(nothing, nothing)[0])
        elif plugin.normalizes:
            self.raw.append(RawScore(plugin, weight, scores))
        else:
            self.scores = weight * scores + (0 if self.scores is None else self.scores)
