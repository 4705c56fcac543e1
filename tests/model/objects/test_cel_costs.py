"""What expressions of CEL can cost, before and after they are evaluated."""

import json

import pytest

from bench.expressions import generated, measured
from service.model.cel.calls import COST_MAX
from service.model.cel.evaluation import (
    ExpressionError,
    TooCostly,
    compiled,
    compiled_by,
    holds_within_budget,
)
from service.model.cel.weights import regex_weight
from service.model.devices.device_selectors import DEVICE, DeviceSelector, library
from tests.paths import ROOT
from tests.seeds import EXPLORING

MILLISECONDS_MAX, MEGABYTES_MAX = 50, 64
EXPRESSIONS = 10_000 if EXPLORING else 300
KUBERNETES = json.loads((ROOT / "tests/model/objects/cel_costs.json").read_text("utf-8"))
"""Expressions with what Kubernetes v1.35 estimates that they cost; None: more than its limit."""


def doubled(times, first, growth, last):
    bindings = "".join(
        f"cel.bind(v{n}, {growth.replace('$', f'v{n - 1}') if n else first}, " for n in range(times)
    )
    return f"{bindings}{last.replace('$', f'v{times - 1}')}{')' * times}"


BOMBS = {
    "text that doubles": doubled(28, '"aaaaaaaa"', "$ + $", '$ == "x"'),
    "list that doubles": doubled(28, "[1]", "$ + $", "$ == []"),
    "lists of lists": doubled(28, "[1, 1]", "[$, $]", "$ == $"),
    "lists of lists as text": doubled(26, "[1, 1]", "[$, $]", '"%s".format([$]) == "x"'),
    "maps of maps": doubled(28, '{"a": 1}', '{"a": $, "b": $}', "$ == $"),
    "text in text": doubled(28, '"a"', '"%s%s".format([$, $])', '$ == "x"'),
    "replaced by itself": doubled(6, f'"{"a" * 100}"', '$.replace("a", $)', '$ == "x"'),
    "empty text replaced": doubled(6, f'"{"a" * 100}"', '$.replace("", $)', '$ == "x"'),
    "often replaced": f"""cel.bind(s, "{"a" * 1300}".replace("a", "{"a" * 1000}"),
        [{", ".join(['s.replace("a", "b").size()'] * 100)}] == [])""",
    "joined": doubled(20, '["a", "b"]', '[$.join("cc"), $.join("cc")]', "$ == []"),
    "loops in loops": "cel.bind(l, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1], "
    + "".join(f"l.all({name}, " for name in "abcdef")
    + "true"
    + ")" * 7,
    "list in a list": "cel.bind(l, [{0}].map(x, [{0}]), l == l)".format(", ".join(["1"] * 1000)),
    "classes of Unicode": "'a'.matches('{}')".format(r"\\pL" * 500),
    "far too many parts": f"optional.of([{', '.join(['1'] * 1000)}])"
    + ".optMap(x, x)" * 5
    + ".hasValue()",
    "pattern that is made": """'a'.matches(device.driver + device.driver)""",
    "pattern in a loop": "[{}].all(x, 'a'.matches('(((a{{30}}){{30}}){{30}})'))".format(
        ", ".join(["1"] * 300)
    ),
}
USUAL = [
    'device.driver == "gpu.example.com"',
    'device.attributes["gpu.example.com"].model == "h100"',
    'device.attributes["gpu.example.com"].model.lowerAscii().matches("^[a-z]{1,16}[0-9]+$")',
    'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0',
    'cel.bind(d, device.attributes["gpu.example.com"], d.family == "a" && d.index > 3)',
    'device.attributes["a"].exists(name, name.startsWith("x")) && device.driver in ["a", "b"]',
    'semver("1.2.3").isLessThan(device.attributes["gpu.example.com"].version)',
    'device.attributes.all(d, device.attributes[d].all(k, k != "bad"))',
]


@pytest.mark.parametrize("kind", BOMBS)
def test_what_grows_without_bound_is_refused_and_not_evaluated(kind):
    with pytest.raises(TooCostly):
        DeviceSelector(BOMBS[kind])


@pytest.mark.parametrize("macro", ["optMap(x, x)", " optFlatMap (x, optional.of(x))"])
def test_what_takes_long_to_compile_is_refused_and_not_compiled(macro):
    with pytest.raises(TooCostly):
        DeviceSelector(f"optional.of(1){f'.{macro}' * 28}.hasValue()")
    DeviceSelector(f"optional.of(1){f'.{macro}' * 5}.hasValue()")


@pytest.mark.parametrize("text", USUAL)
def test_what_is_usual_is_far_from_the_limit(text):
    estimated = compiled_by(library(), text).costs({"device": DEVICE})
    assert estimated.cost < COST_MAX / 50
    assert estimated.weight < 3_000_000


def test_costs_are_those_that_kubernetes_estimates():
    """The numbers are those of `k8s.io/dynamic-resource-allocation/cel`, v1.35."""
    for text, expected in KUBERNETES:
        cost = compiled_by(library(), text).costs({"device": DEVICE}).cost
        assert cost == expected if expected is not None else cost > COST_MAX, text


def test_generated_expressions_keep_within_time_and_memory():
    found = [measured(kind, text, unbounded=False) for kind, text in generated(EXPRESSIONS)]
    over = [
        each
        for each in found
        if each.milliseconds > MILLISECONDS_MAX or each.megabytes > MEGABYTES_MAX
    ]
    assert not over
    assert {each.outcome for each in found} >= {"refused", "true", "false"}


def test_what_is_no_function_that_is_known_is_not_asked():
    with pytest.raises(ExpressionError):
        DeviceSelector("device.explode()")


def test_a_policy_costs_what_its_object_makes_it_cost():
    expression = "object.a.all(x, object.a.all(y, object.a.all(z, x + y != z)))"
    compiled(expression)
    assert holds_within_budget([expression], {"object": {"a": ["x"] * 4}}) is None
    large = {"object": {"a": ["x"] * 300}}
    assert holds_within_budget([expression], large) == (0, str(TooCostly()))


def test_all_policies_together_have_a_budget():
    expression = f"!object.text.matches('{'a' * 1500}')"
    variables = {"object": {"text": "b" * 16_384}}
    assert holds_within_budget([expression] * 10, variables) is None
    assert holds_within_budget([expression] * 32, variables) == (16, str(TooCostly()))


def test_repetitions_in_patterns_are_counted():
    assert regex_weight("a{100}") > 50 * regex_weight("aaaaaa")
    assert regex_weight("(a{30}){30}") > 20 * regex_weight("(a{30})")
