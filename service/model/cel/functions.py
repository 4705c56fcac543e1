"""The costs of CEL functions according to Kubernetes.

Source: `checker/cost.go` of cel-go and `k8s.io/apiserver/pkg/cel/library/cost.go`, v1.35.
"""

from collections.abc import Callable, Mapping

from service.model.cel.calls import Call
from service.model.cel.syntax import Node
from service.model.cel.values import ONE, UNKNOWN_SIZE, UNLIMITED, Size, capped

_SCALARS = frozenset({"bool", "int", "uint", "double", "timestamp", "duration"})

_Cost = Callable[[Call], tuple[int, Size | None]]
"""A function that returns the cost a call adds to that of its arguments, and the size of its value,
or None if the type decides the size."""


def _part(size: int, factor: float) -> int:
    """Return a share of a size as a cost, rounded up."""
    if size >= UNLIMITED:
        return UNLIMITED
    return capped(-int(-size * factor // 1))


def call_cost(call: Call) -> tuple[int, Size | None]:
    """Return the cost that a call adds to that of its arguments, and the size of its value.

    If the size is None, the estimated size of the value itself applies.
    """
    node = call.node
    by_name = _COSTS.get(node.name)
    if by_name is not None:
        return by_name(call)
    costs, sizes = [0], []
    for overload in node.overloads:
        cost, size = _overload_cost(call, overload)
        costs.append(cost)
        if size is not None:
            sizes.append(size)
    if node.name in _SAME_SIZE:
        return max(costs), None
    joint = sizes[0] if sizes else _size_by_type(node)
    for other in sizes[1:]:
        joint = joint.joined(other)
    return max(costs), joint


def _size_by_type(node: Node) -> Size:
    return ONE if node.type.removeprefix("optional ") in _SCALARS else UNKNOWN_SIZE


def _overload_cost(call: Call, overload: str) -> tuple[int, Size | None]:
    costs = _OVERLOADS.get(overload)
    return (1, None) if costs is None else costs(call)


def _concatenating(call: Call) -> tuple[int, Size | None]:
    size = _size_sum(call.args[0].value.size, call.args[1].value.size)
    return _part(size.greatest, 0.1), size


def _appending(call: Call) -> tuple[int, Size | None]:
    return 1, _size_sum(call.args[0].value.size, call.args[1].value.size)


def _prefixing(call: Call) -> tuple[int, Size | None]:
    return _part(call.args[0].value.size.greatest, 0.1), None


def _scanning(call: Call) -> tuple[int, Size | None]:
    items = call.args[1].value
    return 1 if items.kind == "map" else items.size.greatest, None


def _by_both(of_subject: float, of_other: float, least: int = 0) -> _Cost:
    """Return a cost function that multiplies the sizes of both texts."""

    def cost(call: Call) -> tuple[int, Size | None]:
        subject, other = [part.value.size.greatest for part in call.given]
        return capped(_part(subject + least, of_subject) * _part(other, of_other)), None

    return cost


def _freely(_call: Call) -> tuple[int, Size | None]:
    return 0, None


def _resizing(least: Callable[[int], int], greatest: Callable[[int], int]) -> _Cost:
    """Return a cost function for reading a text whose result has a different size."""

    def cost(call: Call) -> tuple[int, Size | None]:
        size = call.given[0].value.size
        resized = Size(capped(least(size.least)), capped(greatest(size.greatest)))
        return _part(size.greatest, 0.1), resized

    return cost


def _comparing_sizes(call: Call) -> tuple[int, Size | None]:
    return _part(min(arg.value.size.greatest for arg in call.args), 0.1), None


_OVERLOADS: Mapping[str, _Cost] = {
    **dict.fromkeys(("add_string", "add_bytes"), _concatenating),
    "add_list": _appending,
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _prefixing),
    "in_list": _scanning,
    **dict.fromkeys(("matches", "matches_string"), _by_both(0.1, 0.25, least=1)),
    "contains_string": _by_both(0.1, 0.1),
    **dict.fromkeys(("logical_or", "logical_and"), _freely),
    "string_format": lambda call: (_part(call.value(0).size.greatest, 0.1), None),
    "string_to_bytes": _resizing(int, lambda size: size * 4),
    "bytes_to_string": _resizing(lambda size: size // 4, int),
    "strings_quote": _resizing(lambda size: size + 2, lambda size: size * 2 + 2),
    **dict.fromkeys(("equals", "not_equals"), _comparing_sizes),
    **dict.fromkeys(
        [
            f"{order}_{kind}"
            for order in ("less", "greater", "less_equals", "greater_equals")
            for kind in ("string", "bytes")
        ],
        _comparing_sizes,
    ),
}
_SAME_SIZE = frozenset({"dyn", "_[_]"})
"""Functions that return one of their arguments, or an element of one."""


def _size_sum(one: Size, other: Size) -> Size:
    return Size(capped(one.least + other.least), capped(one.greatest + other.greatest))


def _once(_call: Call) -> tuple[int, Size | None]:
    return 1, ONE


def _traversing(call: Call) -> tuple[int, Size | None]:
    size = call.value(0).size
    return _part(size.greatest, 0.1), size


def _searching(call: Call) -> tuple[int, Size | None]:
    return _part(call.value(0).size.greatest, 0.1), ONE


def _reading(call: Call) -> tuple[int, Size | None]:
    # Comparing quantities or versions takes constant time.
    return _part(call.value(0).size.greatest, 0.1), ONE


def _replacing(call: Call) -> tuple[int, Size | None]:
    whole, old, new = (call.value(index).size for index in range(3))
    count, kept = 0, 0
    if old.least == 0:
        count, kept = whole.greatest + 1, whole.greatest
    elif new.greatest <= old.least:
        kept = whole.greatest
    else:
        count = -(-whole.greatest // old.least)
    greatest = capped(capped(capped(count) * new.greatest) + kept)
    return _part(whole.greatest, 0.2), Size(_least_replaced(whole, old, new), greatest)


def _least_replaced(whole: Size, old: Size, new: Size) -> int:
    if old.greatest == 0:
        return capped((whole.least + 1) * new.least + whole.least)
    if old.greatest <= new.least:
        return whole.least
    return capped(-(-whole.least // old.greatest) * new.least)


def _splitting(call: Call) -> tuple[int, Size | None]:
    size = call.value(0).size.greatest
    arguments = call.node.args
    limit = arguments[1].value if len(arguments) > 1 else None
    return _part(size, 0.2), Size(0, capped(limit % 2**64) if isinstance(limit, int) else size)


def _joining(call: Call) -> tuple[int, Size | None]:
    # Kubernetes knows the size of items only for lists in fields, so items of an expression's list
    # are unlimited.
    length = call.value(0).size
    greatest = capped(length.greatest * UNLIMITED)
    if length.greatest and call.args:
        between = call.args[0].value.size.greatest
        greatest = capped(greatest + (length.greatest - 1) * between)
    return _part(greatest, 0.1), Size(0, greatest)


_COSTS: Mapping[str, _Cost] = {
    "replace": _replacing,
    "split": _splitting,
    "join": _joining,
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _traversing),
    **dict.fromkeys(("indexOf", "lastIndexOf"), _searching),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _reading),
    **dict.fromkeys(
        ("sign", "asInteger", "isInteger", "asApproximateFloat", "isGreaterThan", "isLessThan"),
        _once,
    ),
    **dict.fromkeys(("compareTo", "add", "sub", "major", "minor", "patch"), _once),
}
