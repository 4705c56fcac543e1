"""Makes the JSON schemas of the API's types, with a description of each field.

The description is that of the field's type, or the docstring below the field in the code.
"""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from service.model.objects import Partial

Document = dict[str, Any]

_PREFIX = "#/components/schemas/"

_OF_EVERY_OBJECT: Mapping[str, str] = {
    "apiVersion": "Kubernetes API version of the object.",
    "kind": "Kubernetes kind of the object.",
    "metadata": "Name, labels and identity.",
    "items": "The objects themselves.",
}
"""Descriptions of the fields that all kinds of objects have, each in a type of its own."""

_SHAPES: Mapping[str, Document] = {
    "PlacementResult.explanation": {
        "anyOf": [
            {"$ref": _PREFIX + "Explanation"},
            {"$ref": _PREFIX + "Summary"},
            {"type": "null"},
        ]
    },
    "Unplaced.explanation": {
        "anyOf": [{"$ref": _PREFIX + "Explanation"}, {"$ref": _PREFIX + "Summary"}]
    },
}
"""Schemas of fields whose type is not declared, because a lower layer fills in one of several types."""


def reference_to(type_: Any) -> Document:
    """The schema of one type, which refers to the schemas of the structs in it."""
    (schema,), _ = _generated([type_])
    return unwrapped(schema)


def schemas_of(types: Sequence[Any]) -> Document:
    """The schemas of these types and of all structs in them, ordered by name."""
    _, schemas = _generated(types)
    classes = {cls.__name__: cls for cls in structs_in(types)}
    return {name: _described(classes[name], schemas[name]) for name in sorted(schemas)}


def _generated(types: Sequence[Any]) -> tuple[tuple[Document, ...], Document]:
    return msgspec.json.schema_components(
        types, schema_hook=_anything, ref_template=_PREFIX + "{name}"
    )


def _anything(type_: type) -> Document:
    """The schema of `object`, which is any JSON value; other types unknown to msgspec are mistakes."""
    if type_ is not object:
        raise NotImplementedError(type_)
    return {"description": "Any JSON value."}


def unwrapped(schema: Document) -> Document:
    """The schema without defaults that are null or empty, which only say that a field is optional."""
    return {
        key: _without_empty_defaults(value)
        for key, value in schema.items()
        if not (key == "default" and value in (None, [], {}))
    }


def _without_empty_defaults(value: Any) -> Any:
    if isinstance(value, dict):
        return unwrapped(value)
    if isinstance(value, list):
        return [_without_empty_defaults(item) for item in value]
    return value


def _described(cls: type[msgspec.Struct], schema: Document) -> Document:
    schema = unwrapped(schema)
    schema.pop("title", None)
    if issubclass(cls, Partial):
        schema["additionalProperties"] = True
    texts = _field_docstrings(cls)
    for field in msgspec.structs.fields(cls):
        described = schema["properties"][field.encode_name]
        described |= _SHAPES.get(f"{cls.__name__}.{field.encode_name}", {})
        text = texts.get(field.name) or _OF_EVERY_OBJECT.get(field.encode_name)
        if text and "description" not in described:
            described["description"] = text
    return schema


@cache
def _field_docstrings(cls: type) -> dict[str, str]:
    """The docstrings below the fields of a class and of the structs that it extends."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if issubclass(base, msgspec.Struct) and base is not msgspec.Struct and _has_source(base):
            found |= _docstrings_below(base)
    return found


def _has_source(cls: type) -> bool:
    """Whether a class was written and not made by `msgspec.defstruct`, whose fields have no docstrings."""
    return hasattr(sys.modules[cls.__module__], cls.__name__)


def _docstrings_below(cls: type) -> dict[str, str]:
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    return {
        statement.target.id: " ".join(below.value.value.split())
        for statement, below in zip(tree.body, tree.body[1:], strict=False)
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


def structs_in(types: Sequence[Any]) -> list[type[msgspec.Struct]]:
    """All struct classes that these types are made of."""
    found: dict[type[msgspec.Struct], None] = {}
    for info in msgspec.inspect.multi_type_info(types):
        _collect(info, found)
    return list(found)


def _collect(info: Any, found: dict[type[msgspec.Struct], None]) -> None:
    if isinstance(info, msgspec.inspect.StructType):
        if info.cls in found:
            return
        found[info.cls] = None
    for part in _parts(info):
        _collect(part, found)


def _parts(info: Any) -> Iterable[Any]:
    """The types that msgspec's description of a type contains, directly or in its fields."""
    for name in info.__struct_fields__:
        value = getattr(info, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, msgspec.inspect.Type | msgspec.inspect.Field):
                yield part
