"""Which anti-affinity keeps out everybody, however it is spelt, by the model and by the slow reference."""

from typing import Any

import pytest

from service.model.pods.exclusive_terms import exclusive_keys
from tests.builders import matching, node, pod, where
from tests.engine import objects
from tests.reference import opportunity

NODES = (node("n1").label(host="n1").allocatable(cpu="4"),)
ANYBODY = [
    {},
    {"matchLabels": {}, "matchExpressions": []},
    where("nobody-has", "DoesNotExist"),
    where("nobody-has", "NotIn", "this"),
    {"matchExpressions": where("a", "DoesNotExist")["matchExpressions"] * 2},
]
SOMEBODY = [
    None,
    matching(app="web"),
    where("app", "Exists"),
    where("app", "In", "web"),
    {**matching(app="web"), **where("nobody-has", "DoesNotExist")},
]


def is_exclusive(*terms: dict[str, Any]) -> bool:
    """As both say, after checking that they agree."""
    made = pod("p")
    for each in terms:
        made = made.require_anti_affinity("host", each["labelSelector"], **without(each))
    keys = exclusive_keys(objects.pod(made).spec, empty_list_means_all=False)
    assert bool(keys) == bool(opportunity.cost({}, NODES, made))
    return bool(keys)


def without(term: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in term.items() if name != "labelSelector"}


def against(labels: Any, namespaces: Any) -> dict[str, Any]:
    return {"labelSelector": labels, "namespaceSelector": namespaces}


@pytest.mark.parametrize("labels", ANYBODY)
@pytest.mark.parametrize("namespaces", ANYBODY)
def test_a_term_that_pods_without_labels_meet_keeps_everybody_out(labels, namespaces) -> None:
    """K08: what it costs others does not depend on how it is spelt."""
    assert is_exclusive(against(labels, namespaces))
    assert is_exclusive(against(matching(app="web"), {}), against(labels, namespaces))


@pytest.mark.parametrize("narrow", SOMEBODY)
@pytest.mark.parametrize("wide", ANYBODY)
def test_a_term_that_only_pods_with_labels_meet_does_not(narrow, wide) -> None:
    assert not is_exclusive(against(narrow, wide))
    assert not is_exclusive(against(wide, narrow))
