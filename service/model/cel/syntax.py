"""The syntax tree of a compiled expression, decoded from the library's serialized form.

The form is `cel.expr.CheckedExpr` of CEL's specification (`cel/expr/checked.proto` and
`syntax.proto`). Only the parts needed to estimate costs are decoded, without a protobuf library.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

CONSTANT, IDENT, SELECT, CALL, LIST, MAP, COMPREHENSION = range(3, 10)
"""Node kinds, numbered as in `Expr`; a node of kind `MAP` may also build a message."""
_PRIMITIVES = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}
_WELL_KNOWN = {1: "any", 2: "timestamp", 3: "duration"}
_COMPOSED = {6: "list", 7: "map", 9: "struct", 10: "param"}


class Loop(NamedTuple):
    """The parts of a comprehension, to which `cel.bind` and macros such as `all` are expanded."""

    variable: str
    second: str
    """The second loop variable, or ""."""
    items: "Node"
    accumulator: str
    start: "Node"
    condition: "Node"
    step: "Node"
    result: "Node"

    @property
    def is_binding(self) -> bool:
        """Whether the comprehension only binds a name, like `cel.bind`, without iterating."""
        return self.items.kind == LIST and not self.items.args


class Node(NamedTuple):
    """A subexpression."""

    kind: int
    type: str
    """The type inferred by the checker; `dyn` if unknown."""
    name: str = ""
    """The name of the variable, field, or function."""
    args: tuple["Node", ...] = ()
    """Operands, arguments, or items; for a map, alternating keys and values."""
    target: "Node | None" = None
    """The target of a member function call, or None."""
    overloads: tuple[str, ...] = ()
    """The overloads of the function that match the argument types."""
    value: str | bytes | int | None = None
    """The value of a constant; None for scalars that do not affect estimates."""
    tests_presence: bool = False
    """Whether a selection only tests for the field's presence."""
    loop: Loop | None = None


def parsed(serialized: bytes) -> Node:
    """Decode the syntax tree of an expression that the library serialized."""
    checked = _fields(_one(_fields(serialized), 2))
    overloads = {key: _overloads(value) for key, value in map(_entry, checked.get(2, ()))}
    types = {key: _type(value) for key, value in map(_entry, checked.get(3, ()))}
    return _Reader(overloads, types).node(_one(checked, 4))


_Fields = dict[int, list[Any]]


class _Reader:
    def __init__(self, overloads: dict[int, tuple[str, ...]], types: dict[int, str]) -> None:
        self._overloads = overloads
        self._types = types

    def node(self, message: bytes) -> Node:
        fields = _fields(message)
        number = fields.get(2, [0])[0]
        kind = next(field for field in fields if field != 2)
        return _READERS[kind](self, number, _fields(fields[kind][0]))

    def constant(self, number: int, body: _Fields) -> Node:
        return Node(CONSTANT, self._type(number), value=_constant(body))

    def ident(self, number: int, body: _Fields) -> Node:
        return Node(IDENT, self._type(number), _text(body, 1))

    def select(self, number: int, body: _Fields) -> Node:
        operand = self.node(_one(body, 1))
        tests = bool(body.get(3, [0])[0])
        known, name = self._type(number), _text(body, 2)
        return Node(SELECT, known, name, (operand,), tests_presence=tests)

    def call(self, number: int, body: _Fields) -> Node:
        target = self.node(_one(body, 1)) if 1 in body else None
        known, overloads = self._type(number), self._overloads.get(number, ())
        return Node(CALL, known, _text(body, 2), self._nodes(body, 3), target, overloads)

    def list(self, number: int, body: _Fields) -> Node:
        return Node(LIST, self._type(number), args=self._nodes(body, 1))

    def map(self, number: int, body: _Fields) -> Node:
        return Node(MAP, self._type(number), _text(body, 1), tuple(self._entries(body)))

    def comprehension(self, number: int, body: _Fields) -> Node:
        return Node(COMPREHENSION, self._type(number), loop=self._loop(body))

    def _type(self, number: int) -> str:
        return self._types.get(number, "dyn")

    def _nodes(self, body: _Fields, number: int) -> tuple[Node, ...]:
        return tuple([self.node(child) for child in body.get(number, ())])

    def _entries(self, body: _Fields) -> Iterator[Node]:
        for entry in map(_fields, body.get(2, ())):
            yield self.node(_one(entry, 3)) if 3 in entry else Node(CONSTANT, "string", value="")
            yield self.node(_one(entry, 4))

    def _loop(self, body: _Fields) -> Loop:
        items, start, condition, step, result = (
            self.node(_one(body, number)) for number in (2, 4, 5, 6, 7)
        )
        variable, accumulator, second = (_text(body, number) for number in (1, 3, 8))
        return Loop(variable, second, items, accumulator, start, condition, step, result)


_READERS: dict[int, Callable[[_Reader, int, _Fields], Node]] = {
    CONSTANT: _Reader.constant,
    IDENT: _Reader.ident,
    SELECT: _Reader.select,
    CALL: _Reader.call,
    LIST: _Reader.list,
    MAP: _Reader.map,
    COMPREHENSION: _Reader.comprehension,
}


def _constant(body: _Fields) -> str | bytes | int | None:
    if 6 in body:
        return _text(body, 6)
    if 7 in body:
        return _one(body, 7)
    if 3 in body:
        return int(body[3][0])
    return None


def _overloads(message: bytes) -> tuple[str, ...]:
    return tuple([name.decode() for name in _fields(message).get(3, ())])


def _type(message: bytes) -> str:
    fields = _fields(message)
    for number, names in ((3, _PRIMITIVES), (5, _WELL_KNOWN)):
        if number in fields:
            return names.get(fields[number][0], "dyn")
    if 14 in fields:
        abstract = _fields(_one(fields, 14))
        inner = _type(_one(abstract, 2)) if 2 in abstract else "dyn"
        return f"optional {inner}" if _text(abstract, 1) == "optional_type" else "dyn"
    return next((_COMPOSED[number] for number in fields if number in _COMPOSED), "dyn")


# The wire format of protocol buffers


def _fields(message: bytes) -> _Fields:
    """Return the fields of a message by number, each with its values in order."""
    fields: _Fields = {}
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        value, at = _value(message, at, tag & 7)
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def _value(message: bytes, at: int, wire_type: int) -> tuple[Any, int]:
    if wire_type == 0:
        return _varint(message, at)
    if wire_type == 1:
        return None, at + 8
    if wire_type == 5:
        return None, at + 4
    length, at = _varint(message, at)
    return message[at : at + length], at + length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _entry(message: bytes) -> tuple[int, bytes]:
    fields = _fields(message)
    return fields.get(1, [0])[0], fields.get(2, [b""])[0]


def _one(fields: _Fields, number: int) -> bytes:
    return bytes(fields[number][0])


def _text(fields: _Fields, number: int) -> str:
    return str(fields.get(number, [b""])[0].decode())
