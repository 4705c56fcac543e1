"""Upper bounds of the values, known in a CEL expression, estimated before it is evaluated.

Two measures are kept separately. The *size* is the result of `size()`, which Kubernetes' cost
estimate uses; it is unlimited where Kubernetes has no bound. The *weight* is Moorage's own measure
and always finite: the number of bytes of a copy or of the text of the value, including all items.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

UNLIMITED = 2**64 - 1
"""The value of an unknown size or cost; greater values are capped to it."""
ITEM_WEIGHT = 64
"""The weight of a value that is not text, and of an empty text or list."""
_CHARACTER_BYTES = 4


class Size(NamedTuple):
    """The smallest and the largest size of a value."""

    least: int
    greatest: int

    def joined(self, other: "Size") -> "Size":
        """Return the smallest range that contains both ranges."""
        return Size(min(self.least, other.least), max(self.greatest, other.greatest))


UNKNOWN_SIZE = Size(0, UNLIMITED)
ONE = Size(1, 1)


def capped(number: int) -> int:
    """Return the smaller of `number` and `UNLIMITED`."""
    return min(number, UNLIMITED)


class Bounds:
    """Bounds on the size of a value, and on its items and fields."""

    __slots__ = ("count", "fields", "items", "keys", "kind", "size", "weight")

    def __init__(
        self,
        kind: str = "",
        size: Size = UNKNOWN_SIZE,
        weight: int = ITEM_WEIGHT,
        *,
        count: int = 0,
        items: "Bounds | None" = None,
        keys: "Bounds | None" = None,
        fields: "Mapping[str, Bounds] | None" = None,
    ) -> None:
        self.kind = kind
        """`map` or `struct` if selecting a field is known to be a lookup; `list`, or ""."""
        self.size = size
        self.weight = capped(weight)
        self.count = capped(count)
        """The most items that a loop over the value visits."""
        self.items = items
        """The bounds shared by all items of a list or values of a map, or None."""
        self.keys = keys
        """The bounds shared by all keys of a map, or None for a list."""
        self.fields = fields
        """The bounds of a map's values by key, for keys with bounds of their own."""

    def field(self, name: str) -> "Bounds":
        """Return the bounds of a field, or of the value of a key."""
        if self.fields is not None and name in self.fields:
            return self.fields[name]
        return self.item

    @property
    def item(self) -> "Bounds":
        """The bounds of any item of a list, or of any value of a map."""
        if self.items is None:
            self.items = joined(self.fields.values()) if self.fields else SCALAR
        return self.items

    @property
    def looped(self) -> "Bounds":
        """The bounds of the loop variable: an item of a list, or a key of a map."""
        if self.keys is None:
            return self.item
        return self.keys if self.kind in ("map", "struct") else self.keys.joined(self.item)

    def joined(self, other: "Bounds") -> "Bounds":
        """Return bounds that hold for either value."""
        return joined([self, other])


SCALAR = Bounds(size=ONE)
"""The bounds of a number, boolean, time, or null."""


def joined(values: Iterable[Bounds]) -> Bounds:
    """Return bounds that hold for all values, or those of a scalar if there are none."""
    distinct = list(dict.fromkeys(values))
    if len(distinct) <= 1:
        return distinct[0] if distinct else SCALAR
    kinds = {value.kind for value in distinct}
    return Bounds(
        kinds.pop() if len(kinds) == 1 else "",
        Size(
            min(value.size.least for value in distinct),
            max(value.size.greatest for value in distinct),
        ),
        max(value.weight for value in distinct),
        count=max(value.count for value in distinct),
        items=_any_of(value.items for value in distinct),
        keys=_any_of(value.keys for value in distinct),
        fields=_fields_of(distinct),
    )


def _any_of(values: Iterable[Bounds | None]) -> Bounds | None:
    known = [item for item in values if item is not None]
    return joined(known) if known else None


def _fields_of(values: Iterable[Bounds]) -> Mapping[str, Bounds] | None:
    known = [value.fields for value in values if value.fields is not None]
    if not known:
        return None
    by_name: dict[str, list[Bounds]] = {}
    for fields in known:
        for name, value in fields.items():
            by_name.setdefault(name, []).append(value)
    return {name: joined(same) for name, same in by_name.items()}


def text(longest: int) -> Bounds:
    """Return the bounds of a text of at most this many characters."""
    return Bounds(size=Size(0, longest), weight=ITEM_WEIGHT + longest * _CHARACTER_BYTES)


def map_of(keys: Bounds, values: Bounds, most: int) -> Bounds:
    """Return the bounds of a map of at most this many entries."""
    weight = ITEM_WEIGHT + most * (keys.weight + values.weight)
    return Bounds("map", Size(0, most), weight, count=most, items=values, keys=keys)


def bounds_of(value: Any) -> Bounds:
    """Return the bounds of decoded JSON: its actual sizes, rounded up to powers of two."""
    if isinstance(value, str):
        size = _rounded(len(value))
        return Bounds(size=Size(0, size), weight=ITEM_WEIGHT + size * _CHARACTER_BYTES)
    if isinstance(value, list):
        return _bounds_of_list([bounds_of(item) for item in value])
    if isinstance(value, dict):
        return _bounds_of_map({name: bounds_of(field) for name, field in value.items()})
    return SCALAR


def _bounds_of_list(items: Sequence[Bounds]) -> Bounds:
    size = _rounded(len(items))
    weight = ITEM_WEIGHT + sum(item.weight for item in items)
    return Bounds("list", Size(0, size), weight, count=size, items=joined(items))


def _bounds_of_map(fields: Mapping[str, Bounds]) -> Bounds:
    size = _rounded(len(fields))
    keys = text(max(map(len, fields), default=0))
    weight = ITEM_WEIGHT + sum(keys.weight + field.weight for field in fields.values())
    return Bounds("map", Size(0, size), weight, count=size, keys=keys, fields=fields)


def _rounded(number: int) -> int:
    return 1 << (number - 1).bit_length() if number > 1 else number


def _anything_small() -> Bounds:
    bounds = Bounds("map", Size(0, 0), count=1, keys=text(1))
    bounds.items = bounds
    return bounds


SMALLEST = _anything_small()
"""The bounds of the smallest JSON value of unknown structure: an expression too costly for it is
too costly for every input."""
