"""JSON that could mean two things, or nothing we can hold, is refused with the right complaint."""

import json

import pytest
from hypothesis import given, strategies as st

from service.model.core.errors import InvalidManifest, MalformedJSON
from service.model.core.strict_json import decode_items, decode_members, decode_strict


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"{", b"nope", b"[1] x", b"NaN", b"[Infinity]", b"01", b'"a\nb"', b'"\xff"', b"\xef\xbb\xbf{}",
        b'{"a":1,"a":1}', b'{"x":{"a":1, "a":2}}', b'{"a":1,"\\u0061":1}', b'"\\ud800"',
        b"[" * 33 + b"]" * 33, b'{"a":' * 33 + b"1" + b"}" * 33, b"[" * 5000 + b"]" * 5000, b"[" * 5000,
    ],
)  # fmt: skip
def test_malformed_documents_are_refused_as_such(raw):
    with pytest.raises(MalformedJSON):
        decode_strict(raw)


def test_a_document_may_be_nested_32_levels_deep_and_have_any_number_of_siblings():
    assert decode_strict(b"[" * 32 + b"]" * 32)
    assert decode_strict(b"[" + b"[{}]," * 99 + b'"[[[[{{{{"]')


@pytest.mark.parametrize(
    ("raw", "fields"),
    [
        (b'{"a":{"b":["x","\\u0000"]}}', ["a.b[1]"]),
        (b'{"a":9223372036854775808,"b":-9223372036854775809}', ["a", "b"]),
        (b'{"a":1e400,"b":[12345678901234567890],"c":1}', ["a", "b[0]"]),
        (b'{"a":' + b"9" * 5000 + b"}", ["a"]),
        (b'{"a":"x\\u0000y"}', ["a"]),
        (b'{"a":{"\\u0000":1}}', ["a"]),
    ],
)
def test_scalars_that_cannot_be_held_are_named(raw, fields):
    with pytest.raises(InvalidManifest) as refused:
        decode_strict(raw)
    assert [error.field for error in refused.value.errors] == fields


def test_the_bounds_of_64_bits_are_within_them():
    assert decode_strict(b"[9223372036854775807,-9223372036854775808]") == [2**63 - 1, -(2**63)]


def test_the_first_duplicate_key_is_named():
    with pytest.raises(MalformedJSON, match="labels"):
        decode_strict(b'{"metadata":{"labels":{},"labels":{}}}')


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.text(st.characters(codec="utf-8", exclude_characters="\0")),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=20,
    ),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_good_documents_are_decoded_however_they_are_spelt(value, indent, ascii_only):
    raw = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    if "\\u0000" not in raw:
        assert decode_strict(raw.encode()) == value


def test_the_outermost_level_is_split_without_decoding_what_is_inside():
    assert decode_members(b'{"a":[1, 2],"b":{"c":1,"c":2}}') == {
        "a": b"[1, 2]",
        "b": b'{"c":1,"c":2}',
    }
    assert decode_items(b'[{"a":1}, 2]') == [b'{"a":1}', b"2"]


def test_splitting_refuses_duplicates_of_its_own_level_and_other_types():
    with pytest.raises(MalformedJSON):
        decode_members(b'{"a":1,"a":2}')
    with pytest.raises(MalformedJSON):
        decode_members(b'{"a": 1, "a": 2}')
    with pytest.raises(InvalidManifest):
        decode_members(b"[]")
    with pytest.raises(InvalidManifest):
        decode_items(b"{}")
    with pytest.raises(MalformedJSON):
        decode_items(b"[")


def test_white_space_around_members_is_left_out_and_duplicates_are_still_seen():
    assert decode_members(b'{ "a" : [1, {"b" : " x "}],\n"\\u0062": {} }') == {
        "a": b'[1,{"b":" x "}]',
        "b": b"{}",
    }
    for twice in (b'{ "a": 1,"a": 2}', b'{"a": 1, "\\u0061": 2}', b'{"a":1,"\\u0061":2}'):
        with pytest.raises(MalformedJSON, match="duplicate key: a"):
            decode_members(twice)


def test_members_that_nobody_reads_are_decoded_strictly():
    read = decode_members(b'{"a": {"b":1,"b":2}, "c": {"d": 3}}', ("a",))
    assert read == {"a": b'{"b":1,"b":2}', "c": b'{"d":3}'}
    for unread in (
        b'{"a": {"b":1,"b":2}}',
        b'{"a": "\xff"}',
        b'{"a":' + b"[" * 40 + b"]" * 40 + b"}",
    ):
        with pytest.raises(MalformedJSON):
            decode_members(unread, ("c",))
    with pytest.raises(InvalidManifest) as refused:
        decode_members(b'{"a": {"b": "\\u0000"}}', ("c",))
    assert [error.field for error in refused.value.errors] == ["a.b"]
