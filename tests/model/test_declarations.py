"""What a type declares of an object is what validation demands of it."""

from typing import Annotated, Literal

import msgspec
import pytest

from service.model.core.primitives import Strict, Value
from service.model.core.type_rules import declared
from service.model.core.validators import Problems, list_of, text

Few = Annotated[int, msgspec.Meta(ge=1, le=5, extra={"message": "must be one to 5"})]
Many = Annotated[int, msgspec.Meta(ge=0)]


class Closed(Strict, frozen=True, kw_only=True):
    first_field: Few
    word: Literal["This", "That"] = "This"
    many: Many | None = None
    any_number: int = 0
    flag: bool | None = None
    texts: tuple[str, ...] = ()


class Open(Value, frozen=True, kw_only=True):
    first_field: Few | None = None


CLOSED = declared(Closed, {"texts": list_of(text())}, mistakes={"wrod": "word"})
GOOD = {"firstField": 1}


def errors(sent: object, rule=CLOSED) -> list[tuple[str, str]]:
    problems = Problems()
    rule(sent, "at", problems)
    return [(each.field, each.message) for each in problems.errors]


@pytest.mark.parametrize(
    ("sent", "field", "message"),
    [
        ({}, "at.firstField", "is required"),
        ({"firstField": 0}, "at.firstField", "must be one to 5"),
        ({"firstField": 6}, "at.firstField", "must be one to 5"),
        ({"firstField": "1"}, "at.firstField", "must be an integer"),
        (GOOD | {"word": "Thatt"}, "at.word", "must be one of This, That; did you mean That?"),
        (GOOD | {"many": -1}, "at.many", f"must be between 0 and {2**63 - 1}, inclusive"),
        (GOOD | {"anyNumber": 2**63}, "at.anyNumber", f"must be between {-(2**63)} and {2**63 - 1}, inclusive"),
        (GOOD | {"flag": "yes"}, "at.flag", "must be true or false"),
        (GOOD | {"texts": [1]}, "at.texts[0]", "must be a string"),
        (GOOD | {"wrod": "This"}, "at.wrod", "unknown field; did you mean word?"),
        (GOOD | {"other": 1}, "at.other", "unknown field"),
    ],
)  # fmt: skip
def test_a_type_says_what_is_wrong(sent, field, message):
    assert errors(sent) == [(field, message)]


def test_all_errors_are_found_at_once():
    wrong = {"word": 1, "many": -1, "flag": 0, "texts": "x", "other": 1}
    assert [field for field, _ in errors(wrong)] == [
        "at.firstField",
        "at.word",
        "at.many",
        "at.flag",
        "at.texts",
        "at.other",
    ]


def test_nulls_are_absent_fields_and_open_types_take_others():
    assert errors(GOOD | {"many": None, "word": None}) == []
    assert errors({"firstField": None, "other": 1}, declared(Open, {})) == []


def test_a_type_that_does_not_say_enough_needs_a_rule():
    with pytest.raises(KeyError):
        declared(Closed, {})
