"""What a pod's rules make of the nodes themselves, whatever is placed on them and however much it asks.

Pods that differ in amounts and ports alone share it (`NodeRules.site`), so that a pod with requests seen never before
costs one look at what is free.
"""

from typing import TypeVar, cast

import numpy as np

from service.engine.columns import ALL, Ints, Mask, Rows, at
from service.engine.nodes import NodeTable
from service.engine.pipeline import Pipeline
from service.engine.rules import NodeRules
from service.engine.selectors import named_nodes

V = TypeVar("V", Ints, Mask)


class SiteRows:
    """One `NodeRules.site` under one `Pipeline`."""

    __slots__ = (
        "_filters",
        "_named",
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
        self._named = named_nodes(rules.required) if "NodeAffinity" in pipeline.filters else None
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

    @property
    def rows(self) -> Rows:
        """All nodes, or only those that node affinity names: a daemon's pod looks at one node."""
        slots = self.named_slots()
        return ALL if slots is None else np.array(slots, dtype=np.intp)

    def named_slots(self) -> list[int] | None:
        """The slots of the nodes that node affinity names; None where it does not."""
        if self._named is None:
            return None
        slots = self._nodes.slots
        return [slots[name] for name in self._named if name in slots]

    def widened(self, rows: Rows, values: V, fill: int) -> V:
        """Shape (nodes,), given the values of `rows`."""
        if isinstance(rows, slice):
            return values
        wide = np.full(self._nodes.size, fill, dtype=values.dtype)
        wide[rows] = values
        return cast("V", wide)

    def refresh(self) -> None:
        """Bring everything up to the present nodes."""
        position = self._nodes.spec_log.position
        if self._seen != position:
            self._rebuild(self.rows)
            self._seen = position

    def _rebuild(self, rows: Rows) -> None:
        nodes, rules = self._nodes, self._rules
        mask = at(nodes.alive, rows)
        for plugin in self._filters:
            mask = mask & plugin.admits(nodes, rules, rows)
        self.mask = self.widened(rows, mask if self._filters else mask.copy(), fill=False)
        self.images = self._image_scores()
        self.raw, self.constant = {}, 0
        for score, weight in self._pipeline.raw_scores:
            raw = score.raw(nodes, rules, rows)
            if raw is None:
                continue
            if raw.any():
                self.raw[score.name] = self.widened(rows, raw, 0)
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
