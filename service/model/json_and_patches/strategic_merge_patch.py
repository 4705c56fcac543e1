"""Strategic merge patches: like a merge patch, but lists are merged as each field says.

Source: `k8s.io/apimachinery/pkg/util/strategicpatch`; for lists see `service.model.json_and_patches.list_merge_keys`. Those
without a key are replaced, among them `tolerations` and `taints`.
"""

from copy import deepcopy
from typing import TypeAlias

from service.model.errors import FieldError, InvalidManifest
from service.model.json_and_patches.list_merge_keys import PATCH_KEYS, PATCH_SETS, at_place, below

Json: TypeAlias = dict[str, object]

_DELETE_FROM = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"
_PATCH = "$patch"


def strategic_merge_patch(target: object, patch: object, path: str = "") -> object:
    """The patched value; raises `InvalidManifest` with a path inside the patch."""
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
        result[name] = present + [item for item in value if item not in present]
    else:
        result[name] = strategic_merge_patch(result.get(name), value, where)


def _merge_list(target: object, patch: list[object], key: str, path: str) -> list[object]:
    """Merge items by their key; new ones come after those that are there."""
    if {_PATCH: "replace"} in patch:
        return [deepcopy(item) for item in patch if item != {_PATCH: "replace"}]
    items = list(_list(target))
    for index, change in enumerate(patch):
        where = f"{path}[{index}]"
        if not isinstance(change, dict):
            raise _wrong(where, "must be an object")
        if change.get(key) is None:
            raise _wrong(_at(where, key), "is required: it identifies the item to merge with")
        _merge_item(items, change, key, where)
    return items


def _merge_item(items: list[object], change: Json, key: str, path: str) -> None:
    found = [i for i, item in enumerate(items) if _keyed(item, key) == change[key]]
    if change.get(_PATCH) == "delete":
        items[:] = [item for i, item in enumerate(items) if i not in found]
    elif found:
        items[found[0]] = strategic_merge_patch(items[found[0]], change, path)
    else:
        items.append(strategic_merge_patch({}, change, path))


def _keyed(item: object, key: str) -> object:
    return item.get(key) if isinstance(item, dict) else None


def _retain_keys(result: Json, patch: Json, path: str) -> None:
    """`$retainKeys` removes every field that it does not name."""
    if _RETAIN not in patch:
        return
    names = patch[_RETAIN]
    if not isinstance(names, list):
        raise _wrong(_at(path, _RETAIN), "must be a list")
    for name in [name for name in result if name not in names]:
        del result[name]


def _delete_values(result: Json, patch: Json, path: str) -> None:
    for directive, values in patch.items():
        if directive.startswith(_DELETE_FROM):
            if not isinstance(values, list):
                raise _wrong(_at(path, directive), "must be a list")
            name = directive.removeprefix(_DELETE_FROM)
            result[name] = [item for item in _list(result.get(name)) if item not in values]


def _ordered(result: Json, patch: Json, path: str) -> Json:
    """`$setElementOrder/<list>` puts the items that it names first, in its order."""
    for directive, order in patch.items():
        name = directive.removeprefix(_ORDER)
        if directive.startswith(_ORDER) and isinstance(order, list) and name in result:
            key = at_place(PATCH_KEYS, _place_of(path, name))
            wanted = [_keyed(o, key) if key else o for o in order]
            items = _list(result[name])
            marks = [_keyed(item, key) if key else item for item in items]
            ranks = [wanted.index(mark) if mark in wanted else len(wanted) for mark in marks]
            result[name] = [items[i] for i in sorted(range(len(items)), key=ranks.__getitem__)]
    return result


def _place_of(path: str, name: str) -> str:
    """The place of a field as the tables name it: `containers.ports` for those of `spec.containers[0]`."""
    return below(path.rpartition("[")[0] if path.endswith("]") else path, name)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _wrong(path: str, message: str) -> InvalidManifest:
    return InvalidManifest([FieldError(path, message)])
