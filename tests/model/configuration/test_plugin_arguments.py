"""Arguments of plugins are held to what the plugins declare."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec
import pytest

from service.model.cluster.plugin_rules import Arguments, arguments_rule
from service.model.core.validators import Problems, Rule, one_of


class Level(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    at_least: int


class RackPowerArgs(Arguments, frozen=True, kw_only=True):
    """Those of an imagined plugin, with something of each kind."""

    rules: ClassVar[Mapping[str, Rule]] = {"feed": one_of("A", "B")}

    feed: str = "A"
    watts_max: Annotated[int, msgspec.Meta(ge=1)] = 1_000
    levels: tuple[Level, ...] = ()
    watts_min: int = 0

    def __post_init__(self) -> None:
        if self.watts_min > self.watts_max:
            raise ValueError("wattsMin is more than wattsMax")


def wrong(arguments: object) -> dict[str, str]:
    problems = Problems()
    arguments_rule(RackPowerArgs)(arguments, "args", problems)
    return {each.field: each.message for each in problems.errors}


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"apiVersion": "example.com/v1", "kind": "RackPowerArgs"},
        {"feed": "B", "wattsMax": 5, "levels": [{"atLeast": 3}]},
        {"wattsMax": None, "levels": None},
    ],
)
def test_what_the_declaration_allows_is_right(arguments: Any) -> None:
    assert wrong(arguments) == {}


def test_each_wrong_argument_is_named_by_its_field() -> None:
    arguments = {
        "kind": 1,
        "feed": "C",
        "wattsMax": 0,
        "levels": [{"atLeast": 1}, {"atLeast": "high"}, {}],
        "wattsMinimum": 3,
    }
    assert wrong(arguments) == {
        "args.kind": "must be a string",
        "args.feed": "must be one of A, B",
        "args.wattsMax": "must be an integer of at least 1",
        "args.levels[1].atLeast": "must be an integer",
        "args.wattsMinimum": "unknown field; did you mean wattsMin?",
    }


@pytest.mark.parametrize("arguments", [[], 1, "feed"])
def test_arguments_are_an_object(arguments: object) -> None:
    assert wrong(arguments) == {"args": "must be an object"}


def test_what_the_arguments_say_together_is_for_the_plugin_to_refuse() -> None:
    assert wrong({"wattsMax": 1, "wattsMin": 2}) == {"args": "wattsMin is more than wattsMax"}
