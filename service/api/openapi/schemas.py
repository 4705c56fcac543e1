"""Generate JSON schemas of the API's types, with a description of each field.

The description is that of the field's type, or the docstring below the field. It also states the
field's default: TypeScript generators would take the keyword `default` to mean that the field is
always present, and would require it in requests.
"""

import ast
import inspect
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Any

import msgspec

Document = dict[str, Any]

_PREFIX = "#/components/schemas/"

_OF_EVERY_OBJECT: Mapping[str, str] = {
    "apiVersion": "Kubernetes API version of the object.",
    "kind": "Kubernetes kind of the object.",
    "metadata": "Name, labels and identity.",
    "items": "The objects themselves.",
}
"""Descriptions of the fields that all kinds of objects have in common."""

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
"""Schemas of fields without a declared type, filled in by a lower layer with one of several."""


def _exactly_one(*names: str) -> Document:
    """Return the rule that an object has exactly one of these properties.

    A `oneOf` would be simpler, but client generators make a class for each of its alternatives and
    lose the properties. All of them leave `not` to validators.
    """
    present = [_having(name) for name in names]
    pairs = [_having(*pair) for pair in combinations(names, 2)]
    return {"not": {"anyOf": [*pairs, {"not": {"anyOf": present}}]}}


def _having(*names: str) -> Document:
    return {"properties": {name: {} for name in names}, "required": [*names]}


_RULES: Mapping[str, Document] = {
    "PlacementRequest": {
        **_exactly_one("pods", "podRefs", "template"),
        "dependentRequired": {"template": ["replicas"], "replicas": ["template"]},
    },
    "SimulationRequest": _exactly_one("pod", "place"),
}
"""Rules that span several fields, by the name of their type."""


def reference_to(type_: Any) -> Document:
    """Return the schema of a type, which refers to the schemas of the structs in it."""
    (schema,), _ = _generated([type_])
    return _typed(unwrapped(schema))


def schemas_of(types: Sequence[Any], manifests: Sequence[type[msgspec.Struct]] = ()) -> Document:
    """Return the schemas of these types and of all structs in them, ordered by name.

    Unknown fields of the structs in `manifests` are kept and returned, so their schemas allow
    additional properties, and generated clients keep these fields too. Schemas of structs that
    refuse unknown fields allow none. Schemas of answers say neither, since later versions may add
    fields that a client need not know.
    """
    _, schemas = _generated(types)
    classes = {cls.__name__: cls for cls in structs_in(types)}
    kept = set(structs_in(manifests))
    return {
        name: _described(classes[name], schemas[name], is_manifest=classes[name] in kept)
        for name in sorted(schemas)
    }


def _generated(types: Sequence[Any]) -> tuple[tuple[Document, ...], Document]:
    return msgspec.json.schema_components(
        types, schema_hook=_anything, ref_template=_PREFIX + "{name}"
    )


def _anything(type_: type) -> Document:
    """Return the schema of `object`, which is any JSON value; other unknown types are bugs."""
    if type_ is not object:
        raise NotImplementedError(type_)
    return {"description": "Any JSON value."}


def unwrapped(schema: Document) -> Document:
    """Return the schema without null or empty defaults, which only mark fields as optional."""
    return {
        key: _without_empty_defaults(value)
        for key, value in schema.items()
        if not (key == "default" and value in (None, [], {}))
    }


def _without_empty_defaults(value: Any) -> Any:
    if isinstance(value, dict):
        return _typed(unwrapped(value))
    if isinstance(value, list):
        return [_without_empty_defaults(item) for item in value]
    return value


def _typed(schema: Document) -> Document:
    """Add the type of string enums, and allow any field in plain objects; msgspec omits both."""
    words = schema.get("enum")
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        return {"type": "string", **schema}
    if schema.get("type") == "object" and not {"properties", "additionalProperties"} & {*schema}:
        return {**schema, "additionalProperties": True}
    return schema


def _described(cls: type[msgspec.Struct], schema: Document, *, is_manifest: bool) -> Document:
    schema = unwrapped(schema)
    schema.pop("title", None)
    if is_manifest and not cls.__struct_config__.forbid_unknown_fields:
        schema["additionalProperties"] = True
    texts = _field_docstrings(cls)
    for field in msgspec.structs.fields(cls):
        described = schema["properties"][field.encode_name]
        described |= _SHAPES.get(f"{cls.__name__}.{field.encode_name}", {})
        text = texts.get(field.name) or _OF_EVERY_OBJECT.get(field.encode_name)
        if text and "description" not in described:
            described["description"] = text
        _tell_default(described)
    tag = cls.__struct_config__.tag_field
    if tag is not None:
        schema["properties"][tag].setdefault("description", "Tells which of the types it is.")
    return schema | _RULES.get(cls.__name__, {})


def _tell_default(described: Document) -> None:
    """Move a field's default into its description."""
    if "default" in described:
        default = json.dumps(described.pop("default"))
        described["description"] = (
            f"{described.get('description', '')} Default: `{default}`.".strip()
        )


@cache
def _field_docstrings(cls: type) -> dict[str, str]:
    """Return the docstrings below the fields of a class and of its base structs."""
    docstrings: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if issubclass(base, msgspec.Struct) and base is not msgspec.Struct:
            docstrings |= _docstrings_below(base)
    return docstrings


@cache
def _classes_in(module: str) -> dict[str, ast.ClassDef]:
    """Return the classes in a module's source, excluding those made by `msgspec.defstruct`."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _docstrings_below(cls: type) -> dict[str, str]:
    tree = _classes_in(cls.__module__).get(cls.__name__)
    if tree is None:
        return {}
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
    """Return all struct classes that these types contain."""
    structs: dict[type[msgspec.Struct], None] = {}
    for info in msgspec.inspect.multi_type_info(types):
        _collect(info, structs)
    return list(structs)


def _collect(info: Any, structs: dict[type[msgspec.Struct], None]) -> None:
    if isinstance(info, msgspec.inspect.StructType):
        if info.cls in structs:
            return
        structs[info.cls] = None
    for part in _parts(info):
        _collect(part, structs)


def _parts(info: Any) -> Iterable[Any]:
    """Yield the types that msgspec's description of a type contains, directly or in its fields."""
    for name in info.__struct_fields__:
        value = getattr(info, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, msgspec.inspect.Type | msgspec.inspect.Field):
                yield part
