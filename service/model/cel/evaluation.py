"""Checks and evaluates CEL expressions, and refuses those whose strings or time could grow too large.

The CEL library is imported on first use. It checks types at compile time, matches regular
expressions in linear time, and stops an evaluation after 10,000 loop iterations. It limits neither
memory nor the time of one step, so an expression is evaluated only if its worst-case cost
(`service.model.cel.costs`) is within the limits.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from importlib import import_module
from typing import Any

from service.model.cel.calls import Estimate
from service.model.cel.costs import TOO_COSTLY, estimate
from service.model.cel.syntax import Node, parsed
from service.model.cel.values import SMALLEST, Bounds, bounds_of

VARIABLES = ("object", "oldObject", "namespaceObject", "request")
"""The variables available to policies, as in a ValidatingAdmissionPolicy."""
EXPRESSION_LENGTH_MAX = 2048
ITEMS_MAX = 500
"""The most items in a list, or fields in a map, of an object that expressions are evaluated on."""
OBJECT_BYTES_MAX = 262_144
"""The maximum size of an evaluated object, in bytes of JSON."""
BUDGET_MAX = 10_000_000
"""The cost budget of all policies together per object (RuntimeCELCostBudget)."""
_KEPT_MAX = 128
_ERROR_LENGTH_MAX = 200
WRITTEN_OUT_MAX = 32 * 1024
"""The maximum length of an expression with its macros expanded, in characters."""
_DOUBLINGS_COUNTED_MAX = 30
SERIALIZED_BYTES_MAX = 256 * 1024
"""The maximum size of the library's serialized form of an expression: about 10,000 nodes."""
_DOUBLING = re.compile(r"\bopt(?:Flat)?Map\b")


class ExpressionError(Exception):
    """The expression cannot be compiled or evaluated; the message explains why."""


Guard = Callable[[], AbstractContextManager[object]]
"""A context manager that limits time and memory, for processes that can limit their own."""


class TooCostly(ExpressionError):  # noqa: N818 - a kind of it
    """The expression may cost more than allowed, so it is not evaluated."""

    def __init__(self) -> None:
        super().__init__(TOO_COSTLY)


class Expression:
    """A compiled boolean expression."""

    def __init__(self, compiled: Any, true_or_false: Any) -> None:
        self._compiled = compiled
        self._true_or_false = true_or_false

    def costs(self, variables: Mapping[str, Bounds]) -> Estimate:
        """Return an upper bound on the expression's cost, given the bounds of its variables."""
        return estimate(self.syntax(), variables)

    def syntax(self) -> Node:
        """Return the expression's syntax tree, which takes more memory than the rest.

        Raises:
            TooCostly: the tree is too large to traverse in time.
        """
        serialized = self._compiled.serialize()
        if len(serialized) > SERIALIZED_BYTES_MAX:
            raise TooCostly
        return parsed(serialized)

    def holds(self, variables: Mapping[str, object], guard: Guard = nullcontext) -> bool:
        """Evaluate the expression; every variable it uses must have a value.

        Raises:
            ExpressionError: evaluation fails, for example on an absent field, or the result is not
                a boolean.
            MemoryError: evaluation needs more memory than `guard` allows.
        """
        try:
            with guard():
                answer = self._compiled.eval(data=variables)
                value = answer.value()
                is_boolean = answer.type() == self._true_or_false
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it was, there is no answer
            raise ExpressionError(_told(error)) from None
        if not is_boolean:
            raise ExpressionError(_told(value))
        return bool(value)


def compiled(text: str) -> Expression:
    """Compile an expression, with a cache for the whole process.

    Raises:
        ExpressionError: the text is not a valid expression, uses an unknown variable, is not
            boolean, or is too costly for every input.
    """
    return _compiled(text)[0]


@lru_cache(maxsize=_KEPT_MAX)
def _compiled(text: str) -> tuple[Expression, Node]:
    expression = compiled_by(_library(), text)
    syntax = expression.syntax()
    if estimate(syntax, dict.fromkeys(VARIABLES, SMALLEST)).is_too_much:
        raise TooCostly
    return expression, syntax


def holds_within_budget(
    texts: Sequence[str], variables: Mapping[str, object], guard: Guard = nullcontext
) -> tuple[int, str | None] | None:
    """Return the index of the first expression that is not true, and its error if any, or None.

    All expressions together may cost ten times as much as one, as in Kubernetes.
    """
    bounds = {name: bounds_of(value) for name, value in variables.items()}
    cost = 0
    for index, text in enumerate(texts):
        try:
            expression, syntax = _compiled(text)
            estimated = estimate(syntax, bounds)
            cost += estimated.cost
            if estimated.is_too_much or cost > BUDGET_MAX:
                raise TooCostly
            if not expression.holds(variables, guard):
                return index, None
        except ExpressionError as error:
            return index, str(error)
    return None


def compiled_by(library: tuple[Any, Any], text: str) -> Expression:
    """Compile an expression with the library, in an environment that declares the variables.

    Raises:
        ExpressionError: the text is not a valid expression, uses an undeclared name, is not
            boolean, or takes too long to compile.
    """
    cel, environment = library
    if written_out(text) > WRITTEN_OUT_MAX:
        raise TooCostly
    try:
        expression = environment.compile(text)
        returned = expression.return_type()
    except Exception as error:  # noqa: BLE001 - whatever it was, it cannot be asked
        raise ExpressionError(_told(error)) from None
    if returned not in (cel.Type.BOOL, cel.Type.DYN):
        raise ExpressionError(f"must be true or false, not of type {returned.name()}")
    return Expression(expression, cel.Type.BOOL)


def written_out(text: str) -> int:
    """Return an upper bound on the length of an expression with its macros expanded.

    `optMap` and `optFlatMap` repeat their target twice, so each call in a chain doubles the compile
    time: 18 took two seconds.
    """
    return len(text) << min(len(_DOUBLING.findall(text)), _DOUBLINGS_COUNTED_MAX)


def is_bounded(value: object) -> bool:
    """Return whether all lists and maps in decoded JSON are small enough to evaluate."""
    if isinstance(value, dict):
        return len(value) <= ITEMS_MAX and all(map(is_bounded, value.values()))
    if isinstance(value, list):
        return len(value) <= ITEMS_MAX and all(map(is_bounded, value))
    return True


@lru_cache(maxsize=1)
def _library() -> tuple[Any, Any]:
    cel = import_module("cel_expr_python.cel")
    return cel, cel.NewEnv(variables=dict.fromkeys(VARIABLES, cel.Type.DYN))


def _told(error: object) -> str:
    """Return the first line of a library error message, without its fixed parts."""
    first = str(error).strip().partition("\n")[0]
    for prefix in ("INVALID_ARGUMENT: ", "ERROR: ", "<input>:"):
        first = first.removeprefix(prefix)
    return first[:_ERROR_LENGTH_MAX]
