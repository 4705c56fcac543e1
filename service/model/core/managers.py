"""Field managers of an object, as in `metadata.managedFields`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias, cast

import msgspec

from service.model.core.metadata import Json

Path: TypeAlias = tuple[str, ...]
"""A path of segments in FieldsV1 notation: `f:name`, `k:{"name":"c"}`, `v:"value"`."""
Fields: TypeAlias = frozenset[Path]
Operation = Literal["Apply", "Update"]
MANAGED_FIELDS = "managedFields"


class Manager(msgspec.Struct, frozen=True, kw_only=True):
    """A field manager, and the fields that it has applied or changed."""

    name: str
    operation: Operation
    api_version: str
    time: str
    """RFC 3339 in UTC."""
    fields: Fields


def read_managers(entries: object) -> tuple[Manager, ...]:
    """Decode the managers of a stored object from entries that `written` encoded."""
    listed = entries if isinstance(entries, list) else []
    return tuple(
        Manager(
            name=entry["manager"],
            operation=entry["operation"],
            api_version=entry["apiVersion"],
            time=entry["time"],
            fields=frozenset(_decoded(entry["fieldsV1"], ())),
        )
        for entry in listed
    )


def written(managers: Iterable[Manager]) -> list[Json]:
    """Encode managers as entries of `metadata.managedFields`."""
    return [
        {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": manager.api_version,
            "time": manager.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": _encoded(manager.fields),
        }
        for manager in managers
    ]


def is_item(path: Path) -> bool:
    """Return whether a path leads to an item of a mergeable list."""
    return path[-1].startswith(("k:", "v:"))


def _encoded(fields: Iterable[Path]) -> Json:
    tree: Json = {}
    for path in sorted(fields):
        at = tree
        for segment in path:
            at = cast("Json", at.setdefault(segment, {}))
        if is_item(path) and path[-1].startswith("k:"):
            at["."] = {}
    return tree


def _decoded(tree: Mapping[str, object], path: Path) -> Iterator[Path]:
    for segment, inner in tree.items():
        if segment == ".":
            yield path
        elif inner:
            yield from _decoded(cast("Json", inner), (*path, segment))
        else:
            yield (*path, segment)
