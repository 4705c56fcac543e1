"""The query parameter `fields`, which selects parts of objects.

Objects are decoded to a type that has only these parts, so that all others are skipped. Paths are
dotted as in the manifest; as in kubectl, a backslash makes the following dot part of a name. A path
through a list applies to each of its items.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from types import UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin

import msgspec

from service.api.http.context import ApiRequest
from service.api.http.operation import JSON
from service.api.http.request import operation_of, wrong_parameter
from service.model.core.manifest import WARNINGS

FIELD_DEPTH_MAX = 20
"""The maximum number of names in one path."""
PARAMETER = "fields"

_Tree: TypeAlias = dict[str, "_Tree | None"]
"""Maps each name to the selection below it, or to None if it is selected as a whole."""

_DOT = re.compile(r"(?<!\\)\.")
_NAME = re.compile(r"[A-Za-z0-9$][A-Za-z0-9$_./-]{0,316}")
_ALWAYS = ("apiVersion", "kind", "metadata.namespace", "metadata.name")
"""Fields that identify an object; they are always included."""


class ChosenFields:
    """Reduces objects to the selected fields and the fields that identify them."""

    def __init__(self, paths: frozenset[str]) -> None:
        tree: _Tree = {}
        for path in (*_ALWAYS, *sorted(paths)):
            _grow(tree, _names_of(path))
        self._decoder = msgspec.json.Decoder(_type_of(tree))
        self.tag = sha256(",".join(sorted(paths)).encode()).hexdigest()[:16]
        """A hash of the selected paths, which distinguishes answers with different selections."""

    def of(self, body: bytes) -> bytes:
        """Reduce an encoded object to these fields."""
        return msgspec.json.encode(self._decoder.decode(body))


def parse_fields(
    request: ApiRequest, parameters: Mapping[str, str], at_most: int
) -> ChosenFields | None:
    """Return the fields that a read selects, or None for all.

    Raises:
        MalformedRequest: a path cannot be parsed or names a field that the kind lacks, or there are
            too many paths.
    """
    text = parameters.get(PARAMETER)
    if text is None:
        return None
    paths = [path.strip() for path in text.split(",")]
    if len(paths) > at_most:
        raise wrong_parameter(PARAMETER, f"has to name at most {at_most} fields", text)
    shown = _shown_type(request)
    for path in paths:
        _check(path, shown)
    return _chosen(frozenset(paths))


@lru_cache(maxsize=256)
def _chosen(paths: frozenset[str]) -> ChosenFields:
    return ChosenFields(paths)


def tag_with(tag: str, chosen: ChosenFields | None) -> str:
    """Return the entity tag of an answer with only the chosen fields.

    The tag is weak, so that it never satisfies an If-Match: a change applies to the whole object.
    """
    if chosen is None:
        return tag
    return f'W/"{tag.removeprefix("W/").strip(chr(34))}-{chosen.tag}"'


def _shown_type(request: ApiRequest) -> Any:
    """Return the type of the objects that an operation returns or lists."""
    shown = operation_of(request).answers[200].types[JSON]
    listed = _known(shown).get("items")
    return shown if listed is None else listed


def _check(path: str, shown: Any) -> None:
    names = _names_of(path)
    if len(names) > FIELD_DEPTH_MAX:
        raise wrong_parameter(PARAMETER, f"has to be at most {FIELD_DEPTH_MAX} names deep", path)
    if not all(map(_NAME.fullmatch, names)):
        raise wrong_parameter(
            PARAMETER, "has to be paths such as spec.nodeName, separated by commas", path
        )
    for depth, name in enumerate(names):
        known = _known(shown)
        if known and name not in known:
            _refuse_unknown(path, name, known, may_have_more=depth > 0 and not _is_strict(shown))
        shown = known.get(name)


def _refuse_unknown(path: str, name: str, known: Iterable[str], *, may_have_more: bool) -> None:
    """Refuse a name that the type lacks.

    If `may_have_more` is set, only names that differ from a known one in case are refused.
    """
    near = [candidate for candidate in known if candidate.lower() == name.lower()]
    if may_have_more and not near:
        return
    hint = f"it is {near[0]}" if near else f"there are {', '.join(known)}"
    raise wrong_parameter(PARAMETER, f"names what no such object has ({hint})", path)


def _known(shown: Any) -> Mapping[str, Any]:
    """Return the fields of a declared type or of a list's items; empty if any field is allowed."""
    declared = _struct_of(shown)
    if declared is None:
        return {}
    fields = msgspec.structs.fields(declared)
    return {field.encode_name: field.type for field in fields if field.encode_name != WARNINGS}


def _is_strict(shown: Any) -> bool:
    declared = _struct_of(shown)
    return declared is not None and declared.__struct_config__.forbid_unknown_fields


def _struct_of(shown: Any) -> type[msgspec.Struct] | None:
    if isinstance(shown, type) and issubclass(shown, msgspec.Struct):
        return shown
    origin, arguments = get_origin(shown), get_args(shown)
    if origin is Annotated:
        return _struct_of(arguments[0])
    if origin in (Union, UnionType, list, tuple):
        return next((struct for argument in arguments if (struct := _struct_of(argument))), None)
    return None


def _names_of(path: str) -> list[str]:
    return [name.replace("\\.", ".") for name in _DOT.split(path)]


def _grow(tree: _Tree, names: list[str]) -> None:
    """Add a path to the tree, unless one of its prefixes is selected already."""
    *above, last = names
    for name in above:
        below = tree.setdefault(name, {})
        if below is None:
            return
        tree = below
    tree[last] = None


def _type_of(tree: _Tree) -> Any:
    """Return a type that decodes the fields of a tree; fields that are selected whole stay encoded.

    If a path continues below a value that is not an object, the value is kept.
    """
    fields: list[tuple[str, Any, Any]] = []
    names: dict[str, str] = {}
    for number, (name, below) in enumerate(tree.items()):
        names[f"field_{number}"] = name
        type_ = msgspec.Raw if below is None else _branch(_type_of(below))
        fields.append((f"field_{number}", type_ | msgspec.UnsetType, msgspec.UNSET))
    return msgspec.defstruct("Chosen", fields, rename=names, frozen=True, gc=False)


def _branch(struct: Any) -> Any:
    plain = str | int | float | bool | None
    return struct | list[struct | list[Any] | plain] | plain
