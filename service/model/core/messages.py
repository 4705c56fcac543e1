"""Translates msgspec's type errors into the wording of all other errors."""

import re

from service.model.core.errors import FieldError
from service.model.core.validators import REQUIRED, at

_TYPES = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "an integer",
    "object": "an object",
    "str": "a string",
}
_EXPECTED = re.compile(r"Expected `([^`]*)`(?: (<=|>=|of length <=|of length >=) (\d+))?.*")
_MEMBER = re.compile(r"Object (missing required|contains unknown) field `([^`]*)`")
_BOUNDS = {"<=": "of at most", ">=": "of at least"}


def reword(error: str) -> FieldError:
    """Convert the text of a `msgspec.ValidationError` into a field and a message."""
    reason, _, path = error.partition(" - at `$")
    field = path.rstrip("`").removeprefix(".")
    if match := _MEMBER.fullmatch(reason):
        message = REQUIRED if match[1].startswith("missing") else "unknown field"
        return FieldError(at(field, match[2]), message)
    if match := _EXPECTED.fullmatch(reason):
        types = [_TYPES.get(name, name) for name in match[1].split(" | ") if name != "null"]
        bound = f" {_BOUNDS[match[2]]} {match[3]}" if match[2] in _BOUNDS else ""
        return FieldError(field, f"must be {' or '.join(types)}{bound}")
    return FieldError(field, reason[:1].lower() + reason[1:])
