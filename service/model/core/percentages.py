"""Numbers of pods, either absolute or as a percentage of the desired number (IntOrString)."""

import re

from service.model.core.validators import INT32_MAX, Problems, whole_number

_PERCENT = re.compile(r"[0-9]+%")
_NOT_OVER_WHOLE = re.compile(r"0*([0-9]{1,2}|100)%")
_WHOLE = 100
_MOST = "999999%"
_count = whole_number(0, INT32_MAX)


def scaled_up(amount: int | str, of: int) -> int:
    """Return an absolute number, or a percentage of `of` rounded up."""
    return amount if isinstance(amount, int) else -(-percent_of(amount) * of // _WHOLE)


def scaled_down(amount: int | str, of: int) -> int:
    """Return an absolute number, or a percentage of `of` rounded down."""
    return amount if isinstance(amount, int) else percent_of(amount) * of // _WHOLE


def percent_of(amount: str) -> int:
    """Return the number in a valid percentage such as `25%`."""
    return int(amount.removesuffix("%").lstrip("0") or 0)


def amount(value: object, path: str, problems: Problems) -> None:
    """Check a whole number or a percentage."""
    if not isinstance(value, str):
        _count(value, path, problems)
    elif not _PERCENT.fullmatch(value):
        problems.add(path, "must be a whole number or a percentage such as 50%", value)
    elif len(value.lstrip("0")) > len(_MOST):
        problems.add(path, f"must not be greater than {_MOST}", value)


def amount_of_whole(value: object, path: str, problems: Problems) -> None:
    """Check a whole number or a percentage of at most 100%."""
    if not isinstance(value, str) or not _PERCENT.fullmatch(value):
        amount(value, path, problems)
    elif not _NOT_OVER_WHOLE.fullmatch(value):
        problems.add(path, "must not be greater than 100%", value)
