"""Scores by utilization: piecewise linear functions that configurations define by their points."""

from collections.abc import Iterable

import numpy as np

from service.engine.state.nodes.columns import Ints
from service.model.cluster.plugin_args import ShapePoint

SHAPE_SCALE = 10
"""The factor from a shape's scores, 0 to 10, to node scores, 0 to 100."""

Shape = tuple[tuple[int, int], ...]
"""Pairs of utilization (0 to 100) and score (0 to 10), in ascending order of utilization."""


def shape_of(points: Iterable[ShapePoint]) -> Shape:
    """Convert the points of a configuration to the form that scores use."""
    return tuple((point.utilization, point.score) for point in points)


def scores_by_percent(shape: Shape) -> Ints:
    """Return the node score at each whole percentage of utilization, shape (101,), int64."""
    return np.array([_score_at(shape, percent) for percent in range(101)], dtype=np.int64)


def _score_at(shape: Shape, percent: int) -> int:
    points = [(utilization, score * SHAPE_SCALE) for utilization, score in shape]
    for index, (utilization, score) in enumerate(points):
        if percent > utilization:
            continue
        if index == 0:
            return score
        left, low = points[index - 1]
        # Integer division in Go truncates towards zero.
        return low + int((score - low) * (percent - left) / (utilization - left))
    return points[-1][1]
