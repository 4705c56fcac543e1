"""The objectives that a rebalance minimizes, and the fields of a goal about them."""

from typing import Literal, get_args

from service.model.core import names
from service.model.core.quantity import amount, parse_quantity
from service.model.core.resources import nanos_or_none, quantity
from service.model.core.validators import Problems, Record, at, list_of, one_of, text

Objective = Literal["Violations", "Skew", "Preferences", "Spread", "Packing", "Fragmentation"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
OBJECTIVES_WANTED: tuple[Objective, ...] = ("Violations", "Skew")
"""The default objectives of a rebalance."""


def block_amount(resource: str | None, block: str | float | None) -> int | None:
    """Return a block's amount of its resource, in the units of pod requests, or None."""
    return None if block is None or resource is None else amount(resource, parse_quantity(block))


def fits_objectives(goal: Record, path: str, problems: Problems) -> None:
    """Add an error for each resource field that no objective uses, and for each missing one."""
    objectives = goal.get("objectives")
    named = objectives if isinstance(objectives, list) else []
    if "Fragmentation" in named:
        if goal.get("resource") is None:
            problems.add(at(path, "resource"), "is required by Fragmentation")
        return
    for name in ("resource", "block"):
        if goal.get(name) is not None:
            problems.add(at(path, name), "must be given with the objective Fragmentation only")


def _positive(value: object, path: str, problems: Problems) -> None:
    if nanos_or_none(value) == 0:
        problems.add(path, "must be greater than 0", value)
        return
    quantity(value, path, problems)


MEASURED = {
    "objectives": list_of(
        one_of(*OBJECTIVES), at_least="must name at least one objective", values=True
    ),
    "resource": text(names.label_key),
    "block": _positive,
}
"""The fields of a goal that define what a rebalance measures."""
