"""Strategic merge patches: merge patches that merge lists as declared for each field.

Source: `k8s.io/apimachinery/pkg/util/strategicpatch`; for lists see
`service.model.json.merge_keys`. Lists without a key, such as `tolerations` and `taints`, are
replaced.
"""

from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from typing import TypeAlias

import msgspec

from service.model.core.errors import FieldError, InvalidManifest
from service.model.json.merge_keys import PATCH_KEYS, PATCH_SETS, at_place, below

Json: TypeAlias = dict[str, object]

_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"
_PATCH = "$patch"


def strategic_merge_patch(target: object, patch: object, path: str = "") -> object:
    """Apply a strategic merge patch and return the patched value.

    Raises:
        InvalidManifest: the patch does not fit the target; the error has the path inside the patch.
    """
    if not isinstance(patch, dict):
        return deepcopy(patch)
    directive = patch.get(_PATCH)
    if directive == "replace":
        return {name: deepcopy(value) for name, value in patch.items() if name != _PATCH}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise _wrong(_at(path, _PATCH), "must be replace, merge or delete")
    result = dict(target) if isinstance(target, dict) else {}
    _retain_keys(result, patch, path)
    for name, value in patch.items():
        if not name.startswith("$"):
            _merge_field(result, name, value, path)
    _delete_values(result, patch, path)
    return _ordered(result, patch, path)


def _merge_field(result: Json, name: str, value: object, path: str) -> None:
    where, place = _at(path, name), _place_of(path, name)
    key = at_place(PATCH_KEYS, place)
    if value is None:
        result.pop(name, None)
    elif key and isinstance(value, list):
        result[name] = _merge_list(result.get(name), value, key, where)
    elif at_place(PATCH_SETS, place) and isinstance(value, list):
        present = _list(result.get(name))
        known = set(map(_identity, present))
        result[name] = present + [item for item in value if _identity(item) not in known]
    else:
        result[name] = strategic_merge_patch(result.get(name), value, where)


def _merge_list(target: object, patch: list[object], key: str, path: str) -> list[object]:
    """Merge items by their key; append new ones."""
    if {_PATCH: "replace"} in patch:
        return [deepcopy(item) for item in patch if item != {_PATCH: "replace"}]
    merged = _KeyedItems(_list(target), key)
    for index, change in enumerate(patch):
        where = f"{path}[{index}]"
        if not isinstance(change, dict):
            raise _wrong(where, "must be an object")
        if change.get(key) is None:
            raise _wrong(_at(where, key), "is required: it identifies the item to merge with")
        merged.merge(change, where)
    return merged.items


class _KeyedItems:
    """A list's items, indexed by key so that each lookup in a long list is fast."""

    def __init__(self, items: list[object], key: str) -> None:
        self._key = key
        self._items: dict[int, object] = dict(enumerate(items))
        self._next = len(items)
        self._places: dict[object, list[int]] = {}
        for place, item in self._items.items():
            self._places.setdefault(_identity(_keyed(item, key)), []).append(place)

    @property
    def items(self) -> list[object]:
        """The items in list order."""
        return list(self._items.values())

    def merge(self, change: Json, path: str) -> None:
        """Merge a change into the first item with its key, append it, or delete all such items."""
        identity = _identity(change[self._key])
        places = self._places.get(identity)
        if change.get(_PATCH) == "delete":
            for place in self._places.pop(identity, ()):
                del self._items[place]
        elif places:
            self._items[places[0]] = strategic_merge_patch(self._items[places[0]], change, path)
        else:
            self._items[self._next] = strategic_merge_patch({}, change, path)
            self._places[identity] = [self._next]
            self._next += 1


def _identity(value: object) -> object:
    """Return a hashable value that is equal for equal JSON values."""
    if isinstance(value, dict | list):
        return msgspec.json.encode(value, order="deterministic")
    return value


def _keyed(item: object, key: str) -> object:
    return item.get(key) if isinstance(item, dict) else None


def _retain_keys(result: Json, patch: Json, path: str) -> None:
    """Apply `$retainKeys`: remove every field that it does not list."""
    if _RETAIN not in patch:
        return
    names = patch[_RETAIN]
    if not isinstance(names, list):
        raise _wrong(_at(path, _RETAIN), "must be a list")
    kept = set(map(_identity, names))
    for name in [name for name in result if name not in kept]:
        del result[name]


def _delete_values(result: Json, patch: Json, path: str) -> None:
    for directive, values in patch.items():
        if directive.startswith(_DELETE_FROM):
            if not isinstance(values, list):
                raise _wrong(_at(path, directive), "must be a list")
            name = directive.removeprefix(_DELETE_FROM)
            gone = set(map(_identity, values))
            result[name] = [item for item in _list(result.get(name)) if _identity(item) not in gone]


def _ordered(result: Json, patch: Json, path: str) -> Json:
    """Apply `$setElementOrder/<list>`: put the listed items first, in the given order."""
    for directive, order in patch.items():
        name = directive.removeprefix(_ORDER)
        if directive.startswith(_ORDER) and isinstance(order, list) and name in result:
            key = at_place(PATCH_KEYS, _place_of(path, name))
            ranks = {_mark(item, key): len(order) - i for i, item in enumerate(reversed(order), 1)}
            items = _list(result[name])
            result[name] = sorted(items, key=partial(_rank, ranks, key, len(order)))
    return result


def _rank(ranks: Mapping[object, int], key: str | None, last: int, item: object) -> int:
    return ranks.get(_mark(item, key), last)


def _mark(item: object, key: str | None) -> object:
    """Return the value by which a list item is ordered."""
    return _identity(_keyed(item, key) if key else item)


def _place_of(path: str, name: str) -> str:
    """Return a field's schema path, for example `containers.ports` below `spec.containers[0]`."""
    return below(path.rpartition("[")[0] if path.endswith("]") else path, name)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _wrong(path: str, message: str) -> InvalidManifest:
    return InvalidManifest([FieldError(path, message)])
