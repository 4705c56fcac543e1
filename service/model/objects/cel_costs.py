"""What an expression of CEL can cost at most, worked out from its syntax tree alone.

The *cost* is Kubernetes': its estimate in `cel-go`'s `checker/cost.go` with the functions of
`k8s.io/apiserver/pkg/cel/library/cost.go`, v1.35, so that what is refused there is refused here.
It does not follow every growth (the text that `format` makes, equal lists that contain each other),
so there is a measure of our own: the *weight*, in bytes that the library may write or compare, and
in nanoseconds. Expressions over either limit are never evaluated, so that all servers agree.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from service.model.objects.cel_syntax import (
    CALL,
    COMPREHENSION,
    CONSTANT,
    IDENT,
    LIST,
    MAP,
    SELECT,
    Loop,
    Node,
)
from service.model.objects.cel_values import (
    ITEM_WEIGHT,
    ONE,
    SCALAR,
    UNKNOWN_SIZE,
    UNLIMITED,
    Bounds,
    Size,
    capped,
    joined,
)

COST_MAX = 1_000_000
"""Kubernetes' limit for one expression (CELSelectorExpressionMaxCost, and PerCallLimit of policies)."""
WEIGHT_MAX = 32_000_000
"""Our limit: half of the time and memory that an evaluation is given."""
TOO_COSTLY = "too complex, exceeds cost limit"

_STEP_WEIGHT = 100
_LOOKUP_WEIGHT = 400
_COPIED_ITEM_WEIGHT = 40
"""What an item weighs if a list is copied."""
_CALLBACK_WEIGHT = 3_000
"""What a call weighs of a function that is written in Python."""
_FORMATTED_NUMBER_WEIGHT = 1_400
"""What a number can weigh as text: `%f` of the greatest one with the greatest precision."""
_REGEX_BYTE_WEIGHT = 60
_REGEX_WEIGHT_MAX = 12_000_000
"""What compiling a regular expression can weigh without classes of Unicode: its program is limited."""
_UNICODE_CLASS_WEIGHT = 150_000
_REPEATED_CLASS_WEIGHT = 25_000_000
"""What such classes weigh where they are repeated, until the limit of the program is reached."""
_UNKNOWN_PATTERN_WEIGHT_MAX = 400
"""A pattern that is not known before it is asked for may weigh so much, which is 80 characters."""
_TYPE = Bounds()
"""What names that are no variables stand for."""
_SCALARS = frozenset({"bool", "int", "uint", "double", "timestamp", "duration"})
_LOOKED_UP = frozenset({"map", "struct", "param"})


class Estimate(NamedTuple):
    """What evaluating a part costs at most, and its value."""

    cost: int
    weight: int
    value: Bounds

    @property
    def is_too_much(self) -> bool:
        """Whether an expression of this cost is refused."""
        return self.cost > COST_MAX or self.weight > WEIGHT_MAX


def estimate(node: Node, variables: Mapping[str, Bounds]) -> Estimate:
    """Return what an expression costs at most if its variables are within these bounds."""
    return _Estimator(variables).of(node)


class _Call(NamedTuple):
    """A call of a function, with the estimates of what it is given."""

    node: Node
    target: Estimate | None
    args: Sequence[Estimate]

    @property
    def given(self) -> list[Estimate]:
        """The target, if there is one, and the arguments."""
        return [*([self.target] if self.target is not None else []), *self.args]

    def value(self, index: int) -> Bounds:
        """Return what the target (0) or an argument (from 1) of a member function is like."""
        given = self.given
        return given[index].value if index < len(given) else SCALAR


class _Own(NamedTuple):
    """What a call adds to the estimates of what it is given."""

    weight: int
    value: Bounds


class _Estimator:
    def __init__(self, variables: Mapping[str, Bounds]) -> None:
        self._variables = dict(variables)

    def of(self, node: Node) -> Estimate:
        return _BY_KIND[node.kind](self, node)

    def constant(self, node: Node) -> Estimate:
        value = node.value
        if not isinstance(value, str | bytes):
            return Estimate(0, _STEP_WEIGHT, SCALAR)
        encoded = value.encode() if isinstance(value, str) else value
        size = Size(len(value), len(value))
        return Estimate(0, _STEP_WEIGHT, Bounds(size=size, weight=ITEM_WEIGHT + len(encoded)))

    def ident(self, node: Node) -> Estimate:
        return Estimate(1, _STEP_WEIGHT, self._variables.get(node.name, _TYPE))

    def select(self, node: Node) -> Estimate:
        cost, weight, operand = self.of(node.args[0])
        if node.tests_presence:
            return Estimate(cost, _sum(weight, _LOOKUP_WEIGHT), SCALAR)
        is_lookup = node.args[0].type in _LOOKED_UP or operand.kind in _LOOKED_UP
        value = operand.field(node.name)
        return Estimate(_sum(cost, is_lookup), _sum(weight, _LOOKUP_WEIGHT), value)

    def list(self, node: Node) -> Estimate:
        given = [self.of(each) for each in node.args]
        count = len(given)
        items = joined([each.value for each in given]) if given else None
        content = ITEM_WEIGHT + sum(each.value.weight for each in given)
        value = Bounds("list", Size(count, count), content, count=count, items=items)
        weight = _STEP_WEIGHT + _COPIED_ITEM_WEIGHT * count
        return _total(given, 10, weight, value)

    def map(self, node: Node) -> Estimate:
        given = [self.of(each) for each in node.args]
        keys, values = given[::2], given[1::2]
        content = ITEM_WEIGHT + sum(each.value.weight for each in given)
        value = Bounds(
            "" if node.name else "map",
            Size(len(keys), len(keys)),
            content,
            count=len(keys) + sum(each.value.count for each in values if node.name),
            items=joined([each.value for each in values]),
            keys=joined([each.value for each in keys]),
        )
        if node.name:
            value = value.joined(value.item)
        weight = _STEP_WEIGHT + 2 * content
        return _total(given, 40 if node.name else 30, weight, value)

    def comprehension(self, node: Node) -> Estimate:
        assert node.loop is not None
        loop = node.loop
        items, start = self.of(loop.items), self.of(loop.start)
        if loop.is_binding:
            result = self._within({loop.accumulator: start.value}, loop.result)
            return _total([items, start, result], 0, _STEP_WEIGHT, result.value)
        return self._repeated(loop, items, start)

    def _repeated(self, loop: Loop, items: Estimate, start: Estimate) -> Estimate:
        turns = items.value
        grown = start.value
        if loop.start.kind in (LIST, MAP):
            # On average the list is half as long as at the end.
            grown = Bounds("list", turns.size, ITEM_WEIGHT, count=turns.count // 2)
        names = {loop.variable: turns.looped, loop.accumulator: grown}
        if loop.second:
            names = {loop.variable: turns.keys or SCALAR, loop.second: turns.item, **names}
        condition = self._within(names, loop.condition)
        step = self._within(names, loop.step)
        result = self._within({loop.accumulator: start.value}, loop.result)
        cost = capped(turns.size.greatest * _sum(condition.cost, step.cost))
        weight = capped(turns.count * _sum(condition.weight, step.weight, _STEP_WEIGHT))
        value = _accumulated(turns, step.value) if loop.start.kind in (LIST, MAP) else SCALAR
        return _total([items, start, result], cost, weight, value)

    def _within(self, names: Mapping[str, Bounds], node: Node) -> Estimate:
        outer = self._variables
        self._variables = {**outer, **names}
        try:
            return self.of(node)
        finally:
            self._variables = outer

    def call(self, node: Node) -> Estimate:
        target = None if node.target is None else self.of(node.target)
        call = _Call(node, target, [self.of(each) for each in node.args])
        if node.name == "_?_:_":
            return _conditional(call)
        weigh = _OWN.get(node.name)
        if weigh is None:
            return Estimate(UNLIMITED, UNLIMITED, SCALAR)
        own = weigh(call)
        cost, size = _call_cost(call)
        value = own.value if size is None else _resized(own.value, size)
        return _total(call.given, cost, _sum(own.weight, _STEP_WEIGHT), value)


def _accumulated(turns: Bounds, step: Bounds) -> Bounds:
    """Return what a list, or a map, is like to which each turn may add an item."""
    item = step.item
    keys = step.keys
    added = item.weight + (0 if keys is None else keys.weight)
    weight = ITEM_WEIGHT + turns.count * added
    return Bounds(step.kind, turns.size, weight, count=turns.count, items=item, keys=keys)


def _conditional(call: _Call) -> Estimate:
    condition, first, second = call.args
    cost = _sum(condition.cost, max(first.cost, second.cost))
    weight = _sum(condition.weight, max(first.weight, second.weight), _STEP_WEIGHT)
    return Estimate(cost, weight, first.value.joined(second.value))


def _total(parts: Sequence[Estimate], cost: int, weight: int, value: Bounds) -> Estimate:
    costs, weights = [each.cost for each in parts], [each.weight for each in parts]
    return Estimate(_sum(cost, *costs), _sum(weight, *weights), value)


def _sum(*numbers: int) -> int:
    return capped(sum(numbers))


def _resized(value: Bounds, size: Size) -> Bounds:
    return Bounds(
        value.kind,
        size,
        value.weight,
        count=value.count,
        items=value.items,
        keys=value.keys,
        fields=value.fields,
    )


_BY_KIND: Mapping[int, Callable[[_Estimator, Node], Estimate]] = {
    CONSTANT: _Estimator.constant,
    IDENT: _Estimator.ident,
    SELECT: _Estimator.select,
    CALL: _Estimator.call,
    LIST: _Estimator.list,
    MAP: _Estimator.map,
    COMPREHENSION: _Estimator.comprehension,
}


# Kubernetes' costs of functions

_Cost = Callable[[_Call], tuple[int, Size | None]]
"""What a call adds to the cost of its arguments, and the size of its value; None: by its type."""


def _part(size: int, factor: float) -> int:
    """Return a cost that grows with a size, rounded up."""
    if size >= UNLIMITED:
        return UNLIMITED
    return capped(-int(-size * factor // 1))


def _call_cost(call: _Call) -> tuple[int, Size | None]:
    """Return what a call adds to the cost of its arguments, and the size of its value.

    No size means that the value's own is used.
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
    found = sizes[0] if sizes else _size_by_type(node)
    for each in sizes[1:]:
        found = found.joined(each)
    return max(costs), found


def _size_by_type(node: Node) -> Size:
    return ONE if node.type.removeprefix("optional ") in _SCALARS else UNKNOWN_SIZE


def _overload_cost(call: _Call, overload: str) -> tuple[int, Size | None]:
    costs = _OVERLOADS.get(overload)
    return (1, None) if costs is None else costs(call)


def _concatenating(call: _Call) -> tuple[int, Size | None]:
    size = _size_sum(call.args[0].value.size, call.args[1].value.size)
    return _part(size.greatest, 0.1), size


def _appending(call: _Call) -> tuple[int, Size | None]:
    return 1, _size_sum(call.args[0].value.size, call.args[1].value.size)


def _prefixing(call: _Call) -> tuple[int, Size | None]:
    return _part(call.args[0].value.size.greatest, 0.1), None


def _scanning(call: _Call) -> tuple[int, Size | None]:
    items = call.args[1].value
    return 1 if items.kind == "map" else items.size.greatest, None


def _by_both(of_subject: float, of_other: float, least: int = 0) -> _Cost:
    """Return the cost that grows with the sizes of both texts."""

    def cost(call: _Call) -> tuple[int, Size | None]:
        subject, other = [each.value.size.greatest for each in call.given]
        return capped(_part(subject + least, of_subject) * _part(other, of_other)), None

    return cost


def _freely(_call: _Call) -> tuple[int, Size | None]:
    return 0, None


def _resizing(least: Callable[[int], int], greatest: Callable[[int], int]) -> _Cost:
    """Return the cost of reading a text whose result has another size."""

    def cost(call: _Call) -> tuple[int, Size | None]:
        size = call.given[0].value.size
        found = Size(capped(least(size.least)), capped(greatest(size.greatest)))
        return _part(size.greatest, 0.1), found

    return cost


def _comparing_sizes(call: _Call) -> tuple[int, Size | None]:
    return _part(min(each.value.size.greatest for each in call.args), 0.1), None


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
"""Functions whose value is one that was given, or a part of it."""


def _size_sum(one: Size, other: Size) -> Size:
    return Size(capped(one.least + other.least), capped(one.greatest + other.greatest))


def _once(_call: _Call) -> tuple[int, Size | None]:
    return 1, ONE


def _traversing(call: _Call) -> tuple[int, Size | None]:
    size = call.value(0).size
    return _part(size.greatest, 0.1), size


def _searching(call: _Call) -> tuple[int, Size | None]:
    return _part(call.value(0).size.greatest, 0.1), ONE


def _reading(call: _Call) -> tuple[int, Size | None]:
    # Quantities and versions are compared at once.
    return _part(call.value(0).size.greatest, 0.1), ONE


def _replacing(call: _Call) -> tuple[int, Size | None]:
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


def _splitting(call: _Call) -> tuple[int, Size | None]:
    size = call.value(0).size.greatest
    arguments = call.node.args
    limit = arguments[1].value if len(arguments) > 1 else None
    return _part(size, 0.2), Size(0, capped(limit % 2**64) if isinstance(limit, int) else size)


def _joining(call: _Call) -> tuple[int, Size | None]:
    # Kubernetes knows the items of a list by their path alone: those of an expression may be any.
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


# What functions weigh


def _weighs(call: _Call) -> int:
    return sum(each.value.weight for each in call.given)


def _text_of(weight: int) -> Bounds:
    return Bounds(weight=weight)


def _light(_call: _Call) -> _Own:
    """A function that looks at nothing of what it is given."""
    return _Own(0, SCALAR)


def _heavy(call: _Call) -> _Own:
    """A function that reads all it is given, and returns no text."""
    return _Own(_weighs(call), SCALAR)


def _converting(call: _Call) -> _Own:
    """A function that makes a text, or bytes, from what it is given."""
    weight = 6 * _weighs(call)
    return _Own(2 * weight, _text_of(weight))


def _comparing(call: _Call) -> _Own:
    return _Own(min(each.value.weight for each in call.given), SCALAR)


def _containing(call: _Call) -> _Own:
    return _Own(call.value(1).weight + call.value(0).weight, SCALAR)


def _finding(call: _Call) -> _Own:
    whole, part = call.value(0).weight, call.value(1).weight
    return _Own(whole * (4 + part // 16), SCALAR)


def _adding(call: _Call) -> _Own:
    one, other = (each.value for each in call.args)
    value = Bounds(
        one.kind if one.kind == other.kind else "",
        weight=one.weight + other.weight,
        count=one.count + other.count,
        items=_item_of(one, other),
    )
    weight = 0
    if "add_string" in call.node.overloads or "add_bytes" in call.node.overloads:
        weight = value.weight
    if "add_list" in call.node.overloads:
        weight = max(weight, _COPIED_ITEM_WEIGHT * value.count)
    return _Own(weight, value)


def _item_of(one: Bounds, other: Bounds) -> Bounds | None:
    lists = [each.item for each in (one, other) if each.items is not None or each.fields]
    return joined(lists) if lists else None


def _same(call: _Call) -> _Own:
    return _Own(0, joined([each.value for each in call.given]))


def _indexing(call: _Call) -> _Own:
    key = call.node.args[-1].value
    whole = call.args[0].value
    value = whole.field(key) if isinstance(key, str) else whole.item
    return _Own(_LOOKUP_WEIGHT + call.args[-1].value.weight, value)


def _changing(call: _Call) -> _Own:
    """A function that returns a text no longer than the one it is called on."""
    weight = call.value(0).weight
    return _Own(4 * weight, _text_of(weight))


def _replaced(call: _Call) -> _Own:
    whole, new = call.value(0).weight, call.value(2).weight
    shortest = max(call.value(1).size.least, 1)
    weight = whole + (whole // shortest + 1) * (new - min(new, ITEM_WEIGHT))
    return _Own(4 * (whole + weight), _text_of(weight))


def _split(call: _Call) -> _Own:
    whole = call.value(0).weight
    weight = whole * (ITEM_WEIGHT + 1)
    items = Bounds(size=UNKNOWN_SIZE, weight=whole)
    return _Own(weight, Bounds("list", weight=weight, count=whole, items=items))


def _joined(call: _Call) -> _Own:
    whole = call.value(0)
    between = call.value(1).weight if call.args else 0
    weight = whole.weight + whole.count * between
    return _Own(4 * weight, _text_of(weight))


def _formatted(call: _Call) -> _Own:
    """A text with those of the items of a list, nested lists and maps in full."""
    given = call.value(1)
    numbers = (given.weight // ITEM_WEIGHT + 1) * _FORMATTED_NUMBER_WEIGHT
    weight = call.value(0).weight + 6 * given.weight + numbers
    return _Own(4 * weight, _text_of(weight))


def _matching(call: _Call) -> _Own:
    pattern = call.node.args[-1].value
    if isinstance(pattern, str):
        compiled = regex_weight(pattern)
    elif call.args[-1].value.weight <= _UNKNOWN_PATTERN_WEIGHT_MAX:
        compiled = _REPEATED_CLASS_WEIGHT
    else:
        compiled = UNLIMITED
    return _Own(20 * call.value(0).weight + compiled, SCALAR)


def regex_weight(pattern: str) -> int:
    """Return what compiling a regular expression weighs at most: repetitions are written out."""
    times = 1
    for part in pattern.split("{")[1:]:
        bounds = part.partition("}")[0].split(",")
        counts = [min(int(each), 1000) for each in bounds if each.isdecimal()]
        times *= max([1, *counts])
    plain = (len(pattern.encode()) + 20) * times * _REGEX_BYTE_WEIGHT
    classes = pattern.lower().count("\\p")
    repeated = classes and any(each in pattern for each in "{*+")
    weight = min(plain, _REGEX_WEIGHT_MAX) + classes * _UNICODE_CLASS_WEIGHT
    return weight + (_REPEATED_CLASS_WEIGHT if repeated else 0)


def _callback(call: _Call) -> _Own:
    weight = _weighs(call)
    return _Own(_CALLBACK_WEIGHT + 50 * weight, _text_of(weight + ITEM_WEIGHT))


def _time(call: _Call) -> _Own:
    return _Own(_CALLBACK_WEIGHT + _weighs(call), SCALAR)


_OWN: Mapping[str, Callable[[_Call], _Own]] = {
    "_+_": _adding,
    "_[_]": _indexing,
    "_?._": _indexing,
    "_[?_]": _indexing,
    "replace": _replaced,
    "split": _split,
    "join": _joined,
    "format": _formatted,
    "matches": _matching,
    "@in": _containing,
    **dict.fromkeys(("_&&_", "_||_", "!_", "@not_strictly_false", "-_"), _light),
    **dict.fromkeys(("_-_", "_*_", "_/_", "_%_", "type", "hasValue", "optional.none"), _light),
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"), _comparing),
    **dict.fromkeys(("size", "startsWith", "endsWith"), _heavy),
    **dict.fromkeys(("int", "uint", "double", "bool"), _heavy),
    **dict.fromkeys(("contains", "indexOf", "lastIndexOf"), _finding),
    **dict.fromkeys(("string", "bytes", "strings.quote", "quote"), _converting),
    **dict.fromkeys(("charAt", "substring", "trim", "lowerAscii", "upperAscii"), _changing),
    "reverse": _changing,
    **dict.fromkeys(("dyn", "optional.of", "or", "orValue", "value"), _same),
    "optional.ofNonZeroValue": _same,
    **dict.fromkeys(("quantity", "semver", "isQuantity", "isSemver"), _callback),
    **dict.fromkeys(("sign", "isInteger", "asInteger", "asApproximateFloat"), _callback),
    **dict.fromkeys(("major", "minor", "patch", "compareTo", "isGreaterThan"), _callback),
    **dict.fromkeys(("isLessThan", "add", "sub"), _callback),
    **dict.fromkeys(("timestamp", "duration", "getDate", "getDayOfMonth", "getDayOfWeek"), _time),
    **dict.fromkeys(("getDayOfYear", "getFullYear", "getHours", "getMilliseconds"), _time),
    **dict.fromkeys(("getMinutes", "getMonth", "getSeconds"), _time),
}
"""By name: what a call weighs beside its arguments, and its value. Others are not evaluated."""
