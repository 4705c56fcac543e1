"""What a client sends is read in a time and a space that grow with its length, and no faster.

Each of these took minutes to years, or forty times its length, with patterns that go back. Nothing here
measures time: a reader that goes back does not come to its end.
"""

import tracemalloc

import pytest

from service.api.http.filters import parse_filters
from service.api.http.problems import MalformedRequest
from service.model.core.errors import MalformedJSON
from service.model.core.strict_json import decode_strict

ESCAPES = b'\\"' * 1_000_000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("labelSelector", f"a in ({'  ,' * 2_000}!)"),
        ("labelSelector", f"a notin ({' ' * 4_000}, {' ' * 4_000}"),
        ("labelSelector", "," * 8_000),
        ("labelSelector", "(" * 4_000 + "," * 4_000),
        ("labelSelector", f"a{' ' * 8_000}!"),
        ("fieldSelector", f"metadata.name{' ' * 8_000}!"),
        ("fieldSelector", f"metadata.name={' ' * 8_000}!"),
    ],
)
def test_selectors_that_are_nearly_right_are_refused_at_once(name: str, text: str) -> None:
    with pytest.raises(MalformedRequest):
        parse_filters("Pod", {name: text})


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 40 + b'1e999,"' + ESCAPES,
        b"[" * 33 + b'1e999,"' + ESCAPES + b'"',
        b'{"a":1e999,"' + ESCAPES,
    ],
)
def test_a_string_without_an_end_is_looked_for_once(raw: bytes) -> None:
    """The number that no float holds is seen before the end of the document is."""
    with pytest.raises(MalformedJSON):
        decode_strict(raw)


def test_a_string_of_escapes_takes_a_few_times_its_length() -> None:
    raw = b'["' + ESCAPES + b'",' + b"[]," * 40 + b'" "]'
    tracemalloc.start()
    try:
        decode_strict(raw)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(raw)
