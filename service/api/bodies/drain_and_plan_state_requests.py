"""Reads the bodies of requests to cordon and drain nodes, and to change plans that are kept."""

import msgspec

from service.api.openapi import plan_types
from service.model.core.strict_json import decode_strict
from service.model.core.type_rules import declared
from service.model.core.validators import Problems, without_nulls

_DRAIN = declared(plan_types.DrainOptions, {})
_NOTHING = declared(plan_types.NoOptions, {})


def parse_drain(body: bytes) -> plan_types.DrainOptions:
    """Return how to drain; the body may be empty.

    Raises:
        MalformedJSON: the body is no JSON that Moorage reads.
        InvalidManifest: a field is wrong, or unknown.
    """
    if not body.strip():
        return plan_types.DrainOptions()
    fields, problems = decode_strict(body), Problems()
    _DRAIN(fields, "", problems)
    problems.raise_any()
    return msgspec.convert(without_nulls(fields), plan_types.DrainOptions)


def parse_nothing(body: bytes) -> None:
    """Check a body that can say nothing; it may be empty. Raises as `parse_drain`."""
    if body.strip():
        fields, problems = decode_strict(body), Problems()
        _NOTHING(fields, "", problems)
        problems.raise_any()
