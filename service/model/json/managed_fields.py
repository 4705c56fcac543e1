"""Server-side apply, and the managers of fields after each write.

Sources: `sigs.k8s.io/structured-merge-diff` for sets of fields, FieldsV1, and conflicts; for lists
and maps see `service.model.json.merge_keys`. Functions return new values and do not modify their
arguments.
"""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import TypeAlias, cast

import msgspec

from service.model.core.errors import FieldError, FieldManagerConflict, InvalidManifest
from service.model.core.managers import MANAGED_FIELDS, Fields, Manager, Operation, Path, is_item
from service.model.json.merge_keys import (
    APPLY_KEY_DEFAULTS,
    APPLY_KEYS,
    APPLY_SETS,
    ATOMIC_MAPS,
    at_place,
    below,
)

Json: TypeAlias = dict[str, object]

BEFORE_FIRST_APPLY = "before-first-apply"
"""The manager assigned to all fields that existed before an object was first applied."""
ANCIENT = "ancient-changes"
"""The manager into which the oldest updates are merged when there are too many."""

_NOT_MANAGED = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        ("f:warnings",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                "name",
                "namespace",
                "uid",
                "resourceVersion",
                "creationTimestamp",
                "generation",
                "generateName",
                "selfLink",
                MANAGED_FIELDS,
            )
        ),
    }
)
_ITSELF: object = object()
"""A marker for the presence of an item, regardless of its contents."""


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an apply: the object and its managers."""

    fields: Json
    managers: tuple[Manager, ...]


def apply(
    live: Json | None,
    managers: tuple[Manager, ...],
    applied: Json,
    *,
    manager: str,
    now: str,
    force: bool,
) -> Applied:
    """Apply a manager's fields, removing fields that it alone applied before.

    Args:
        live: the stored object, or None.
        managers: the managers of the stored object.
        applied: the decoded object that the manager applies.
        manager: the manager's name.
        now: the current time, RFC 3339 in UTC.
        force: whether to take over fields of other managers.

    Raises:
        FieldManagerConflict: other managers own fields that would change, and `force` is not set.
        InvalidManifest: a list contains an item twice.
    """
    _refuse_doubles(applied, "")
    wanted = _flat(applied)
    version = str(applied.get("apiVersion") or (live or {}).get("apiVersion") or "v1")
    entry = Manager(
        name=manager, operation="Apply", api_version=version, time=now, fields=frozenset(wanted)
    )
    if live is None:
        return Applied(fields=applied, managers=(entry,))
    before = _flat(live)
    if not managers:
        managers = (_first(live, before, now),)
    own = next((entry for entry in managers if _is(entry, manager, "Apply")), None)
    others = [entry for entry in managers if entry is not own]
    merged = cast("Json", _merge(live, applied, ""))
    changing = _changing(before, _flat(merged))
    conflicts = [(other, path) for other in others for path in sorted(_met(other.fields, changing))]
    if conflicts and not force:
        raise FieldManagerConflict(
            [
                FieldError(
                    _dotted(path), f"is managed by {other.name} ({other.operation})", other.name
                )
                for other, path in conflicts
            ]
        )
    kept = [
        msgspec.structs.replace(other, fields=other.fields - _met(other.fields, changing))
        for other in others
    ]
    given_up = (own.fields if own else frozenset()) - entry.fields
    elsewhere = frozenset().union(*(other.fields for other in kept)) | entry.fields
    for path in sorted(given_up - elsewhere, key=len):
        if not any(other[: len(path)] == path for other in elsewhere):
            _remove(merged, path)
    there = frozenset(_flat(merged))
    entry = msgspec.structs.replace(entry, fields=entry.fields & there)
    if own is not None and own.fields == entry.fields and merged == live:
        entry = own
    left = [msgspec.structs.replace(other, fields=other.fields & there) for other in kept]
    return Applied(fields=merged, managers=_ordered([entry, *left]))


def update(
    old: Json, new: Json, managers: tuple[Manager, ...], *, manager: str, now: str, at_most: int
) -> tuple[Manager, ...]:
    """Return the managers after a write; the writer becomes sole manager of what it changes."""
    before, after = _flat(old), _flat(new)
    changed = _changing(before, after)
    gone = before.keys() - after.keys()
    if not changed and not gone:
        return managers
    taken = frozenset(changed) | gone
    left = [msgspec.structs.replace(entry, fields=entry.fields - taken) for entry in managers]
    own = next((entry for entry in left if _is(entry, manager, "Update")), None)
    fields = frozenset(changed) | (own.fields if own else frozenset())
    entry = Manager(
        name=manager,
        operation="Update",
        api_version=str(new.get("apiVersion", "v1")),
        time=now,
        fields=fields,
    )
    rest = [other for other in left if other is not own]
    return _at_most(_ordered([*rest, entry]), at_most)


def _at_most(managers: tuple[Manager, ...], count: int) -> tuple[Manager, ...]:
    """Return at most `count` managers, by merging the oldest updates into one."""
    updating = sorted((m for m in managers if m.operation == "Update"), key=lambda m: m.time)
    if len(managers) <= count or len(updating) < 2:  # noqa: PLR2004 - one alone cannot be made one
        return managers
    old = updating[: len(managers) - count + 1]
    one = msgspec.structs.replace(
        old[-1], name=ANCIENT, fields=frozenset().union(*(manager.fields for manager in old))
    )
    return _ordered([*(manager for manager in managers if manager not in old), one])


def _first(live: Json, before: Mapping[Path, object], now: str) -> Manager:
    return Manager(
        name=BEFORE_FIRST_APPLY,
        operation="Update",
        api_version=str(live.get("apiVersion", "v1")),
        time=now,
        fields=frozenset(before),
    )


def _is(manager: Manager, name: str, operation: Operation) -> bool:
    return (manager.name, manager.operation) == (name, operation)


def _ordered(managers: Iterable[Manager]) -> tuple[Manager, ...]:
    """Sort non-empty managers: those that apply come first, then by time and name."""
    return tuple(
        sorted(
            (manager for manager in managers if manager.fields),
            key=lambda manager: (manager.operation, manager.time, manager.name),
        )
    )


def _changing(before: Mapping[Path, object], wanted: Mapping[Path, object]) -> set[Path]:
    """Return the paths whose values change."""
    return {
        path
        for path, value in wanted.items()
        if path not in before or _differs(before[path], value)
    }


def _differs(one: object, other: object) -> bool:
    if one is _ITSELF or other is _ITSELF:
        return one is not other
    return bool(
        msgspec.json.encode(one, order="sorted") != msgspec.json.encode(other, order="sorted")
    )


def _met(fields: Fields, changing: Iterable[Path]) -> Fields:
    """Return the fields that a change of these paths affects: the paths and everything below."""
    changed = frozenset(changing)
    return frozenset(
        path
        for path in fields
        if any(
            path[:length] in changed and (length == len(path) or not is_item(path[:length]))
            for length in range(1, len(path) + 1)
        )
    )


def _flat(value: Json) -> dict[Path, object]:
    """Return an object's leaf values and list items by path."""
    return dict(_leaves(value, (), ""))


def _leaves(value: object, path: Path, place: str) -> Iterator[tuple[Path, object]]:
    if path in _NOT_MANAGED:
        return
    if isinstance(value, dict) and value and not at_place(ATOMIC_MAPS, place):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, f"f:{key}"), below(place, key))
        return
    keyed = _keyed(value, place)
    if keyed is None:
        if path:
            yield path, value
        return
    for key, item in keyed.items():
        yield (*path, key), _ITSELF
        if isinstance(item, dict):
            for inner, part in item.items():
                yield from _leaves(part, (*path, key, f"f:{inner}"), below(place, inner))


def _keyed(value: object, place: str) -> dict[str, object] | None:
    """Return a mergeable list's items by key, or None for a list that is replaced as a whole."""
    if not isinstance(value, list) or not value:
        return None
    if at_place(APPLY_SETS, place):
        return {f"v:{_json(item)}": item for item in value}
    keys = at_place(APPLY_KEYS, place)
    if not keys:
        return None
    items: dict[str, object] = {}
    for item in value:
        key = _key_of(item, keys)
        if key is None or key in items:
            return None
        items[key] = item
    return items


def _key_of(item: object, keys: tuple[str, ...]) -> str | None:
    """Return the key of a list item, without absent fields that have no default, or None."""
    if not isinstance(item, dict):
        return None
    said = {key: item.get(key, APPLY_KEY_DEFAULTS.get(key)) for key in keys}
    values = {key: part for key, part in said.items() if part is not None}
    if not values or not all(isinstance(part, str | int) for part in values.values()):
        return None
    return f"k:{_json(values)}"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _refuse_doubles(value: object, path: str, place: str = "") -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _refuse_doubles(item, f"{path}.{key}" if path else key, below(place, key))
    elif isinstance(value, list):
        keys = at_place(APPLY_KEYS, place) or ()
        item_keys = [_key_of(item, keys) for item in value]
        for index, item in enumerate(value):
            if item_keys[index] is not None and item_keys[index] in item_keys[:index]:
                message = f"is there twice: {', '.join(keys)} must differ"
                raise InvalidManifest([FieldError(f"{path}[{index}]", message)])
            _refuse_doubles(item, f"{path}[{index}]", place)


def _merge(live: object, applied: object, place: str) -> object:
    if isinstance(applied, dict) and isinstance(live, dict) and not at_place(ATOMIC_MAPS, place):
        merged = dict(live)
        for key, value in applied.items():
            merged[key] = _merge(live.get(key), value, below(place, key))
        return merged
    wanted, there = _keyed(applied, place), _keyed(live, place)
    if wanted is None or there is None:
        return deepcopy(applied)
    both = {
        key: _merge(item, wanted[key], place) if key in wanted else item
        for key, item in there.items()
    }
    return list((both | {key: item for key, item in wanted.items() if key not in both}).values())


def _remove(value: object, path: Path, place: str = "") -> None:
    """Remove the value at a path, and any parents that become empty."""
    first, *rest = path
    if isinstance(value, dict):
        key = first.removeprefix("f:")
        if key not in value:
            return
        if rest:
            inner = deepcopy(value[key])
            _remove(inner, tuple(rest), below(place, key))
            if inner or inner == 0:
                value[key] = inner
                return
        del value[key]
    elif isinstance(value, list):
        keyed = _keyed(value, place) or {}
        if first not in keyed:
            return
        if rest:
            item = deepcopy(keyed[first])
            _remove(item, tuple(rest), place)
            value[list(keyed).index(first)] = item
        else:
            del value[list(keyed).index(first)]


def _dotted(path: Path) -> str:
    """Return a path in the notation of errors: `spec.containers[name=c].image`."""
    text = ""
    for segment in path:
        kind, _, rest = segment.partition(":")
        if kind == "f":
            text += f".{rest}" if text else rest
        elif kind == "v":
            text += f"[{rest}]"
        else:
            keys = msgspec.json.decode(rest)
            text += "[" + ",".join(f"{name}={value}" for name, value in keys.items()) + "]"
    return text
