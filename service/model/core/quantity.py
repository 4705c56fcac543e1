"""Kubernetes resource quantities as exact integers.

A quantity is stored as a whole number of nanos, the finest step that Kubernetes keeps, so sums are
exact and only the final result is rounded up, as kube-scheduler does per pod. The grammar is that
of `k8s.io/apimachinery/pkg/api/resource`, but quantities out of range are rejected instead of
silently capped.
"""

import re
from functools import lru_cache

from service.model.core.primitives import Quantities

LENGTH_MAX = 32
EXPONENT_MAX = 64
INT64_MAX = 2**63 - 1
NANO = 10**9
MILLI = 10**6
"""Nanos in one milli."""

_GRAMMAR = re.compile(
    r"([+-]?)([0-9]+)?(?:\.([0-9]*))?(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]+)?"
)
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


class InvalidQuantity(ValueError):  # noqa: N818 - as in service.model.core.errors
    """The text is not a quantity, is too long, or is out of range."""


@lru_cache(maxsize=16_384, typed=True)
def parse_quantity(text: str | float) -> int:
    """Parse a quantity into nanos; finer steps round away from zero.

    Numbers are read as their shortest decimal text. Raises `InvalidQuantity` for text that does not
    match the grammar, has over 32 characters, or exceeds a signed 64-bit integer.
    """
    if isinstance(text, bool):
        raise InvalidQuantity("must be a quantity, such as 500m or 2Gi")
    nanos = _exact_nanos(str(text))
    if abs(nanos) > INT64_MAX * NANO:
        raise InvalidQuantity("must be at most 9223372036854775807 (a signed 64-bit integer)")
    return nanos


def _exact_nanos(text: str) -> int:
    if len(text) > LENGTH_MAX:
        raise InvalidQuantity(f"must be no more than {LENGTH_MAX} characters")
    parts = _GRAMMAR.fullmatch(text)
    if parts is None or not (parts[2] or parts[3]):
        raise InvalidQuantity("must be a quantity, such as 500m or 2Gi")
    sign, whole, fraction = parts[1], parts[2] or "", parts[3] or ""
    base, exponent = _scale(parts[4] or "")
    magnitude = _scaled(int(whole + fraction) * base, exponent - len(fraction) + 9)
    return -magnitude if sign == "-" else magnitude


def _scale(suffix: str) -> tuple[int, int]:
    """Return a suffix's multiplier as a factor and a power of ten."""
    if suffix in _BINARY:
        return 1024 ** _BINARY[suffix], 0
    if suffix in _DECIMAL:
        return 1, _DECIMAL[suffix]
    exponent = int(suffix[1:])
    if abs(exponent) > EXPONENT_MAX:
        raise InvalidQuantity(f"must have an exponent between -{EXPONENT_MAX} and {EXPONENT_MAX}")
    return 1, exponent


def _scaled(number: int, exponent: int) -> int:
    """Return `number * 10**exponent`, rounded up."""
    if exponent >= 0:
        return int(number * 10**exponent)
    return int(-(-number // 10**-exponent))


def ceil_milli(nanos: int) -> int:
    """Round nanos up to millis."""
    return -(-nanos // MILLI)


def ceil_whole(nanos: int) -> int:
    """Round nanos up to whole units."""
    return -(-nanos // NANO)


def amount(resource: str, nanos: int) -> int:
    """Convert nanos of a resource to its unit of amounts: milli for cpu, whole units otherwise."""
    return ceil_milli(nanos) if resource == "cpu" else ceil_whole(nanos)


def amounts(quantities: Quantities | None) -> dict[str, int]:
    """Convert quantities to amounts by resource: in milli for cpu, in whole units otherwise."""
    if not quantities:
        return {}
    return {name: amount(name, parse_quantity(text)) for name, text in quantities.items()}


def format_amount(resource: str, counted: int) -> str:
    """Format an amount, in its resource's unit, as the shortest exact decimal text."""
    return format_quantity(counted * (MILLI if resource == "cpu" else NANO))


def format_quantity(nanos: int) -> str:
    """Format nanos as the shortest exact decimal text, in whole units, millis, or nanos."""
    if nanos % NANO == 0:
        return str(nanos // NANO)
    return f"{nanos // MILLI}m" if nanos % MILLI == 0 else f"{nanos}n"
