"""Ranks with what affinity to other pods adds, over a key of many domains (the hostname, mostly).

InterPodAffinity scores a node by where its sum of weights lies between the least and the greatest of the feasible
nodes. Pods that attract each other raise the greatest with each placement, which changes the scores of all nodes, but a
placement changes the sums of the nodes of one domain only: these sums are what is kept (`Levels`). Without, preferred
anti-affinity takes 72 µs a pod in place of 50 at 5,000 nodes, 316 in place of 58 at 50,000; preferred affinity 80 in
place of 40, and 370 in place of 63.
"""

from service.engine.plugin import Scale
from service.engine.ranking.levels import Levels, distinct
from service.engine.state.columns import Ints
from service.engine.state.nodes import NodeTable
from service.engine.state.views import Weighed, WeighedSum

PATIENCE = 4
"""To look at all nodes so many times costs what putting them in order costs, 0.15 ms at 5,000 nodes."""
REPAIRS_MAX = 64
"""With more nodes changed all are looked at."""
LEVELS_MAX = 64
"""Each level is looked at for each pod, which takes 0.8 µs; to look at all of 5,000 nodes takes 30, of 50,000 300."""


class AffinityRanks:
    """Of one set of terms that share their key, where nothing else depends on who is feasible."""

    __slots__ = ("_key", "_levels", "_nodes", "_passes", "_usage_seen", "_view")

    def __init__(self, nodes: NodeTable, terms: tuple[Weighed, ...]) -> None:
        self._nodes = nodes
        self._key = terms[0].counter.key
        self._view = WeighedSum(terms)
        self._levels: Levels | None = None
        """None as long as looking at all nodes is cheaper."""
        self._usage_seen = 0
        self._passes = 0
        """How often all nodes were looked at for want of levels."""

    @property
    def levels(self) -> Levels | None:
        """The feasible nodes by their sums; None as long as looking at all nodes is cheaper."""
        return self._levels

    @property
    def size_in_bytes(self) -> int:
        levels = self._levels
        return self._view.size_in_bytes + (0 if levels is None else levels.size_in_bytes)

    def best(self, ranks: Ints, tie: int, scale: Scale) -> tuple[int, int] | None:
        """The slot of the greatest rank, and that rank.

        None where looking at all nodes is cheaper, and where no node is feasible. `ranks`, shape (nodes,), are those
        without affinity.
        """
        if self._levels is not None and not self._repair(ranks, self._levels):
            self._levels = None
        if self._levels is None:
            self._passes += 1
            if self._passes <= PATIENCE:
                return None
            self._passes = 0
            self._levels = self._build(ranks)
        levels = self._levels
        return levels.best(tie, scale) if levels else None

    def _build(self, ranks: Ints) -> Levels | None:
        """Put all nodes in order; None where their sums differ too much."""
        sums = self._view.values()
        self._usage_seen = self._nodes.usage_log.position
        if len(distinct(sums[ranks >= 0])) > LEVELS_MAX:
            return None
        return Levels(self._nodes.layout(None), sums, ranks)

    def _repair(self, ranks: Ints, levels: Levels) -> bool:
        """Bring up to date the nodes whose sum or pods changed; False where that is dearer than to begin anew."""
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
