"""Function calls in CEL, and upper bounds of the cost of evaluating a part of an expression."""

from collections.abc import Sequence
from typing import NamedTuple

from service.model.cel.syntax import Node
from service.model.cel.values import SCALAR, Bounds

COST_MAX = 1_000_000
"""Kubernetes' limit for one expression (CELSelectorExpressionMaxCost, and PerCallLimit of policies)."""
WEIGHT_MAX = 32_000_000
"""Our limit: half of an evaluation's time and memory."""
LOOKUP_WEIGHT = 400
COPIED_ITEM_WEIGHT = 40
"""The weight of an item when a list is copied."""


class Estimate(NamedTuple):
    """The cost bound of evaluating a part, and the bounds of its value."""

    cost: int
    weight: int
    value: Bounds

    @property
    def is_too_much(self) -> bool:
        """Whether an expression of this cost is refused."""
        return self.cost > COST_MAX or self.weight > WEIGHT_MAX


class Call(NamedTuple):
    """A function call, with the estimates of its target and arguments."""

    node: Node
    target: Estimate | None
    args: Sequence[Estimate]

    @property
    def given(self) -> list[Estimate]:
        """The target, if there is one, and the arguments."""
        return [*([self.target] if self.target is not None else []), *self.args]

    def value(self, index: int) -> Bounds:
        """Return the bounds of the target (0) or an argument (from 1) of a member function."""
        given = self.given
        return given[index].value if index < len(given) else SCALAR


class CallWeight(NamedTuple):
    """The weight that a call adds to the estimates of its target and arguments."""

    weight: int
    value: Bounds
