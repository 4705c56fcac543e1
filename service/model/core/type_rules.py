"""Validation rules derived from the types to which manifests are decoded.

A type declares an object's fields, which of them are required, whether unknown fields are errors,
and the allowed words and bounds of single fields. They are stated once, for validation, decoding,
and the OpenAPI document. What a type cannot express, such as the syntax of names, is stated in an
additional rule.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

import msgspec

from service.model.core.validators import (
    RecordCheck,
    Rule,
    boolean,
    one_of,
    record,
    text,
    whole_number,
)

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def declared(
    type_: type[msgspec.Struct],
    rules: Mapping[str, Rule],
    *,
    required: Sequence[str] = (),
    mistakes: Mapping[str, str] | None = None,
    also: Iterable[RecordCheck] = (),
) -> Rule:
    """Derive the rule for an object from its type and from additional rules.

    Args:
        type_: the type to which the object is decoded.
        rules: rules for fields that the type lacks or leaves too open.
        required: fields that must be present even though the type has a default for them.
        mistakes: error messages for common wrong field names.
        also: checks across fields.
    """
    fields = msgspec.structs.fields(type_)
    derived = {
        field.encode_name: _rule(field.type) for field in fields if field.encode_name not in rules
    }
    return record(
        {**derived, **rules},
        required=(*(field.encode_name for field in fields if field.required), *required),
        closed=type_.__struct_config__.forbid_unknown_fields,
        mistakes=mistakes,
        also=also,
    )


def fields_of(type_: type[msgspec.Struct]) -> list[str]:
    """Return the names of a type's fields as written in manifests."""
    return [field.encode_name for field in msgspec.structs.fields(type_)]


def _rule(type_: object) -> Rule:
    """Derive the rule for a scalar type; types of objects and lists need an explicit rule."""
    origin, parts = get_origin(type_), get_args(type_)
    if origin in (Union, UnionType):
        (inner,) = (part for part in parts if part is not NoneType)
        return _rule(inner)
    if origin is Literal:
        return one_of(*parts)
    if origin is Annotated and parts[0] is int:
        return _number(parts[1])
    plain: Mapping[object, Rule] = {
        str: text(),
        bool: boolean,
        int: whole_number(_INT64_MIN, _INT64_MAX),
    }
    return plain[type_]


def _number(bounds: msgspec.Meta) -> Rule:
    low = _INT64_MIN if bounds.ge is None else int(bounds.ge)
    high = _INT64_MAX if bounds.le is None else int(bounds.le)
    return whole_number(low, high, (bounds.extra or {}).get("message"))
