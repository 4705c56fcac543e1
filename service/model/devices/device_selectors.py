"""Device selectors: CEL on `device.driver`, `device.attributes`, and `device.capacity`.

The expressions are those of Kubernetes' DeviceClasses and ResourceClaims. CEL itself has no
quantities and versions; they are represented as maps with one entry, which the functions of
Kubernetes' library accept and return. A domain without attributes is an empty map, as in
Kubernetes.

Source: `k8s.io/dynamic-resource-allocation/cel` and `k8s.io/apiserver/pkg/cel/library`, v1.35.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

import msgspec

from service.model.cel.evaluation import (
    ExpressionError,
    Guard,
    TooCostly,
    compiled_by,
)
from service.model.cel.values import ONE, Bounds, Size, map_of, text
from service.model.core.quantity import NANO, parse_quantity

SELECTOR_LENGTH_MAX = 10 * 1024
"""The maximum length of an expression (CELSelectorExpressionMaxLength)."""
QUANTITY, VERSION = "$quantity", "$version"
"""The key of the map entry that holds a quantity (in nanos, as text) or a semantic version."""
_COMPILED_MAX = 64
_CHECKED_MAX = 1024

_VERSION = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_INDEX = re.compile(r"""\[\s*(?:"([^"\\]*)"|'([^'\\]*)')\s*\]""")
_IN_MAP = re.compile(
    r"""(?:"([^"\\]*)"|'([^'\\]*)')\s+in\s+device\.(?:attributes|capacity)(?!\s*[.\[])"""
)

Json = dict[str, Any]

_NAMES_MAX, _VALUE_LENGTH_MAX = 32, 64
_DOMAIN, _IDENTIFIER = text(63), text(32)
_ATTRIBUTE = Bounds(size=Size(0, _VALUE_LENGTH_MAX), weight=text(_VALUE_LENGTH_MAX).weight)
_CAPACITY = Bounds(size=ONE, weight=text(_VALUE_LENGTH_MAX).weight)
DEVICE = Bounds(
    "struct",
    fields={
        "driver": _DOMAIN,
        "attributes": map_of(_DOMAIN, map_of(_IDENTIFIER, _ATTRIBUTE, _NAMES_MAX), _NAMES_MAX),
        "capacity": map_of(_DOMAIN, map_of(_IDENTIFIER, _CAPACITY, _NAMES_MAX), _NAMES_MAX),
    },
)
"""The bounds of a device, for estimating the cost of expressions."""


class DeviceSelector:
    """A compiled expression about a device."""

    def __init__(self, text: str) -> None:
        """Compile an expression.

        Raises:
            ExpressionError: the text is not a valid expression, uses an unknown function, is not
                boolean, or may cost too much.
        """
        self._expression = compiled_by(library(), text)
        if self._expression.costs({"device": DEVICE}).is_too_much:
            raise TooCostly
        self._domains = _literals(_INDEX, text) - _literals(_IN_MAP, text)
        """The domains that the expression looks up, which a device may lack."""

    def selects(self, driver: str, content: bytes, guard: Guard = nullcontext) -> bool:
        """Return whether the expression is true of a device with this driver and these contents.

        Raises:
            ExpressionError: evaluation fails, for example on an absent attribute.
        """
        said = msgspec.json.decode(content, type=Json)
        device = {
            "driver": driver,
            "attributes": self._by_domain(said.get("attributes", {}), driver, _attribute),
            "capacity": self._by_domain(said.get("capacity", {}), driver, _capacity),
        }
        return self._expression.holds({"device": device}, guard)

    def _by_domain(
        self, entries: Json, driver: str, value: Callable[[Json], object]
    ) -> dict[str, Json]:
        attributes: dict[str, Json] = {domain: {} for domain in self._domains}
        for name, entry in entries.items():
            domain, _, identifier = full_name(name, driver).partition("/")
            attributes.setdefault(domain, {})[identifier] = value(entry)
        return attributes


@lru_cache(maxsize=_CHECKED_MAX)
def selector_problem(text: str) -> str | None:
    """Return why a text is not a valid device selector, or None."""
    try:
        DeviceSelector(text)
    except ExpressionError as error:
        return str(error)
    return None


@lru_cache(maxsize=_COMPILED_MAX)
def device_selector(text: str) -> DeviceSelector:
    """Compile a device selector, with a cache for the whole process.

    Raises:
        ExpressionError: the text is not a valid device selector.
    """
    return DeviceSelector(text)


def full_name(name: str, driver: str) -> str:
    """Return an attribute's name with its domain, or else with the driver as its domain."""
    return name if "/" in name else f"{driver}/{name}"


def is_version(text: str) -> bool:
    """Return whether a text is a semantic version."""
    return _VERSION.fullmatch(text) is not None


def _literals(pattern: re.Pattern[str], text: str) -> set[str]:
    return {double or single for double, single in pattern.findall(text)}


def _attribute(entry: Json) -> object:
    if "version" in entry:
        return {VERSION: entry["version"]}
    return next(iter(entry.values()), None)


def _capacity(entry: Json) -> object:
    return _quantity(entry["value"])


# Quantities


def _quantity(text: str | float) -> dict[str, str]:
    return {QUANTITY: str(parse_quantity(text))}


def _nanos(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value * NANO
    if not isinstance(value, dict) or QUANTITY not in value:
        raise ValueError("no such overload")
    return int(_plain(value[QUANTITY]))


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except ValueError:
        return False
    return True


def _as_integer(quantity: object) -> int:
    whole, rest = divmod(_nanos(quantity), NANO)
    if rest:
        raise ValueError("cannot convert value to integer")
    return whole


# Versions

_Precedence = tuple[int, int, int, tuple[Any, ...]]


def _version(text: str) -> dict[str, str]:
    if not is_version(text):
        raise ValueError(f"{text!r} is no semantic version")
    return {VERSION: text.partition("+")[0]}


def _numbers(value: object) -> _Precedence:
    """Return a version's sort key by precedence: a pre-release comes before its release."""
    if not isinstance(value, dict) or VERSION not in value:
        raise ValueError("no such overload")
    match = _VERSION.fullmatch(_plain(value[VERSION]))
    if match is None:
        raise ValueError("no semantic version")
    parts = match[4].split(".") if match[4] else []
    identifiers = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]
    pre = (0, *identifiers) if parts else (1,)
    return int(match[1]), int(match[2]), int(match[3]), pre


def _plain(value: object) -> str:
    """Return the text of a map entry, which the library may have wrapped."""
    text = value if isinstance(value, str) else value.value()  # type: ignore[attr-defined]
    return str(text)


# Quantities and versions


def _order(value: object) -> Any:
    if isinstance(value, dict) and VERSION in value:
        return _numbers(value)
    return _nanos(value)


def _compare(one: object, other: object) -> int:
    first, second = _order(one), _order(other)
    if isinstance(first, int) is not isinstance(second, int):
        raise ValueError("no such overload")
    return int(first > second) - int(first < second)


@cache
def library() -> tuple[Any, Any]:
    """Return the CEL library, and the environment for expressions about devices."""
    cel = import_module("cel_expr_python.cel")
    extensions = [
        import_module(f"cel_expr_python.ext.ext_{name}").__getattribute__(f"Ext{name.title()}")()
        for name in ("bindings", "optional", "strings")
    ]
    return cel, cel.NewEnv(
        variables={"device": cel.Type.DYN}, functions=_functions(cel), extensions=extensions
    )


def _functions(cel: Any) -> list[Any]:
    """Declare the functions of Kubernetes' library: those on texts, quantities, and versions."""
    kind = cel.Type
    on_texts: Mapping[str, tuple[Any, Callable[..., Any]]] = {
        "quantity": (kind.DYN, _quantity),
        "isQuantity": (kind.BOOL, _is_quantity),
        "semver": (kind.DYN, _version),
        "isSemver": (kind.BOOL, is_version),
    }
    on_one: Mapping[str, tuple[Any, Callable[..., Any]]] = {
        "sign": (kind.INT, lambda value: _compare(value, {QUANTITY: "0"})),
        "isInteger": (kind.BOOL, lambda value: _nanos(value) % NANO == 0),
        "asInteger": (kind.INT, _as_integer),
        "asApproximateFloat": (kind.DOUBLE, lambda value: _nanos(value) / NANO),
        "major": (kind.INT, lambda value: _numbers(value)[0]),
        "minor": (kind.INT, lambda value: _numbers(value)[1]),
        "patch": (kind.INT, lambda value: _numbers(value)[2]),
    }
    on_two: Mapping[str, tuple[Any, Callable[..., Any]]] = {
        "compareTo": (kind.INT, _compare),
        "isGreaterThan": (kind.BOOL, lambda one, other: _compare(one, other) > 0),
        "isLessThan": (kind.BOOL, lambda one, other: _compare(one, other) < 0),
    }
    sums: Mapping[str, tuple[Any, Callable[..., Any]]] = {
        "add": (kind.DYN, lambda one, other: {QUANTITY: str(_nanos(one) + _nanos(other))}),
        "sub": (kind.DYN, lambda one, other: {QUANTITY: str(_nanos(one) - _nanos(other))}),
    }

    def declared(
        named: Mapping[str, tuple[Any, Callable[..., Any]]], *taken: list[Any], is_member: bool
    ) -> list[Any]:
        return [
            cel.FunctionDecl(
                name,
                [
                    cel.Overload(f"{name}_{n}", returned, of, is_member=is_member, impl=impl)
                    for n, of in enumerate(taken)
                ],
            )
            for name, (returned, impl) in named.items()
        ]

    return [
        *declared(on_texts, [kind.STRING], is_member=False),
        *declared(on_one, [kind.MAP], is_member=True),
        *declared(on_two, [kind.MAP, kind.MAP], is_member=True),
        *declared(sums, [kind.MAP, kind.MAP], [kind.MAP, kind.INT], is_member=True),
    ]
