"""Patches of decoded objects: merge (RFC 7396), JSON (RFC 6902), and strategic merge.

Functions return a new object and do not modify their arguments. A strategic merge treats each list
as `k8s.io/api/core/v1` declares for its field: merged by a key, merged as a set, or replaced. The
directives `$patch`, `$retainKeys`, `$setElementOrder/…` and `$deleteFromPrimitiveList/…` are those
of `k8s.io/apimachinery/pkg/util/strategicpatch`.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Literal, TypeAlias, cast

from service.model.core.errors import FieldError, InvalidManifest
from service.model.json.strategic_merge import strategic_merge_patch

Json: TypeAlias = dict[str, object]
PatchType = Literal["merge", "json", "strategic"]

OPERATIONS_MAX = 1_000
COPIED_ITEMS_MAX = 10_000
"""The most values that one JSON patch may copy, including those nested in lists and objects.

A patch may copy its own copies, which can double the object's size each time. So each value is
measured before it is copied.
"""
COPIED_BYTES_MAX = 3 * 1024 * 1024
"""The most bytes of text in copied values; Kubernetes' API server has the same limit."""


def apply_patch(patch_type: PatchType, target: Json, patch: object) -> Json:
    """Apply a patch of the given type, and return the patched object.

    Raises `InvalidManifest` if the patch is malformed or does not fit the target, with the path
    inside the patch.
    """
    try:
        result = _APPLY[patch_type](target, patch)
    except RecursionError:
        raise invalid("", "must not nest the object that deeply") from None
    if not isinstance(result, dict):
        raise invalid("", "must leave an object")
    return result


def invalid(path: str, message: str, value: object = None) -> InvalidManifest:
    """Build the error for an invalid field of a patch."""
    shown = value if isinstance(value, str | int) else None
    return InvalidManifest([FieldError(path, message, shown)])


def merge_patch(target: object, patch: object) -> object:
    """Apply a merge patch (RFC 7396): merge objects, remove nulls, and replace everything else."""
    if not isinstance(patch, dict):
        return deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), value)
    return result


def json_patch(target: object, patch: object) -> object:
    """Apply a JSON patch (RFC 6902): apply all operations in order, or none."""
    if not isinstance(patch, list):
        raise invalid("", "must be a list of operations")
    if len(patch) > OPERATIONS_MAX:
        raise invalid("", f"must have at most {OPERATIONS_MAX} operations", len(patch))
    document = deepcopy(target)
    budget = _CopyBudget()
    for index, sent in enumerate(patch):
        path = f"[{index}]"
        if not isinstance(sent, dict):
            raise invalid(path, "must be an object")
        operation = _OPERATIONS.get(cast("str", sent.get("op"))) if _is_op(sent) else None
        if operation is None:
            raise invalid(f"{path}.op", f"must be one of {', '.join(_OPERATIONS)}", sent.get("op"))
        if operation is _copy:
            budget.spend(_find(document, _pointer(sent, "from", path), path), path)
        document = operation(document, sent, path)
    return document


def _is_op(operation: Json) -> bool:
    return isinstance(operation.get("op"), str)


class _CopyBudget:
    """The number of values and bytes that one patch may still copy."""

    def __init__(self) -> None:
        self._items = COPIED_ITEMS_MAX
        self._bytes = COPIED_BYTES_MAX

    def spend(self, value: object, path: str) -> None:
        """Count a value that is about to be copied; stop as soon as it is too large.

        Raises:
            InvalidManifest: the patch copies too much.
        """
        values = [value]
        while values:
            item = values.pop()
            self._items -= 1
            if isinstance(item, dict):
                self._bytes -= sum(map(_bytes_of, item))
                values += item.values()
            elif isinstance(item, list):
                values += item
            elif isinstance(item, str):
                self._bytes -= _bytes_of(item)
            if self._items < len(values) or self._bytes < 0:
                raise invalid(path, "copies too much")


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _pointer(operation: Json, field: str, path: str) -> list[str]:
    """Split a JSON pointer (RFC 6901) into its parts."""
    pointer = operation.get(field)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise invalid(f"{path}.{field}", "must be a JSON pointer such as /metadata/name", pointer)
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def _value(operation: Json, path: str) -> object:
    if "value" not in operation:
        raise invalid(f"{path}.value", "is required")
    return deepcopy(operation["value"])


def _find(document: object, parts: list[str], path: str) -> object:
    for part in parts:
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list):
            document = document[_index(part, len(document) - 1, path)]
        else:
            raise invalid(path, "names what is not there", "/".join(["", *parts]))
    return document


def _index(part: str, last: int, path: str) -> int:
    digits = part.isascii() and part.isdecimal() and (part == "0" or part[0] != "0")
    if not digits or len(part) > 9 or int(part) > last:  # noqa: PLR2004 - longer than any list
        raise invalid(path, "names no item of the list", part)
    return int(part)


def _add(document: object, operation: Json, path: str) -> object:
    return _put(document, _pointer(operation, "path", path), _value(operation, path), path)


def _put(document: object, parts: list[str], value: object, path: str) -> object:
    if not parts:
        return value
    *above, last = parts
    parent = _find(document, above, path)
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        at = len(parent) if last == "-" else _index(last, len(parent), path)
        parent.insert(at, value)
    else:
        raise invalid(path, "names what is not there", "/".join(["", *parts]))
    return document


def _remove(document: object, operation: Json, path: str) -> object:
    return _drop(document, _pointer(operation, "path", path), path)


def _drop(document: object, parts: list[str], path: str) -> object:
    _find(document, parts, path)
    if not parts:
        return None
    *above, last = parts
    parent = _find(document, above, path)
    if isinstance(parent, dict):
        del parent[last]
    elif isinstance(parent, list):
        del parent[int(last)]
    return document


def _replace(document: object, operation: Json, path: str) -> object:
    parts, value = _pointer(operation, "path", path), _value(operation, path)
    _find(document, parts, path)
    if not parts:
        return value
    parent = _find(document, parts[:-1], path)
    if isinstance(parent, dict):
        parent[parts[-1]] = value
    elif isinstance(parent, list):
        parent[int(parts[-1])] = value
    return document


def _move(document: object, operation: Json, path: str) -> object:
    origin, goal = _pointer(operation, "from", path), _pointer(operation, "path", path)
    if goal[: len(origin)] == origin and goal != origin:
        raise invalid(f"{path}.path", "must not be inside what is moved")
    value = _find(document, origin, path)
    return _put(_drop(document, origin, path), goal, value, path)


def _copy(document: object, operation: Json, path: str) -> object:
    value = deepcopy(_find(document, _pointer(operation, "from", path), path))
    return _put(document, _pointer(operation, "path", path), value, path)


def _test(document: object, operation: Json, path: str) -> object:
    actual = _find(document, _pointer(operation, "path", path), path)
    if not _equal(actual, _value(operation, path)):
        raise invalid(path, "does not hold: the value is another")
    return document


def _equal(one: object, other: object) -> bool:
    """Return whether two JSON values are equal; unlike in Python, true does not equal 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)


_OPERATIONS: Mapping[str, Callable[[object, Json, str], object]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


_APPLY: Mapping[PatchType, Callable[[object, object], object]] = {
    "merge": merge_patch,
    "json": json_patch,
    "strategic": strategic_merge_patch,
}
