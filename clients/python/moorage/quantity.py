"""Kubernetes resource quantities as exact integers, in nanos.

`make client` copies this from service/model/core/quantity.py.
"""

import re
from functools import lru_cache

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
