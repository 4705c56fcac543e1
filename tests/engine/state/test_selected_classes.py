"""The classes of pods that a selector matches, as disruption budgets ask for them."""

from random import Random
from typing import Any

import msgspec
import pytest

from service.engine import Cluster
from service.engine.state.pods import classes as pod_classes
from service.model.core.primitives import LabelSelector
from service.model.core.selectors import matches
from tests.builders import pod, where
from tests.engine import objects
from tests.seeds import chance, examples

KEYS, VALUES = ("app", "tier"), ("a", "b", "c")


def drawn_selector(dice: Random) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if dice.random() < 0.4:
        made["matchLabels"] = {key: dice.choice(VALUES) for key in KEYS if dice.random() < 0.5}
    for key in KEYS:
        if dice.random() < 0.4:
            operator = dice.choice(("In", "NotIn", "Exists", "DoesNotExist"))
            values = dice.choices(VALUES, k=3) if operator.endswith("In") else []
            each = {"key": key, "operator": operator, "values": values}
            made.setdefault("matchExpressions", []).append(each)
    return made


def populated(dice: Random) -> Cluster:
    cluster = Cluster()
    for number in range(30):
        made = pod(f"p{number}", namespace=dice.choice(("shop", "bank")))
        labels = {key: dice.choice(VALUES) for key in KEYS if dice.random() < 0.7}
        cluster.put_pod(objects.pod(made.label(labels)))
    for number in range(0, 30, 3):
        for namespace in ("shop", "bank"):
            if cluster.pod(namespace, f"p{number}") is not None:
                cluster.delete_pod(namespace, f"p{number}")
    return cluster


@pytest.mark.parametrize("number", range(examples(20)))
def test_a_selector_finds_each_class_that_it_matches_once(number: int) -> None:
    dice = chance(f"selected classes {number}")
    cluster = populated(dice)
    for _ in range(10):
        selector = msgspec.convert(drawn_selector(dice), LabelSelector)
        found = cluster.selected_classes("shop", selector)
        known = [each for each in cluster.known_classes() if each.namespace == "shop"]
        expected = {each for each in known if matches(selector, each.labels)}
        assert len(found) == len(expected)
        assert set(found) == expected


def test_no_selector_finds_nothing() -> None:
    assert populated(chance("no selector")).selected_classes("shop", None) == []


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"app": "p7"}},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": ["p7", "p8"]}]},
    ],
)
def test_a_selector_is_compared_only_with_classes_that_have_a_label_of_it(
    selector: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, compared = Cluster(), []
    for number in range(20):
        cluster.put_pod(objects.pod(pod(f"p{number}").label(app=f"p{number}")))

    def counting(wanted: LabelSelector | None, labels: dict[str, str]) -> bool:
        compared.append(labels)
        return matches(wanted, labels)

    monkeypatch.setattr("service.engine.state.pods.classes.selector_matches", counting)
    found = cluster.selected_classes("default", msgspec.convert(selector, LabelSelector))
    assert len(compared) == len(found) <= 2


@pytest.mark.interpreted
def test_terms_about_one_namespace_are_not_compared_with_classes_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, compared = Cluster(), []
    repelling = pod("repelling")
    for number in range(20):
        repelling = repelling.require_anti_affinity("zone", where(f"k{number}", "NotIn", "no"))
    cluster.put_pod(objects.pod(repelling))

    def counting(*pair: Any) -> bool:
        compared.append(pair)
        return compare(*pair)

    compare = pod_classes.matches
    monkeypatch.setattr(pod_classes, "matches", counting)
    cluster.class_of(objects.pod(pod("other", "elsewhere")))
    assert not compared
    cluster.class_of(objects.pod(pod("other")))
    assert len(compared) == 20
