"""What a pod's rules make of the nodes themselves, whatever is placed on them and however much it asks.

Pods that differ in amounts and ports alone share it (`NodeRules.site`), so that a pod with requests seen never before
costs one look at what is free.
"""

import numpy as np

from service.engine.pipeline import Pipeline
from service.engine.state.columns import ALL, Ints, Mask
from service.engine.state.nodes import NodeTable
from service.engine.state.rules import NodeRules


class StaticRows:
    """One `NodeRules.site` under one `Pipeline`."""

    __slots__ = (
        "_filters",
        "_nodes",
        "_pipeline",
        "_rules",
        "_seen",
        "constant",
        "images",
        "mask",
        "raw",
    )

    def __init__(self, nodes: NodeTable, rules: NodeRules, pipeline: Pipeline) -> None:
        self._nodes = nodes
        self._rules = rules
        self._pipeline = pipeline
        self._filters = [each for each in pipeline.static_filters if each.applies(rules)]
        self._seen = -1
        self.mask: Mask = np.zeros(0, dtype=np.bool_)
        """Shape (nodes,): nodes that pass the filters that look at nothing else."""
        self.images: Ints | None = None
        """Shape (nodes,): weighted ImageLocality; None where it is 0 everywhere."""
        self.raw: dict[str, Ints] = {}
        """Shape (nodes,): scores still to be normalised, for those that are not 0 everywhere."""
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
        self.images = self._image_scores()
        self.raw, self.constant = {}, 0
        for score, weight in self._pipeline.raw_scores:
            raw = score.raw(nodes, rules, ALL)
            if raw is None:
                continue
            if raw.any():
                self.raw[score.name] = raw
            elif len(raw):
                nothing = raw[:1]
                self.constant += weight * int(score.normalize(nothing, nothing)[0])

    def _image_scores(self) -> Ints | None:
        """ImageLocality depends on all nodes but on no pod: it changes only with the nodes."""
        nodes, rules, pipeline = self._nodes, self._rules, self._pipeline
        weight = pipeline.weights.get(pipeline.image_locality.name, 0)
        if not weight or pipeline.image_locality.nowhere(nodes, rules):
            return None
        return weight * pipeline.image_locality.scores(nodes, rules, ALL)
