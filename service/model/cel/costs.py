"""Upper bounds on the cost of a CEL expression, estimated from its syntax tree.

The *cost* is Kubernetes' own estimate, from `cel-go`'s `checker/cost.go` and the functions of
`k8s.io/apiserver/pkg/cel/library/cost.go`, v1.35, so that Moorage rejects what Kubernetes rejects.
It misses some growth (the output of `format`, equality of nested lists), so Moorage adds a measure
of its own, the *weight*: the bytes that the library may write or compare, and nanoseconds.
Expressions over either limit are never evaluated, so that all servers agree.
"""

from collections.abc import Callable, Mapping, Sequence

from service.model.cel.calls import COPIED_ITEM_WEIGHT, LOOKUP_WEIGHT, Call, Estimate
from service.model.cel.functions import call_cost
from service.model.cel.syntax import (
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
from service.model.cel.values import (
    ITEM_WEIGHT,
    SCALAR,
    UNLIMITED,
    Bounds,
    Size,
    capped,
    joined,
)
from service.model.cel.weights import WEIGHTS

TOO_COSTLY = "too complex, exceeds cost limit"

_STEP_WEIGHT = 100
_TYPE = Bounds()
"""The bounds of identifiers that are not variables, such as type names."""
_LOOKED_UP = frozenset({"map", "struct", "param"})


def estimate(node: Node, variables: Mapping[str, Bounds]) -> Estimate:
    """Return an upper bound on an expression's cost, given the bounds of its variables."""
    return _Estimator(variables).of(node)


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
            return Estimate(cost, _sum(weight, LOOKUP_WEIGHT), SCALAR)
        is_lookup = node.args[0].type in _LOOKED_UP or operand.kind in _LOOKED_UP
        value = operand.field(node.name)
        return Estimate(_sum(cost, is_lookup), _sum(weight, LOOKUP_WEIGHT), value)

    def list(self, node: Node) -> Estimate:
        given = [self.of(arg) for arg in node.args]
        count = len(given)
        items = joined([part.value for part in given]) if given else None
        content = ITEM_WEIGHT + sum(part.value.weight for part in given)
        value = Bounds("list", Size(count, count), content, count=count, items=items)
        weight = _STEP_WEIGHT + COPIED_ITEM_WEIGHT * count
        return _total(given, 10, weight, value)

    def map(self, node: Node) -> Estimate:
        given = [self.of(arg) for arg in node.args]
        keys, values = given[::2], given[1::2]
        content = ITEM_WEIGHT + sum(part.value.weight for part in given)
        value = Bounds(
            "" if node.name else "map",
            Size(len(keys), len(keys)),
            content,
            count=len(keys) + sum(part.value.count for part in values if node.name),
            items=joined([part.value for part in values]),
            keys=joined([part.value for part in keys]),
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
            # On average, the accumulated list is half its final length.
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
        call = Call(node, target, [self.of(arg) for arg in node.args])
        if node.name == "_?_:_":
            return _conditional(call)
        weigh = WEIGHTS.get(node.name)
        if weigh is None:
            return Estimate(UNLIMITED, UNLIMITED, SCALAR)
        own = weigh(call)
        cost, size = call_cost(call)
        value = own.value if size is None else _resized(own.value, size)
        return _total(call.given, cost, _sum(own.weight, _STEP_WEIGHT), value)


def _accumulated(turns: Bounds, step: Bounds) -> Bounds:
    """Return the bounds of a list or map that gains at most one item per iteration."""
    item = step.item
    keys = step.keys
    added = item.weight + (0 if keys is None else keys.weight)
    weight = ITEM_WEIGHT + turns.count * added
    return Bounds(step.kind, turns.size, weight, count=turns.count, items=item, keys=keys)


def _conditional(call: Call) -> Estimate:
    condition, first, second = call.args
    cost = _sum(condition.cost, max(first.cost, second.cost))
    weight = _sum(condition.weight, max(first.weight, second.weight), _STEP_WEIGHT)
    return Estimate(cost, weight, first.value.joined(second.value))


def _total(parts: Sequence[Estimate], cost: int, weight: int, value: Bounds) -> Estimate:
    costs, weights = [part.cost for part in parts], [part.weight for part in parts]
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
