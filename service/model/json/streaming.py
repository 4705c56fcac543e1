"""Reading of a large JSON object in short steps, regardless of its contents.

`msgspec` decodes a document in one call that blocks the whole process: almost half a second for 60
MB. Here, each step reads at most one item. Only the outermost structure is parsed: the contents of
items and other members may not be valid JSON, so each must still be decoded strictly.
"""

import re
from collections.abc import Collection, Iterator

import msgspec

from service.model.core.errors import FieldError, InvalidManifest, MalformedJSON
from service.model.core.strict_json import refuse_unread, too_many

_NESTED_MAX = 32

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'


def _value() -> bytes:
    """Return a pattern that matches a value up to the next comma or bracket at its own level.

    Regular expressions cannot recurse, so each level is written out.
    """
    inside = rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+"
    for _ in range(_NESTED_MAX):
        inside = rb'(?:[^"\[\]{}]++|' + _STRING + rb"|[\[{]" + inside + rb"[\]}])*+"
    return rb'(?:[^"\[\]{},]++|' + _STRING + rb"|[\[{]" + inside + rb"[\]}])++"


_VALUE = re.compile(_value(), re.DOTALL)
_BEGIN = re.compile(rb"[ \t\r\n]*+\{[ \t\r\n]*+")
_NAME = re.compile(rb"(" + _STRING + rb")[ \t\r\n]*+:[ \t\r\n]*+", re.DOTALL)
_OPEN_LIST = re.compile(rb"\[[ \t\r\n]*+(\][ \t\r\n]*+)?")
_NEXT = re.compile(rb",[ \t\r\n]*+")
_CLOSE_LIST = re.compile(rb"\][ \t\r\n]*+")
_END = re.compile(rb"\}[ \t\r\n]*+\Z")

_OPENING = (b'"', b"[", b"{")
_MEMBERS_MAX = 1_000

Member = bytes | list[bytes]
"""The JSON of a member, or a list with the JSON of each of its items."""

Step = Iterator[None]


def whole(member: Member) -> bytes:
    """Return a member that was not read item by item."""
    assert isinstance(member, bytes)
    return member


class LargeObject:
    """A JSON object that `steps` reads step by step; afterward, `members` holds its members."""

    def __init__(
        self, raw: bytes, lists: Collection[str], *, items_max: int, item_bytes_max: int
    ) -> None:
        """Read each member named in `lists` item by item, with at most `items_max` items each."""
        self.members: dict[str, Member] = {}
        self._raw = raw
        self._lists = lists
        self._items_max = items_max
        self._item_bytes_max = item_bytes_max
        self._at = 0

    def require_strict(self, read: Collection[str]) -> None:
        """Check that all members except those in `read` are strict JSON.

        Raises:
            MalformedJSON, InvalidManifest: a member is not.
        """
        for name, member in self.members.items():
            if name not in read and isinstance(member, bytes):
                refuse_unread(name, member)

    def steps(self) -> Step:
        """Read the object in small steps.

        Raises:
            MalformedJSON: the outermost structure is not JSON, or a member name repeats.
            InvalidManifest: the document is not an object, or exceeds a limit.
        """
        if self._raw.lstrip()[:1] in (b"[", b'"'):
            raise InvalidManifest([FieldError("", "must be an object")])
        self._take(_BEGIN)
        if self._raw[self._at : self._at + 1] != b"}":
            yield from self._member()
            while self._found(_NEXT):
                yield from self._member()
        self._take(_END)

    def _member(self) -> Step:
        name = self._name()
        if name in self._lists and self._raw[self._at : self._at + 1] == b"[":
            items: list[bytes] = []
            self.members[name] = items
            yield from self._items(name, items)
        else:
            self.members[name] = self._one(name)
            yield

    def _name(self) -> str:
        quoted = self._take(_NAME)
        try:
            name = msgspec.json.decode(quoted[1], type=str)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise _malformed(self._at) from None
        if name in self.members:
            raise MalformedJSON(f"The document has a duplicate key: {name[:64]}.")
        if len(self.members) >= _MEMBERS_MAX:
            raise InvalidManifest([FieldError("", f"has more than {_MEMBERS_MAX} fields")])
        return name

    def _items(self, name: str, items: list[bytes]) -> Step:
        if self._take(_OPEN_LIST)[1] is not None:
            return
        while True:
            items.append(self._one(f"{name}[{len(items)}]"))
            yield
            if not self._found(_NEXT):
                break
            if len(items) == self._items_max:
                raise too_many(self._items_max).under(name)
        self._take(_CLOSE_LIST)

    def _one(self, field: str) -> bytes:
        end = self._at + self._item_bytes_max
        match = _VALUE.match(self._raw, self._at, end)
        if end < len(self._raw) and (
            self._raw[self._at : self._at + 1] in _OPENING if match is None else match.end() == end
        ):
            message = f"is longer than {self._item_bytes_max} bytes, or has no end"
            raise InvalidManifest([FieldError(field, message)])
        if match is None:
            raise _malformed(self._at)
        self._at = match.end()
        return match[0].rstrip(b" \t\r\n")

    def _found(self, pattern: re.Pattern[bytes]) -> bool:
        match = pattern.match(self._raw, self._at)
        if match is not None:
            self._at = match.end()
        return match is not None

    def _take(self, pattern: re.Pattern[bytes]) -> re.Match[bytes]:
        match = pattern.match(self._raw, self._at)
        if match is None:
            raise _malformed(self._at)
        self._at = match.end()
        return match


def _malformed(at: int) -> MalformedJSON:
    return MalformedJSON(f"The document is not valid JSON: unexpected at byte {at}.")
