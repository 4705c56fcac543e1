"""Function calls in CEL, and upper bounds on the cost of evaluating a subexpression."""

from collections.abc import Sequence
from typing import NamedTuple

from service.model.cel.syntax import Node
from service.model.cel.values import SCALAR, Bounds

COST_MAX = 1_000_000
"""Kubernetes' limit for one expression (CELSelectorExpressionMaxCost, and PerCallLimit of policies)."""
WEIGHT_MAX = 32_000_000
"""Moorage's limit on the weight: half of the time and memory allowed for an evaluation."""
LOOKUP_WEIGHT = 400
COPIED_ITEM_WEIGHT = 40
"""The weight of copying one item of a list."""


class Estimate(NamedTuple):
    """Upper bounds on the cost of evaluating a subexpression, and the bounds of its value."""

    cost: int
    weight: int
    value: Bounds

    @property
    def is_too_much(self) -> bool:
        """Whether an expression with this estimate is rejected."""
        return self.cost > COST_MAX or self.weight > WEIGHT_MAX


class Call(NamedTuple):
    """A function call, with the estimates of its target and arguments."""

    node: Node
    target: Estimate | None
    args: Sequence[Estimate]

    @property
    def given(self) -> list[Estimate]:
        """The target, if any, followed by the arguments."""
        return [*([self.target] if self.target is not None else []), *self.args]

    def value(self, index: int) -> Bounds:
        """Return the bounds of a member function's target (0) or of an argument (from 1)."""
        given = self.given
        return given[index].value if index < len(given) else SCALAR


class CallWeight(NamedTuple):
    """The weight that a call adds to the weights of its target and arguments."""

    weight: int
    value: Bounds
