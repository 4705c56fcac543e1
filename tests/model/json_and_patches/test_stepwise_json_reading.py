"""A large object is taken apart as `decode_members` and `decode_items` do it, and refused where they refuse it."""

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from service.model.core.errors import InvalidManifest, MalformedJSON
from service.model.core.strict_json import decode_items, decode_members, decode_strict
from service.model.json.streaming import LargeObject

TEXT = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(
    st.sampled_from(["pods", "policy", "x", 'q"{']) | TEXT, VALUES, max_size=4
)


def members_of(raw: bytes, items_max: int = 100, item_bytes_max: int = 1_000) -> dict[str, Any]:
    large = LargeObject(raw, ("pods",), items_max=items_max, item_bytes_max=item_bytes_max)
    for _ in large.steps():
        pass
    return large.members


def decode_all(members: dict[str, Any]) -> None:
    for member in members.values():
        for each in member if isinstance(member, list) else [member]:
            decode_strict(each)


@settings(max_examples=60)
@given(OBJECTS, st.sampled_from([None, 1]), st.booleans())
def test_it_finds_what_the_decoder_finds(value: dict[str, Any], indent: int | None, plain: bool):  # noqa: FBT001 - drawn
    raw = json.dumps(value, indent=indent, ensure_ascii=plain).encode()
    found = members_of(raw)
    expected = decode_members(raw)
    assert found.keys() == expected.keys()
    for name, member in found.items():
        if isinstance(member, list):
            member_items = [decode_strict(item) for item in decode_items(expected[name])]
            assert [decode_strict(item) for item in member] == member_items
        else:
            assert decode_strict(member) == decode_strict(expected[name])
    if isinstance(value.get("pods"), list):
        assert isinstance(found["pods"], list)


@settings(max_examples=60)
@given(OBJECTS, st.data())
def test_what_it_takes_of_a_broken_document_is_refused_member_by_member(value, data):
    """Where a byte is missing or another one is there, either it or the decoder of what it found says so."""
    raw = json.dumps(value).encode()
    at = data.draw(st.integers(0, len(raw) - 1))
    put = data.draw(st.sampled_from([b"", b'"', b"{", b"]", b",", b":", b"\\", b"\x0b", b"1"]))
    broken = raw[:at] + put + raw[at + 1 :]
    try:
        decode_members(broken)
    except (MalformedJSON, InvalidManifest):
        with pytest.raises((MalformedJSON, InvalidManifest)):
            decode_all(members_of(broken))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b" ",
        b"{",
        b'{"a"',
        b'{"a":',
        b'{"a":}',
        b'{"a":1',
        b'{"a":1,}',
        b'{"a":1}x',
        b'{"pods":[1,]}',
        b'{"pods":[,1]}',
        b'{"pods":[1}',
        b'{"pods":[1]',
        b'{"a":1,"a":2}',
        b'{"a":1,"\\u0061":2}',
        b'{"\xff":1}',
        b"7",
    ],
)
def test_what_is_no_object_is_malformed(raw: bytes) -> None:
    with pytest.raises(MalformedJSON):
        members_of(raw)


@pytest.mark.parametrize(
    ("raw", "field", "message"),
    [
        (b"[]", "", "must be an object"),
        (b'"text"', "", "must be an object"),
        (b'{"pods":[%b]}' % b",".join([b"{}"] * 101), "pods", "more than 100 items"),
        (b'{"pods":[1,"%b",2]}' % (b"x" * 1_000), "pods[1]", "longer than 1000 bytes"),
        (b'{"pods":[1,{"a":[%b' % (b"1," * 1_000), "pods[1]", "longer than 1000 bytes"),
        (b'{"other":[%b]}' % (b"1," * 1_000), "other", "longer than 1000 bytes"),
        (b"{%b}" % b",".join(b'"%d":1' % n for n in range(1_001)), "", "more than 1000 fields"),
    ],
)
def test_what_is_too_much_is_named(raw: bytes, field: str, message: str) -> None:
    with pytest.raises(InvalidManifest) as refused:
        members_of(raw)
    (error,) = refused.value.errors
    assert error.field == field
    assert message in error.message


def test_as_many_items_and_bytes_as_the_limits_say_are_taken() -> None:
    item = b'"%b"' % (b"x" * 997)
    assert members_of(b'{"pods":[%b]}' % b",".join([item] * 100)) == {"pods": [item] * 100}
