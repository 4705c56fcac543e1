"""Validation rules of scoring strategies in cluster settings and plugin arguments."""

from service.model.core import names
from service.model.core.validators import (
    Problems,
    Record,
    RecordCheck,
    at,
    entries_of,
    items_of,
    list_of,
    one_of,
    record,
    text,
    whole_number,
)

STRATEGY = one_of("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
HARD_AFFINITY_WEIGHT = whole_number(0, 100)


def _rises(shape: object, path: str, problems: Problems) -> None:
    """Check that utilization increases from each point to the next."""
    utilizations = [entries_of(point).get("utilization") for point in items_of(shape)]
    for index in range(1, len(utilizations)):
        before, here = utilizations[index - 1], utilizations[index]
        if isinstance(before, int) and isinstance(here, int) and here <= before:
            where = f"{path}[{index}].utilization"
            problems.add(where, "must be greater than that of the point before", here)


_POINT = record(
    {"utilization": whole_number(0, 100), "score": whole_number(0, 10)},
    required=("utilization", "score"),
)
_POINTS = list_of(_POINT, at_least="must have at least one point")


def score_shape(value: object, path: str, problems: Problems) -> None:
    """Check the points of a function from utilization to score: at least one, by utilization."""
    _POINTS(value, path, problems)
    _rises(value, path, problems)


RATIO = record({"shape": score_shape}, required=("shape",))
"""The rule for `requestedToCapacityRatio`."""


def ratio_needs_shape(strategy_field: str) -> RecordCheck:
    """Return a check that the strategy RequestedToCapacityRatio has a shape."""

    def check(fields: Record, path: str, problems: Problems) -> None:
        ratio = "RequestedToCapacityRatio"
        if fields.get(strategy_field) == ratio and fields.get("requestedToCapacityRatio") is None:
            where = at(path, "requestedToCapacityRatio")
            problems.add(where, f"is required for {strategy_field} {ratio}: give its shape")

    return check


RESOURCE_WEIGHTS = list_of(
    record(
        {"name": text(names.label_key), "weight": whole_number(1, 100)},
        required=("name",),
    ),
    at_least="must have at least one resource",
)
SCORING_STRATEGY = record(
    {"type": STRATEGY, "resources": RESOURCE_WEIGHTS, "requestedToCapacityRatio": RATIO},
    also=(ratio_needs_shape("type"),),
)
