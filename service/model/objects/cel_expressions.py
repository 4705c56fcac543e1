"""Expressions of CEL, the Common Expression Language, in which Kubernetes' admission policies are written.

The library is only imported when there is an expression. It checks types when it compiles, matches
regular expressions in linear time, and ends an evaluation after 10,000 steps of its loops. Since
`map` and `filter` take time by the square of a list's length, the objects are bounded here as well.
"""

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any

VARIABLES = ("object", "oldObject", "namespaceObject", "request")
"""What expressions can speak of, as in a ValidatingAdmissionPolicy."""
EXPRESSION_LENGTH_MAX = 2048
ITEMS_MAX = 500
"""How many items a list, or fields a map, of an object may have that expressions are asked about."""
OBJECT_BYTES_MAX = 262_144
"""How long such an object may be as JSON."""
_KEPT_MAX = 1024
_ERROR_LENGTH_MAX = 200


class ExpressionError(Exception):
    """An expression cannot be compiled, or has no answer; the message says why."""


class Expression:
    """A compiled expression, whose answer is true or false."""

    def __init__(self, compiled: Any, true_or_false: Any) -> None:
        self._compiled = compiled
        self._true_or_false = true_or_false

    def holds(self, variables: Mapping[str, object]) -> bool:
        """Evaluate the expression; each of `VARIABLES` has to have a value.

        Raises:
            ExpressionError: it has no answer, such as where a field is absent, or no boolean one.
        """
        try:
            answer = self._compiled.eval(data=variables)
            value = answer.value()
            is_boolean = answer.type() == self._true_or_false
        except Exception as error:  # noqa: BLE001 - whatever it was, there is no answer
            raise ExpressionError(_told(error)) from None
        if not is_boolean:
            raise ExpressionError(_told(value))
        return bool(value)


@lru_cache(maxsize=_KEPT_MAX)
def compiled(text: str) -> Expression:
    """Compile an expression, once in a process.

    Raises:
        ExpressionError: it is no expression, names an unknown variable, or is not true or false.
    """
    return compiled_by(_library(), text)


def compiled_by(library: tuple[Any, Any], text: str) -> Expression:
    """Compile an expression with the library and an environment of it, which has its variables.

    Raises:
        ExpressionError: it is no expression, names what the environment lacks, or is not true or false.
    """
    cel, environment = library
    try:
        expression = environment.compile(text)
        returned = expression.return_type()
    except Exception as error:  # noqa: BLE001 - whatever it was, it cannot be asked
        raise ExpressionError(_told(error)) from None
    if returned not in (cel.Type.BOOL, cel.Type.DYN):
        raise ExpressionError(f"must be true or false, not of type {returned.name()}")
    return Expression(expression, cel.Type.BOOL)


def is_bounded(value: object) -> bool:
    """Whether no list and no map in decoded JSON is too long to be asked about."""
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
    """Return the first line of what the library says, without what is the same in all of it."""
    first = str(error).strip().partition("\n")[0]
    for prefix in ("INVALID_ARGUMENT: ", "ERROR: ", "<input>:"):
        first = first.removeprefix(prefix)
    return first[:_ERROR_LENGTH_MAX]
