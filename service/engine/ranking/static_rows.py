"""Masks and scores that depend on the nodes and a pod's rules, but not on placed pods or requests.

Pods that differ only in amounts and ports share them (`NodeRules.static_key`), so for a pod with
new requests only free capacity is evaluated.
"""

from typing import NamedTuple

import numpy as np

from service.engine.framework.plugin import NodePlugin
from service.engine.profiles.profile import Profile
from service.engine.state.nodes.columns import ALL, Ints, Mask, Slots
from service.engine.state.nodes.node_rules import NodeRules
from service.engine.state.nodes.node_table import NodeTable


class RawScore(NamedTuple):
    """A plugin's scores, not yet normalized over the candidates, and its weight."""

    plugin: NodePlugin
    weight: int
    scores: Ints
    """The scores, shape (nodes,), int64."""


class StaticRows:
    """The masks and scores for one `NodeRules.static_key` under one `Profile`."""

    __slots__ = (
        "_filters",
        "_nodes",
        "_profile",
        "_rules",
        "_seen",
        "constant",
        "mask",
        "raw",
        "scores",
    )

    def __init__(self, nodes: NodeTable, rules: NodeRules, profile: Profile) -> None:
        self._nodes = nodes
        self._rules = rules
        self._profile = profile
        self._filters = [plugin for plugin in profile.static_filters if plugin.applies(rules)]
        self._seen = -1
        self.mask: Mask = np.zeros(0, dtype=np.bool_)
        """The nodes that pass all filters that read only the node itself, shape (nodes,)."""
        self.scores: Ints | None = None
        """The weighted sum of the scores without normalization, shape (nodes,), int64, or None if
        all are 0."""
        self.raw: list[RawScore] = []
        """Scores that are normalized for each placement, except those that are 0 on every node."""
        self.constant = 0
        """The score added to every node by plugins whose raw scores are 0 everywhere, once
        normalized."""

    @property
    def size_in_bytes(self) -> int:
        return int(self.mask.nbytes + 8 * len(self.mask) * len(self.raw))

    def refresh(self) -> None:
        """Bring all masks and scores up to date with the nodes."""
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
        for plugin, weight in self._profile.static_scores:
            scores = plugin.scores(nodes, rules, ALL) if plugin.scores_for(rules) else None
            if scores is not None and len(scores):
                self._add(plugin, weight, scores)

    def holds(self, rows: Slots) -> bool:
        """Return whether the masks and scores of some nodes equal freshly computed ones."""
        nodes, rules = self._nodes, self._rules
        mask: Mask = nodes.alive.take(rows)
        for plugin in self._filters:
            mask = mask & plugin.admits(nodes, rules, rows)
        if not np.array_equal(self.mask.take(rows), mask):
            return False
        raw = {raw_score.plugin: raw_score.scores.take(rows) for raw_score in self.raw}
        fixed: Ints = np.zeros(len(rows), dtype=np.int64)
        for plugin, weight in self._profile.static_scores:
            scores = plugin.scores(nodes, rules, rows) if plugin.scores_for(rules) else None
            if scores is None:
                continue
            if not plugin.normalizes:
                fixed += weight * scores
            elif not np.array_equal(raw.get(plugin, np.zeros_like(scores)), scores):
                return False
        cached = np.zeros_like(fixed) if self.scores is None else self.scores.take(rows)
        return bool(np.array_equal(cached, fixed))

    def _add(self, plugin: NodePlugin, weight: int, scores: Ints) -> None:
        """Add a plugin's scores; scores of 0 on every node become a constant."""
        if not scores.any():
            nothing = scores[:1]
            self.constant += weight * int(plugin.normalize(nothing, nothing)[0])
        elif plugin.normalizes:
            self.raw.append(RawScore(plugin, weight, scores))
        else:
            self.scores = weight * scores + (0 if self.scores is None else self.scores)
