"""Strict JSON decoding, which leaves no room for interpretation.

`msgspec` decodes fast, but keeps only the last of several equal keys. So each document is encoded
again and compared: if the bytes are equal, nothing was lost; if they differ (white space, other
escapes), the keys on both sides are counted. Both steps run at C speed.

Rejected as malformed: invalid UTF-8, NaN, trailing data, duplicate keys, and nesting over 32
levels. Rejected as invalid, with the field: NUL in a string, integers beyond 64 bits, and floats
beyond double precision.
"""

import json
import re
import sys
from collections.abc import Collection, Iterator
from math import isinf

import msgspec

from service.model.core.errors import FieldError, InvalidManifest, MalformedJSON

DEPTH_MAX = 32

# The pattern never backtracks: otherwise a string of escapes would take forty times as long.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"(\s*+:)?', re.DOTALL)
"""A pattern that matches a string in valid JSON, and the following colon if the string is a key.

It could be slow on invalid JSON: an unterminated string would be searched from each of its escaped
quotes.
"""
_LEAF = re.compile(rb"\[\]|\{\}")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_INT64_DIGITS_MAX = len(str(-(2**63)))
_INT64 = range(-(2**63), 2**63)
_TOO_LARGE = "must fit a signed 64-bit integer or a double"

_decode_any = msgspec.json.Decoder().decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
encode = msgspec.json.Encoder().encode


def decode_strict(raw: bytes) -> object:
    """Decode a whole document.

    Raises `MalformedJSON` or `InvalidManifest`; the module's docstring lists the causes.
    """
    value = _decoded(raw)
    _refuse_deep(raw)
    _refuse_duplicate_keys(raw, value)
    if b"\\u0000" in raw or _LONG_NUMBER.search(raw):
        _refuse_scalars(value)
    return value


def decode_members(raw: bytes, read: Collection[str] | None = None) -> dict[str, bytes]:
    """Return the members of the outermost object, still encoded; raise if a name repeats.

    Values of the fields in `read` (None: all) are not checked: the caller must decode them
    strictly. All others are decoded here to find errors.
    """
    try:
        members = _decode_members(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        if isinstance(decode_strict(raw), dict):
            raise
        raise InvalidManifest([FieldError("", "must be an object")]) from None
    if encode(members) != raw:
        members = _respelt_members(raw)
    decoded = {name: bytes(member) for name, member in members.items()}
    if read is not None:
        for name, member in decoded.items():
            if name not in read:
                refuse_unread(name, member)
    return decoded


def _respelt_members(raw: bytes) -> dict[str, msgspec.Raw]:
    """Return the members of an object that is not in canonical form."""
    try:
        compact = msgspec.json.format(raw, indent=-1)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        compact = raw
    members = _decode_members(compact)
    if encode(members) != compact:
        decode_strict(raw)
    return members


def refuse_unread(name: str, member: bytes) -> None:
    """Decode a member the caller will not read, only to raise the errors of `decode_strict`."""
    try:
        decode_strict(member)
    except InvalidManifest as error:
        raise error.under(name) from None


def decode_items(raw: bytes, items_max: int = sys.maxsize) -> list[bytes]:
    """Return the items of the outermost list, still encoded.

    Raises:
        InvalidManifest: there are too many.
    """
    try:
        items = _decode_items(raw)
        if len(items) <= items_max:
            return [bytes(item) for item in items]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        decode_strict(raw)
        raise InvalidManifest([FieldError("", "must be a list")]) from None
    raise too_many(items_max)


def too_many(items_max: int) -> InvalidManifest:
    """Build the error for a list with more items than a request may have."""
    message = f"has more than {items_max} items; send them in several requests"
    return InvalidManifest([FieldError("", message)])


def _decoded(raw: bytes) -> object:
    try:
        return _decode_any(raw)
    except msgspec.ValidationError:
        raise InvalidManifest(_unreadable_numbers(raw)) from None
    except RecursionError:
        raise _too_deep() from None
    except UnicodeDecodeError:
        raise MalformedJSON("The document is not valid UTF-8.") from None
    except msgspec.DecodeError as error:
        raise MalformedJSON(f"The document is not valid JSON: {error}.") from None


def _too_deep() -> MalformedJSON:
    return MalformedJSON(f"The document is nested more than {DEPTH_MAX} levels deep.")


def _refuse_deep(raw: bytes) -> None:
    """Raise if JSON is nested too deeply; each pass strips the innermost brackets."""
    if raw.count(b"[") + raw.count(b"{") <= DEPTH_MAX:
        return
    brackets = _STRING.sub(b"", raw).translate(None, _NOT_BRACKETS)
    for _ in range(DEPTH_MAX):
        brackets = _LEAF.sub(b"", brackets)
        if not brackets:
            return
    raise _too_deep()


def _refuse_duplicate_keys(raw: bytes, value: object) -> None:
    again = encode(value)
    if again != raw and _key_count(again) != _key_count(raw):
        raise MalformedJSON(f"The document has a duplicate key: {_duplicate_key(raw)}.")


def _key_count(raw: bytes) -> int:
    colons = _STRING.findall(raw)
    return len(colons) - colons.count(b"")


def _duplicate_key(raw: bytes) -> str:
    """Return the first key that occurs twice in one object, for the error message."""
    repeated: list[str] = []

    def note(pairs: list[tuple[str, object]]) -> None:
        seen = set()
        for key, _ in pairs:
            if key in seen:
                repeated.append(key[:64])
            seen.add(key)

    json.loads(raw, object_pairs_hook=note)
    return repeated[0] if repeated else "unknown"


def _refuse_scalars(value: object) -> None:
    errors = list(_wrong_scalars(value, ""))
    if errors:
        raise InvalidManifest(errors)


def _wrong_scalars(value: object, path: str) -> Iterator[FieldError]:
    if isinstance(value, dict):
        for key, item in value.items():
            if "\0" in key:
                yield FieldError(path, "must not have a key with a NUL character")
            yield from _wrong_scalars(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _wrong_scalars(item, f"{path}[{index}]")
    elif isinstance(value, str):
        if "\0" in value:
            yield FieldError(path, "must not contain a NUL character")
    elif isinstance(value, int) and value not in _INT64:
        yield FieldError(path, _TOO_LARGE)


def _unreadable_numbers(raw: bytes) -> list[FieldError]:
    """Return an error for each number that is out of range for a float or a 64-bit integer."""
    try:
        value = json.loads(raw, parse_int=_clipped_int, parse_float=_clipped_float)
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        raise MalformedJSON("The document is not valid JSON.") from None
    _refuse_deep(raw)
    return list(_wrong_scalars(value, "")) or [FieldError("", "has a number out of range")]


def _clipped_int(digits: str) -> int:
    return 2**64 if len(digits) > _INT64_DIGITS_MAX else int(digits)


def _clipped_float(digits: str) -> float:
    """Parse a float; return one out of range as an integer, which is rejected later."""
    number = float(digits)
    return 2**64 if isinf(number) else number
