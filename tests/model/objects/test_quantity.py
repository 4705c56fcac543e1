"""Quantities are exact, rounded up only at the end, and refused where they can't be counted."""

from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from service.model.core.quantity import (
    INT64_MAX,
    InvalidQuantity,
    amount,
    amounts,
    format_quantity,
    parse_quantity,
)


@pytest.mark.parametrize(
    ("text", "in_milli", "in_whole"),
    [
        ("0", 0, 0),
        ("1", 1_000, 1),
        ("250m", 250, 1),
        ("0.1005", 101, 1),
        ("1500m", 1_500, 2),
        ("100u", 1, 1),
        ("1n", 1, 1),
        ("1e3", 1_000_000, 1_000),
        ("1E3", 1_000_000, 1_000),
        ("1E", 10**21, 10**18),
        ("0.5Gi", 2**29 * 1_000, 2**29),
        ("1Ki", 1_024_000, 1_024),
        (".5", 500, 1),
        ("5.", 5_000, 5),
        ("+3", 3_000, 3),
        ("-1", -1_000, -1),
        (2, 2_000, 2),
        (0.3, 300, 1),
        (1e9, 10**12, 10**9),
        ("1e-12", 1, 1),
    ],
)
def test_a_quantity_is_read_exactly_and_rounded_up(text, in_milli, in_whole):
    nanos = parse_quantity(text)
    assert (amount("cpu", nanos), amount("memory", nanos)) == (in_milli, in_whole)


@pytest.mark.parametrize(
    "text",
    [
        "", ".", "-", "1.5.Gi", "1 Gi", "1gi", "1K", "1e", "1e1.5", "Gi", "0x10", "1\n", "\u0661",
        "1e999", "1e400Gi", "1e-400", "9" * 33, "9223372036854775808", "-9223372036854775808", "8Ei", True, float("inf"),
    ],
)  # fmt: skip
def test_what_is_no_quantity_or_cannot_be_counted_is_refused(text):
    with pytest.raises(InvalidQuantity):
        parse_quantity(text)


def test_the_largest_quantity_is_the_largest_signed_64_bit_integer():
    assert amount("memory", parse_quantity("9223372036854775807")) == INT64_MAX


def test_a_number_and_a_truth_value_are_not_mistaken_for_each_other():
    assert amount("memory", parse_quantity(1)) == 1
    with pytest.raises(InvalidQuantity):
        parse_quantity(bool(1))


def test_cpu_is_counted_in_milli_and_everything_else_in_whole_units():
    assert amounts({"cpu": "1.5", "memory": "1Ki", "pods": "110"}) == {
        "cpu": 1_500,
        "memory": 1_024,
        "pods": 110,
    }
    assert amounts(None) == {}


@given(st.integers(0, INT64_MAX * 10**9))
def test_formatting_and_parsing_give_the_same_amount(nanos):
    text = format_quantity(nanos)
    if len(text) <= 32:
        assert parse_quantity(text) == nanos


@given(st.decimals(0, 10**9, places=6), st.sampled_from(["", "k", "M", "Ki", "Mi"]))
def test_a_quantity_equals_its_decimal_value(number, suffix):
    factor = {"": 1, "k": 10**3, "M": 10**6, "Ki": 2**10, "Mi": 2**20}[suffix]
    assert parse_quantity(f"{number:f}{suffix}") == Decimal(number) * factor * 10**9
