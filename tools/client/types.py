"""The module `clients/python/moorage/types.py`: TypedDicts of all schemas of the OpenAPI document."""

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

HEADING = '''\
"""What the API takes and answers, as types of dictionaries.

`make client` writes this module from openapi/openapi.json, and a test fails if they differ. Fields
that these types do not name are kept by Moorage and are in the dictionaries all the same.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict
'''
REFERENCE = "#/components/schemas/"
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
WIDTH = 96


def module(document: Schema) -> str:
    """The text of the module, before it is formatted."""
    schemas: Schema = document["components"]["schemas"]
    names = sorted(name for name in schemas if _is_dictionary(schemas[name]))
    unions = sorted(name for name in schemas.keys() - set(names) if "anyOf" in schemas[name])
    known = {*names, *unions}
    classes = [_class(name, schemas[name], known) for name in names]
    aliases = [f"{name} = {_union(schemas[name]['anyOf'], known)}\n" for name in unions]
    return "\n\n".join([HEADING, *classes, *aliases])


def _is_dictionary(schema: Schema) -> bool:
    return schema.get("type") == "object" and "properties" in schema


def _class(name: str, schema: Schema, known: set[str]) -> str:
    fields = [_field(key, each, schema, known) for key, each in schema["properties"].items()]
    if not all(key.isidentifier() and key not in KEYWORDS for key, _, _ in fields):
        lines = "".join(f'    "{key}": "{text}",\n' for key, text, _ in fields)
        told = _docstring(schema.get("description", name), "")
        return f'{name} = TypedDict("{name}", {{\n{lines}}})\n{told}'
    lines = "".join(
        f"    {key}: {text}\n" + (_docstring(told, "    ") if told else "")
        for key, text, told in fields
    )
    told = _docstring(schema.get("description", name), "    ")
    return f"class {name}(TypedDict):\n{told}\n{lines}"


KEYWORDS = {"continue", "from", "class", "global", "import", "in", "is"}


def _field(key: str, schema: Schema, owner: Schema, known: set[str]) -> tuple[str, str, str]:
    text = _type(schema, known)
    required = key in owner.get("required", ())
    told = schema.get("description", "")
    return key, text if required else f"NotRequired[{text}]", told


def _type(schema: Schema, known: set[str]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(REFERENCE)
        return name if name in known else "dict[str, Any]"
    if "enum" in schema:
        return f"Literal[{', '.join(map(_quoted, schema['enum']))}]"
    if "anyOf" in schema:
        return _union(schema["anyOf"], known)
    match schema.get("type"):
        case "array":
            return f"list[{_type(schema.get('items', {}), known)}]"
        case "object":
            inner = schema.get("additionalProperties")
            return f"dict[str, {_type(inner, known) if isinstance(inner, Mapping) else 'Any'}]"
        case str(plain):
            return PLAIN[plain]
        case _:
            return "Any"


def _quoted(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else repr(value)


def _union(options: list[Schema], known: set[str]) -> str:
    return " | ".join(dict.fromkeys(_type(each, known) for each in options))


def _docstring(text: str, indent: str) -> str:
    """The first paragraph of a description as a docstring."""
    paragraph = " ".join(text.split("\n\n", maxsplit=1)[0].split()).replace("\\", "\\\\")
    lines = list(_wrapped(paragraph, WIDTH - len(indent) - 6))
    ending = "\n" + indent if len(lines) > 1 else ""
    return f'{indent}"""' + f"\n{indent}".join(lines) + f'{ending}"""\n'


def _wrapped(text: str, width: int) -> Iterator[str]:
    yield from textwrap.wrap(text, width, break_long_words=False) or [""]
