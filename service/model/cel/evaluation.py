"""Checks and evaluates CEL expressions, within bounds on the time and memory that one can use.

The library is only imported when there is an expression. It checks types when it compiles, matches
regular expressions in linear time, and ends an evaluation after 10,000 steps of its loops. It
bounds neither memory nor the time of one step, so an expression is evaluated only if what it can
cost at most (`cel_costs`) is within the limits.
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
"""The variables of policies, as in a ValidatingAdmissionPolicy."""
EXPRESSION_LENGTH_MAX = 2048
ITEMS_MAX = 500
"""The most items of a list, or fields of a map, of an object that expressions are evaluated on."""
OBJECT_BYTES_MAX = 262_144
"""The greatest length of such an object as JSON."""
BUDGET_MAX = 10_000_000
"""The budget of all policies together for one object (RuntimeCELCostBudget)."""
_KEPT_MAX = 128
_ERROR_LENGTH_MAX = 200
WRITTEN_OUT_MAX = 32 * 1024
"""The greatest length of an expression with its macros expanded, in characters."""
_DOUBLINGS_COUNTED_MAX = 30
SERIALIZED_BYTES_MAX = 256 * 1024
"""The greatest length of the library's form of an expression, some 10,000 parts."""
_DOUBLING = re.compile(r"\bopt(?:Flat)?Map\b")


class ExpressionError(Exception):
    """An expression cannot be compiled, or has no answer; the message says why."""


Guard = Callable[[], AbstractContextManager[object]]
"""A context that bounds time and memory, in processes that can bound their own."""


class TooCostly(ExpressionError):  # noqa: N818 - a kind of it
    """An expression can cost more than is allowed, so it is not evaluated."""

    def __init__(self) -> None:
        super().__init__(TOO_COSTLY)


class Expression:
    """A compiled expression, whose answer is true or false."""

    def __init__(self, compiled: Any, true_or_false: Any) -> None:
        self._compiled = compiled
        self._true_or_false = true_or_false

    def costs(self, variables: Mapping[str, Bounds]) -> Estimate:
        """Return a bound of its cost if its variables are within these bounds."""
        return estimate(self.syntax(), variables)

    def syntax(self) -> Node:
        """Return its syntax tree, which takes more memory than the rest.

        Raises:
            TooCostly: it is so large that looking through it takes too long.
        """
        serialized = self._compiled.serialize()
        if len(serialized) > SERIALIZED_BYTES_MAX:
            raise TooCostly
        return parsed(serialized)

    def holds(self, variables: Mapping[str, object], guard: Guard = nullcontext) -> bool:
        """Evaluate the expression; each of its variables has to have a value.

        Raises:
            ExpressionError: it has no answer, such as where a field is absent, or no boolean one.
            MemoryError: it needs more memory than `guard` allows.
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
    """Compile an expression, once in a process.

    Raises:
        ExpressionError: it is no expression, names an unknown variable, is not true or false, or
            costs too much whatever it is asked about.
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
    """Return the first expression that is not true, and why it has no answer if so, or None.

    All of them together may cost ten times what one may, as in Kubernetes.
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
    """Compile an expression with the library, in an environment that declares its variables.

    Raises:
        ExpressionError: it is no expression, names what the environment lacks, is not true or false,
            or takes too long to compile.
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
    """Return a bound of the length of an expression with its macros expanded.

    `optMap` and `optFlatMap` write out twice what they are called on, so compiling takes twice as
    long with each that is called on the one before: 18 took two seconds.
    """
    return len(text) << min(len(_DOUBLING.findall(text)), _DOUBLINGS_COUNTED_MAX)


def is_bounded(value: object) -> bool:
    """Return whether all lists and maps in decoded JSON are short enough to evaluate."""
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
    """Return the first line of a message of the library, without its constant parts."""
    first = str(error).strip().partition("\n")[0]
    for prefix in ("INVALID_ARGUMENT: ", "ERROR: ", "<input>:"):
        first = first.removeprefix(prefix)
    return first[:_ERROR_LENGTH_MAX]
