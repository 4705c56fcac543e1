"""Ranks with affinity scores added, for a topology key with many domains (mostly hostname).

InterPodAffinity scores a node by where its sum of weights lies between the lowest and the highest
sum of the feasible nodes. If pods attract each other, each placement raises the highest sum, which
changes the scores of all nodes, but the sums of only one domain. Therefore the sums are cached
(`AffinityLevels`). Measured without levels and with them: a pod with preferred anti-affinity takes
72 and 50 µs at 5,000 nodes, 316 and 58 µs at 50,000; one with preferred affinity takes 80 and 40 µs
at 5,000 nodes, 370 and 63 µs at 50,000.
"""

from service.engine.framework.plugin import Scale
from service.engine.ranking.affinity_levels import AffinityLevels, distinct
from service.engine.state.nodes.columns import Ints
from service.engine.state.nodes.counters import WeightedSum, WeightedTerm
from service.engine.state.nodes.node_table import NodeTable

PASSES_BEFORE_BUILD = 4
"""The number of passes over all nodes that cost as much as building the levels (0.15 ms at 5,000
nodes)."""
REPAIRS_MAX = 64
"""The number of changed nodes above which a pass over all nodes costs less than the repair."""
LEVELS_MAX = 64
"""The maximum number of levels. Each is compared for each pod, which takes 0.8 µs; a pass over all
nodes takes 30 µs at 5,000 nodes, and 300 µs at 50,000."""


class AffinityRanks:
    """The ranks for one set of affinity terms of one topology key.

    They are usable only if none of the other scores added to the ranks depends on which nodes are
    feasible.
    """

    __slots__ = ("_key", "_levels", "_nodes", "_passes", "_usage_seen", "_view")

    def __init__(self, nodes: NodeTable, terms: tuple[WeightedTerm, ...]) -> None:
        self._nodes = nodes
        self._key = terms[0].counter.key
        self._view = WeightedSum(terms)
        self._levels: AffinityLevels | None = None
        """The levels, or None while a pass over all nodes is cheaper."""
        self._usage_seen = 0
        self._passes = 0
        """The number of passes over all nodes made while there are no levels."""

    @property
    def levels(self) -> AffinityLevels | None:
        """The feasible nodes by their sums, or None while a pass over all nodes is cheaper."""
        return self._levels

    @property
    def size_in_bytes(self) -> int:
        levels = self._levels
        return self._view.size_in_bytes + (0 if levels is None else levels.size_in_bytes)

    def best(self, ranks: Ints, tie: int, scale: Scale) -> tuple[int, int] | None:
        """Return the slot with the highest rank, and that rank.

        Returns None if a pass over all nodes is cheaper, or if no node is feasible. `ranks`, shape
        (nodes,), int64, exclude affinity.
        """
        if self._levels is not None and not self._repair(ranks, self._levels):
            self._levels = None
        if self._levels is None:
            self._passes += 1
            if self._passes <= PASSES_BEFORE_BUILD:
                return None
            self._passes = 0
            self._levels = self._build(ranks)
        levels = self._levels
        return levels.best(tie, scale) if levels else None

    def holds(self, ranks: Ints) -> bool:
        """Return whether the levels, once repaired, equal freshly built ones.

        `ranks`, shape (nodes,), int64, exclude affinity.
        """
        levels = self._levels
        if levels is None or not self._repair(ranks, levels):
            self._levels = None
            return True
        built = AffinityLevels(self._nodes.layout(None), self._view.values(), ranks)
        return self._view.holds() and levels.ordered == built.ordered

    def _build(self, ranks: Ints) -> AffinityLevels | None:
        """Return the levels of all nodes, or None if there are too many distinct sums."""
        sums = self._view.values()
        self._usage_seen = self._nodes.usage_log.position
        if len(distinct(sums[ranks >= 0])) > LEVELS_MAX:
            return None
        return AffinityLevels(self._nodes.layout(None), sums, ranks)

    def _repair(self, ranks: Ints, levels: AffinityLevels) -> bool:
        """Update the nodes whose sum or pods changed; return False if rebuilding is cheaper."""
        domains, members = self._view.repair(), self._key.members
        used = self._nodes.usage_log.since(self._usage_seen)
        if domains is None or used is None:
            return False
        self._usage_seen += len(used)
        changed = {slot for domain in domains for slot in members[domain]}.union(used)
        if len(changed) > REPAIRS_MAX:
            return False
        for slot in changed:
            levels.move(slot, self._view.at(slot), ranks.data[slot])
        return len(levels) <= LEVELS_MAX
