"""Calls of functions in CEL, and what evaluating a part of an expression costs at most."""

from collections.abc import Sequence
from typing import NamedTuple

from service.model.cel.syntax import Node
from service.model.cel.values import SCALAR, Bounds

COST_MAX = 1_000_000
"""Kubernetes' limit for one expression (CELSelectorExpressionMaxCost, and PerCallLimit of policies)."""
WEIGHT_MAX = 32_000_000
"""Our limit: half of the time and memory that an evaluation is given."""
LOOKUP_WEIGHT = 400
COPIED_ITEM_WEIGHT = 40
"""What an item weighs if a list is copied."""


class Estimate(NamedTuple):
    """What evaluating a part costs at most, and its value."""

    cost: int
    weight: int
    value: Bounds

    @property
    def is_too_much(self) -> bool:
        """Whether an expression of this cost is refused."""
        return self.cost > COST_MAX or self.weight > WEIGHT_MAX


class Call(NamedTuple):
    """A call of a function, with the estimates of what it is given."""

    node: Node
    target: Estimate | None
    args: Sequence[Estimate]

    @property
    def given(self) -> list[Estimate]:
        """The target, if there is one, and the arguments."""
        return [*([self.target] if self.target is not None else []), *self.args]

    def value(self, index: int) -> Bounds:
        """Return what the target (0) or an argument (from 1) of a member function is like."""
        given = self.given
        return given[index].value if index < len(given) else SCALAR


class CallWeight(NamedTuple):
    """What a call adds to the estimates of what it is given."""

    weight: int
    value: Bounds
