"""The few nodes to which affinity gives another sum of weights than to all others.

Pods that attract each other make such: a full node, or one that fills, among thousands that are alike.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from service.engine.plugin import Scale
from service.engine.ranking.best_node_tree import BestNodeTree
from service.engine.state.columns import Ints
from service.engine.state.views import WeighedSum

OUTLIERS_MAX = 64
"""Beyond so many, each of which is looked at for each pod, other ways are cheaper."""
SPAN_MAX: Final = 1024
"""Between the least and the greatest sum."""


class Outliers:
    """Of a view of sums, whose changes `follow` is told of."""

    __slots__ = ("_common", "_scale", "_sums", "_view", "_witness")

    def __init__(self, view: WeighedSum, scale: Scale) -> None:
        self._view = view
        self._scale = scale
        self._common = 0
        """The sum that most nodes have."""
        self._sums: dict[int, int] | None = None
        """The sum of each other, by slot; None where they are many."""
        self._witness = 0
        """A slot that is likely to be feasible, and no outlier."""

    @property
    def slots(self) -> tuple[int, ...] | None:
        """Those that there are, in no order; None where they are not known, or many."""
        return None if self._sums is None else tuple(self._sums)

    def find(self) -> None:
        """Look at all nodes."""
        sums = self._view.values()
        least = int(sums.min())
        self._sums = None
        if int(sums.max()) - least > SPAN_MAX:
            return
        self._common = least + int(np.bincount(sums - least).argmax())
        slots = np.flatnonzero(sums != self._common).tolist()
        if len(slots) <= OUTLIERS_MAX:
            self._sums = {slot: self._view.at(slot) for slot in slots}

    def follow(self, moved: set[int] | None) -> None:
        """The sums of these nodes changed; None: those of any may have."""
        if moved is None:
            self._sums = None
        elif self._sums is not None:
            for slot in moved:
                self._put(self._sums, slot)
            if len(self._sums) > OUTLIERS_MAX:
                self._sums = None

    def _put(self, sums: dict[int, int], slot: int) -> None:
        total = self._view.at(slot)
        if total != self._common:
            sums[slot] = total
        else:
            sums.pop(slot, None)

    def best(
        self, ranks: Ints, tie: int, without_affinity: Callable[[], BestNodeTree | None]
    ) -> tuple[int, int] | None:
        """As `AffinityRanks.best`; None where it is not known, as when an outlier has less than all others."""
        sums, cells = self._sums, ranks.data
        if sums is None:
            return None
        present = [(slot, total) for slot, total in sums.items() if cells[slot] >= 0]
        if any(total < self._common for _, total in present):
            return None
        most = max((total for _, total in present), default=self._common)
        added, best_node_tree = self._scale(most - self._common), without_affinity()
        if added is None or best_node_tree is None or best_node_tree.top(0) < 0:
            return None
        best = best_node_tree.find(0, tie, ())
        if best in sums and not self._is_common_feasible(sums, ranks):
            return None
        # Where the best without affinity is an outlier itself, all that are none are worse.
        greatest, scores = cells[best], added.data
        for slot, total in present:
            rank = cells[slot] + scores[total - self._common]
            if rank ^ tie > greatest ^ tie:
                best, greatest = slot, rank
        return best, greatest

    def _is_common_feasible(self, sums: dict[int, int], ranks: Ints) -> bool:
        """Whether any feasible node is no outlier, so that the common sum is the least."""
        if self._witness in sums or ranks[self._witness] < 0:
            feasible = np.flatnonzero(ranks >= 0)[: OUTLIERS_MAX + 1].tolist()
            self._witness = next((slot for slot in feasible if slot not in sums), self._witness)
        return self._witness not in sums and bool(ranks[self._witness] >= 0)
