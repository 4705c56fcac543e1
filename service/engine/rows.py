"""Masks and scores that depend on the node alone, cached per rules and repaired node by node.

`ranks` combines what is final: score above tie-break, negative where a filter fails. After a placement
one entry changes; everything else stays.
"""

from typing import TypeVar, cast

import numpy as np

from service.engine.blocks import Tops
from service.engine.columns import ALL, Ints, Mask, Rows
from service.engine.nodes import NodeTable
from service.engine.pipeline import Pipeline
from service.engine.ranks import TIE_BITS, VETO
from service.engine.rules import NodeRules
from service.engine.selectors import named_nodes
from service.engine.topology import TopologyKey

V = TypeVar("V", Ints, Mask)
SCALARS_MAX = 6
"""Up to so many nodes plain integers are quicker than short arrays."""
REBUILD_SHARE = 8
"""With more than a eighth of the nodes dirty, rebuilding whole is cheaper than repairing."""


class RowCache:
    """One `NodeRules` under one `Pipeline`."""

    __slots__ = (
        "_cells",
        "_feasible",
        "_images",
        "_named",
        "_nodes",
        "_pipeline",
        "_rules",
        "_scores",
        "_spec_seen",
        "_static",
        "_tops",
        "_usage_seen",
        "constant",
        "ranks",
        "raw",
    )

    def __init__(self, nodes: NodeTable, rules: NodeRules, pipeline: Pipeline) -> None:
        self._nodes = nodes
        self._rules = rules
        self._pipeline = pipeline
        self._named = named_nodes(rules.required) if "NodeAffinity" in pipeline.filters else None
        self._scores = [each for each in pipeline.node_scores if each[0].applies(rules)]
        self._static: Mask = np.zeros(0, dtype=np.bool_)
        self._images: Ints | None = None
        """Weighted ImageLocality; None where it is 0 everywhere."""
        self.ranks: Ints = np.zeros(0, dtype=np.int64)
        """Shape (nodes,): local score << TIE_BITS | tie hash, or `VETO`."""
        self._cells = self.ranks.data
        self._feasible: dict[TopologyKey, tuple[int, list[int]]] = {}
        """Per key, and its version: the feasible nodes of each domain, last of those without."""
        self._tops: dict[TopologyKey | None, Tops] = {}
        self.raw: dict[str, Ints] = {}
        """Shape (nodes,): scores still to be normalised, for those that are not 0 everywhere."""
        self.constant = 0
        """What the scores that are 0 on every node add once normalised."""
        self._spec_seen = -1
        self._usage_seen = -1

    @property
    def size_in_bytes(self) -> int:
        return int(self._static.nbytes + self.ranks.nbytes + 8 * len(self.ranks) * len(self.raw))

    def refresh(self) -> bool:
        """Bring everything up to the present state of the nodes. True if all was made anew."""
        nodes, anew = self._nodes, False
        spec_dirty = nodes.spec_log.since(self._spec_seen)
        usage_dirty = nodes.usage_log.since(self._usage_seen)
        if (
            spec_dirty
            or spec_dirty is None
            or usage_dirty is None
            or len(self.ranks) != nodes.size
            or len(usage_dirty) * REBUILD_SHARE > nodes.size + REBUILD_SHARE
        ):
            self._rebuild(keep_static=spec_dirty == [] and len(self.ranks) == nodes.size)
            anew = True
        elif usage_dirty:
            self._repair_all(set(usage_dirty))
        self._spec_seen = nodes.spec_log.position
        self._usage_seen = nodes.usage_log.position
        return anew

    def feasible_in(self, key: TopologyKey) -> list[int]:
        """Feasible nodes per domain of a key of few; the last entry is of nodes without it."""
        found = self._feasible.get(key)
        if found is None or found[0] != key.version:
            domains = key.domain_of[self.ranks >= 0] + 1
            counts = np.bincount(domains, minlength=key.capacity + 1).tolist()
            found = self._feasible[key] = (key.version, [*counts[1:], counts[0]])
        return found[1]

    def tops(self, key: TopologyKey | None) -> Tops:
        """The greatest scores per block, and per domain of a key of few."""
        found = self._tops.get(key)
        if found is None or (key is not None and found.version != key.version):
            nodes = self._nodes
            found = self._tops[key] = Tops(key, nodes.tie, nodes.blocks, self.ranks)
        return found

    def _rebuild(self, *, keep_static: bool) -> None:
        self._feasible.clear()
        self._tops.clear()
        rows = self._rows()
        if not keep_static:
            self._rebuild_static(rows)
        self.ranks = self._widened(rows, self._ranks_of(rows), VETO)
        self._cells = self.ranks.data

    def _ranks_of(self, rows: Rows) -> Ints:
        """Shape (rows,)."""
        nodes, rules = self._nodes, self._rules
        if not isinstance(rows, slice) and len(rows) <= SCALARS_MAX:
            return np.array([self._rank_at(slot) for slot in rows.tolist()], dtype=np.int64)
        mask = self._static[rows]
        for plugin in self._pipeline.usage_filters:
            mask = mask & plugin.admits(nodes, rules, rows)
        total = np.zeros(len(mask), dtype=np.int64) if self._images is None else self._images[rows]
        for score, weight in self._scores:
            total = total + weight * score.scores(nodes, rules, rows)
        ranks: Ints = (total << TIE_BITS) | nodes.tie[rows]
        return np.where(mask, ranks, VETO)

    def _rows(self) -> Rows:
        """All nodes, or only those that node affinity names: a daemon's pod looks at one node."""
        if self._named is None:
            return ALL
        return np.array(self._named_slots(self._named), dtype=np.intp)

    def _named_slots(self, names: frozenset[str]) -> list[int]:
        slots = self._nodes.slots
        return [slots[name] for name in names if name in slots]

    def _widened(self, rows: Rows, values: V, fill: int) -> V:
        """Shape (nodes,), given the values of `rows`."""
        if isinstance(rows, slice):
            return values
        wide = np.full(self._nodes.size, fill, dtype=values.dtype)
        wide[rows] = values
        return cast("V", wide)

    def _rebuild_static(self, rows: Rows) -> None:
        nodes, rules = self._nodes, self._rules
        static = nodes.alive[rows]
        for plugin in self._pipeline.static_filters:
            static = static & plugin.admits(nodes, rules, rows)
        self._static = self._widened(rows, static, fill=False)
        self._images = self._image_scores()
        self.raw, self.constant = {}, 0
        for score, weight in self._pipeline.raw_scores:
            raw = score.raw(nodes, rules, rows)
            if raw is None:
                continue
            if raw.any():
                self.raw[score.name] = self._widened(rows, raw, 0)
            elif len(raw):
                self.constant += weight * int(score.normalize(raw, raw)[0])

    def _image_scores(self) -> Ints | None:
        """ImageLocality depends on all nodes but on no pod: it changes only with the nodes."""
        nodes, rules, pipeline = self._nodes, self._rules, self._pipeline
        weight = pipeline.weights.get(pipeline.image_locality.name, 0)
        if not weight or pipeline.image_locality.nowhere(nodes, rules):
            return None
        return weight * pipeline.image_locality.scores(nodes, rules, ALL)

    def _repair_all(self, dirty: set[int]) -> None:
        """Nodes whose pods changed; from a few on, as columns."""
        if self._named is not None:
            dirty &= set(self._named_slots(self._named))
        if len(dirty) <= SCALARS_MAX:
            for slot in dirty:
                self._repair(slot)
            return
        self._feasible.clear()
        self._tops.clear()
        rows = np.fromiter(dirty, dtype=np.intp, count=len(dirty))
        self.ranks[rows] = self._ranks_of(rows)

    def _repair(self, slot: int) -> None:
        """One node whose pods changed, in plain integers."""
        before = self._cells[slot]
        after = self._rank_at(slot)
        self._cells[slot] = after
        for tops in self._tops.values():
            tops.repair(slot, before, after)
        if (before < 0) != (after < 0):
            for key, (_, counts) in self._feasible.items():
                counts[key.cells[slot]] += 1 if before < 0 else -1

    def _rank_at(self, slot: int) -> int:
        nodes, rules = self._nodes, self._rules
        if not self._static[slot] or not self._fits(slot):
            return VETO
        total = 0 if self._images is None else int(self._images[slot])
        for score, weight in self._scores:
            total += weight * score.score(nodes, rules, slot)
        return (total << TIE_BITS) | nodes.tie_at(slot)

    def _fits(self, slot: int) -> bool:
        nodes, rules, pipeline = self._nodes, self._rules, self._pipeline
        if pipeline.filters_with("NodeResourcesFit") and not pipeline.resources_fit.admits_one(
            nodes, rules, slot
        ):
            return False
        if not rules.ports:
            return True
        row = np.array([slot])
        return all(bool(each.admits(nodes, rules, row)[0]) for each in pipeline.usage_filters)
