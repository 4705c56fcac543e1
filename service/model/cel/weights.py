"""Weights of CEL functions: the bytes they may write or compare, and nanoseconds."""

from collections.abc import Callable, Mapping

from service.model.cel.calls import COPIED_ITEM_WEIGHT, LOOKUP_WEIGHT, Call, CallWeight
from service.model.cel.values import (
    ITEM_WEIGHT,
    SCALAR,
    UNKNOWN_SIZE,
    UNLIMITED,
    Bounds,
    joined,
)

_CALLBACK_WEIGHT = 3_000
"""The weight of calling a function that is implemented in Python."""
_FORMATTED_NUMBER_WEIGHT = 1_400
"""The maximum weight of a number as text: `%f` of the largest number with the highest precision."""
_REGEX_BYTE_WEIGHT = 60
_REGEX_WEIGHT_MAX = 12_000_000
"""The maximum weight of compiling a regular expression without Unicode classes."""
_UNICODE_CLASS_WEIGHT = 150_000
_REPEATED_CLASS_WEIGHT = 25_000_000
"""The weight of repeated Unicode classes, up to the size limit of a compiled expression."""
_UNKNOWN_PATTERN_WEIGHT_MAX = 400
"""The maximum weight of a pattern that is not a constant, corresponding to 80 characters."""


def _weighs(call: Call) -> int:
    return sum(part.value.weight for part in call.given)


def _text_of(weight: int) -> Bounds:
    return Bounds(weight=weight)


def _light(_call: Call) -> CallWeight:
    """Return the weight of a call that reads none of its arguments."""
    return CallWeight(0, SCALAR)


def _heavy(call: Call) -> CallWeight:
    """Return the weight of a call that reads all of its arguments and returns no text."""
    return CallWeight(_weighs(call), SCALAR)


def _converting(call: Call) -> CallWeight:
    """Return the weight of a call that converts its argument to text or bytes."""
    weight = 6 * _weighs(call)
    return CallWeight(2 * weight, _text_of(weight))


def _comparing(call: Call) -> CallWeight:
    return CallWeight(min(part.value.weight for part in call.given), SCALAR)


def _containing(call: Call) -> CallWeight:
    return CallWeight(call.value(1).weight + call.value(0).weight, SCALAR)


def _finding(call: Call) -> CallWeight:
    whole, part = call.value(0).weight, call.value(1).weight
    return CallWeight(whole * (4 + part // 16), SCALAR)


def _adding(call: Call) -> CallWeight:
    one, other = (arg.value for arg in call.args)
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
        weight = max(weight, COPIED_ITEM_WEIGHT * value.count)
    return CallWeight(weight, value)


def _item_of(one: Bounds, other: Bounds) -> Bounds | None:
    lists = [bounds.item for bounds in (one, other) if bounds.items is not None or bounds.fields]
    return joined(lists) if lists else None


def _same(call: Call) -> CallWeight:
    return CallWeight(0, joined([part.value for part in call.given]))


def _indexing(call: Call) -> CallWeight:
    key = call.node.args[-1].value
    whole = call.args[0].value
    value = whole.field(key) if isinstance(key, str) else whole.item
    return CallWeight(LOOKUP_WEIGHT + call.args[-1].value.weight, value)


def _changing(call: Call) -> CallWeight:
    """Return the weight of a call whose text is no longer than the target's text."""
    weight = call.value(0).weight
    return CallWeight(4 * weight, _text_of(weight))


def _replaced(call: Call) -> CallWeight:
    whole, new = call.value(0).weight, call.value(2).weight
    shortest = max(call.value(1).size.least, 1)
    weight = whole + (whole // shortest + 1) * (new - min(new, ITEM_WEIGHT))
    return CallWeight(4 * (whole + weight), _text_of(weight))


def _split(call: Call) -> CallWeight:
    whole = call.value(0).weight
    weight = whole * (ITEM_WEIGHT + 1)
    items = Bounds(size=UNKNOWN_SIZE, weight=whole)
    return CallWeight(weight, Bounds("list", weight=weight, count=whole, items=items))


def _joined(call: Call) -> CallWeight:
    whole = call.value(0)
    between = call.value(1).weight if call.args else 0
    weight = whole.weight + whole.count * between
    return CallWeight(4 * weight, _text_of(weight))


def _formatted(call: Call) -> CallWeight:
    """Return the weight of formatting the items of a list, with nested lists and maps in full."""
    given = call.value(1)
    numbers = (given.weight // ITEM_WEIGHT + 1) * _FORMATTED_NUMBER_WEIGHT
    weight = call.value(0).weight + 6 * given.weight + numbers
    return CallWeight(4 * weight, _text_of(weight))


def _matching(call: Call) -> CallWeight:
    pattern = call.node.args[-1].value
    if isinstance(pattern, str):
        compiled = regex_weight(pattern)
    elif call.args[-1].value.weight <= _UNKNOWN_PATTERN_WEIGHT_MAX:
        compiled = _REPEATED_CLASS_WEIGHT
    else:
        compiled = UNLIMITED
    return CallWeight(20 * call.value(0).weight + compiled, SCALAR)


def regex_weight(pattern: str) -> int:
    """Return a bound on the weight of compiling a regular expression, repetitions expanded."""
    times = 1
    for part in pattern.split("{")[1:]:
        bounds = part.partition("}")[0].split(",")
        counts = [min(int(bound), 1000) for bound in bounds if bound.isdecimal()]
        times *= max([1, *counts])
    plain = (len(pattern.encode()) + 20) * times * _REGEX_BYTE_WEIGHT
    classes = pattern.lower().count("\\p")
    repeated = classes and any(sign in pattern for sign in "{*+")
    weight = min(plain, _REGEX_WEIGHT_MAX) + classes * _UNICODE_CLASS_WEIGHT
    return weight + (_REPEATED_CLASS_WEIGHT if repeated else 0)


def _callback(call: Call) -> CallWeight:
    weight = _weighs(call)
    return CallWeight(_CALLBACK_WEIGHT + 50 * weight, _text_of(weight + ITEM_WEIGHT))


def _time(call: Call) -> CallWeight:
    return CallWeight(_CALLBACK_WEIGHT + _weighs(call), SCALAR)


WEIGHTS: Mapping[str, Callable[[Call], CallWeight]] = {
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
"""The function that computes the weight of a call and of its value, by CEL function; functions not
listed here are never evaluated."""
