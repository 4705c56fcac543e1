"""Disruption budgets: which are valid, and how many pods they have stay."""

from typing import Any

import pytest

from service.model.core.errors import InvalidManifest
from service.model.registry.manifests import parse_declared
from service.model.workloads.disruption_budget import PodDisruptionBudgetSpec, need_of
from tests.kept_kinds import kept


@pytest.mark.parametrize(
    ("fields", "desired", "expected"),
    [
        ({"min_available": 2}, 2, 7),
        ({"min_available": "50%"}, 3, 5),
        ({"min_available": "100%"}, 5, 5),
        ({"min_available": "0" * 5000 + "50%"}, 3, 5),
        ({"min_available": "000%"}, 0, 5),
        ({"max_unavailable": 1}, 4, 5),
        ({"max_unavailable": 9}, 0, 5),
        ({"max_unavailable": "30%"}, 3, 5),
        ({"max_unavailable": 0}, 5, 5),
        ({}, 0, 0),
    ],
)
def test_so_many_pods_have_to_stay(fields: dict[str, Any], desired: int, expected: int) -> None:
    spec = PodDisruptionBudgetSpec(**fields)
    assert need_of(spec, matching=7, wanted=5) == (desired, expected)


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        ({"minAvailable": 1, "maxUnavailable": 1}, ["spec.maxUnavailable"]),
        ({"minAvailable": -1}, ["spec.minAvailable"]),
        ({"minAvailable": "half"}, ["spec.minAvailable"]),
        ({"maxUnavailable": "101%"}, ["spec.maxUnavailable"]),
        ({"minAvailable": "9" * 5000 + "%"}, ["spec.minAvailable"]),
        ({"maxUnavailable": True}, ["spec.maxUnavailable"]),
        ({"selector": {"app": "web"}}, ["spec.selector.app"]),
    ],
)
def test_a_wrong_budget_is_refused_with_its_field(spec: dict[str, Any], wrong: list[str]) -> None:
    with pytest.raises(InvalidManifest) as raised:
        parse_declared("PodDisruptionBudget", kept("PodDisruptionBudget") | {"spec": spec})
    assert [each.field for each in raised.value.errors] == wrong


@pytest.mark.parametrize("amount", ["0%", "100%", "0100%", "0" * 5000 + "5%"])
def test_a_percentage_up_to_the_whole_is_valid_however_it_is_written(amount: str) -> None:
    parse_declared(
        "PodDisruptionBudget", kept("PodDisruptionBudget") | {"spec": {"minAvailable": amount}}
    )


@pytest.mark.parametrize("time", [5, True, {}])
def test_pods_that_are_disrupted_already_have_times(time: Any) -> None:
    status = {"disruptedPods": {"web-0": time}}
    with pytest.raises(InvalidManifest) as raised:
        parse_declared("PodDisruptionBudget", kept("PodDisruptionBudget") | {"status": status})
    assert [each.field for each in raised.value.errors] == ["status.disruptedPods[web-0]"]


@pytest.mark.parametrize("time", ["2026-01-01T00:00:00Z", None])
def test_the_time_of_a_disruption_may_be_null_as_in_kubernetes(time: str | None) -> None:
    status = {"disruptedPods": {"web-0": time}}
    parse_declared("PodDisruptionBudget", kept("PodDisruptionBudget") | {"status": status})
