"""Arguments of the plugins, in the form in which they compute."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from service.engine.state.columns import Ints

Resources = tuple[tuple[str, int], ...]
DEFAULT_RESOURCES: Resources = (("cpu", 1), ("memory", 1))
SHAPE_SCALE = 10
"""Shape points score 0 to 10, nodes 0 to 100."""


@dataclass(frozen=True, kw_only=True)
class FitArguments:
    """How NodeResourcesFit scores."""

    strategy: str = "LeastAllocated"
    resources: Resources = DEFAULT_RESOURCES
    shape: tuple[tuple[int, int], ...] = ()
    """(utilization 0 to 100, score 0 to 10), by rising utilization."""

    @cached_property
    def plain(self) -> bool:
        return self.strategy == "LeastAllocated" and self.resources == DEFAULT_RESOURCES

    @cached_property
    def line(self) -> Ints:
        """Shape (101,): the score at each whole percentage of utilisation."""
        return np.array([self._at(percent) for percent in range(101)], dtype=np.int64)

    def _at(self, percent: int) -> int:
        points = [(utilization, score * SHAPE_SCALE) for utilization, score in self.shape]
        for index, (utilization, score) in enumerate(points):
            if percent > utilization:
                continue
            if index == 0:
                return score
            left, low = points[index - 1]
            # Go divides towards zero.
            return low + int((score - low) * (percent - left) / (utilization - left))
        return points[-1][1]


@dataclass(frozen=True, kw_only=True)
class AffinityArguments:
    """How InterPodAffinity scores."""

    hard_weight: int = 1
    symmetric_affinity: bool = True
    symmetric_anti_affinity: bool = True
    ignore_preferred_of_existing: bool = False
    weight_per_term: bool = False
