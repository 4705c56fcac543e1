"""What selectors mean, in Kubernetes' words: nil, empty, absent keys, numbers, merged label keys."""

import msgspec
import pytest
from hypothesis import given, strategies as st

from service.model.core.primitives import LabelSelector, NodeSelectorTerm
from service.model.core.selectors import (
    is_empty,
    matches,
    node_term_matches,
    node_terms_match,
    parse_integer,
)
from service.model.pods.affinity import required_node_affinity_matches, spread_selector
from service.model.pods.pod import PodSpec, TopologySpreadConstraint

LABELS = {"app": "web", "gen": "7"}


def selector(key, operator, *values):
    expression = {"key": key, "operator": operator, "values": list(values)}
    return msgspec.convert({"matchExpressions": [expression]}, LabelSelector)


def node_term(key, operator, *values, field=False):
    requirement = {"key": key, "operator": operator, "values": list(values)}
    name = "matchFields" if field else "matchExpressions"
    return msgspec.convert({name: [requirement]}, NodeSelectorTerm)


def test_a_nil_selector_matches_nothing_and_an_empty_one_everything():
    assert not matches(None, LABELS)
    assert matches(LabelSelector(), LABELS)
    assert matches(LabelSelector(), {})
    assert is_empty(LabelSelector(match_labels={}, match_expressions=()))


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("app", "In", ["web", "db"], True),
        ("app", "In", ["db"], False),
        ("no", "In", ["web"], False),
        ("app", "NotIn", ["web"], False),
        ("app", "NotIn", ["db"], True),
        ("no", "NotIn", ["web"], True),
        ("app", "Exists", [], True),
        ("no", "Exists", [], False),
        ("app", "DoesNotExist", [], False),
        ("no", "DoesNotExist", [], True),
    ],
)
def test_negative_operators_match_where_the_key_is_absent(key, operator, values, expected):
    assert matches(selector(key, operator, *values), LABELS) is expected


def test_labels_and_expressions_must_all_hold():
    both = LabelSelector(
        match_labels={"app": "web"}, match_expressions=selector("gen", "Exists").match_expressions
    )
    assert matches(both, LABELS)
    assert not matches(both, {"app": "web"})
    assert not matches(both, {"app": "db", "gen": "7"})


@pytest.mark.parametrize(
    ("have", "operator", "bound", "expected"),
    [
        ("7", "Gt", "6", True),
        ("7", "Gt", "7", False),
        ("7", "Lt", "8", True),
        ("007", "Lt", "8", True),
        ("2.5", "Lt", "8", False),
        ("", "Lt", "8", False),
        ("abc", "Gt", "0", False),
        ("99999999999999999999", "Gt", "0", False),
        ("7", "Gt", "-4", False),  # not a label value: the scheduler can't read the term
        ("7", "Gt", "99999999999999999999", False),
    ],
)
def test_gt_and_lt_compare_signed_64_bit_integers(have, operator, bound, expected):
    assert node_term_matches(node_term("gen", operator, bound), "n", {"gen": have}) is expected


def test_a_node_without_the_label_is_neither_greater_nor_less():
    assert not node_term_matches(node_term("gen", "Gt", "0"), "n", {})
    assert not node_term_matches(node_term("gen", "Lt", "9"), "n", {})


def test_a_term_with_an_unreadable_requirement_matches_nothing_though_negative():
    assert not node_term_matches(node_term("app", "NotIn", "-x"), "n", LABELS)


@pytest.mark.parametrize("term", [None, NodeSelectorTerm(), NodeSelectorTerm(match_fields=())])
def test_an_empty_node_term_matches_no_node_unless_the_setting_says_all(term):
    assert not node_term_matches(term, "n", LABELS)
    assert node_term_matches(term, "n", LABELS, empty_matches_all=True)


def test_one_of_several_node_terms_is_enough():
    terms = (node_term("app", "In", "other"), None, node_term("app", "Exists"))
    assert node_terms_match(terms, "n", LABELS)
    assert not node_terms_match(terms[:2], "n", LABELS)


def test_match_fields_compare_the_name_of_the_node():
    assert node_term_matches(node_term("metadata.name", "In", "n1", field=True), "n1", {})
    assert not node_term_matches(node_term("metadata.name", "In", "n1", field=True), "n2", {})
    assert node_term_matches(node_term("metadata.name", "NotIn", "n1", field=True), "n2", {})
    assert not node_term_matches(node_term("other", "In", "n1", field=True), "n1", {})


def test_node_selector_and_both_required_affinities_must_all_hold():
    def required(key):
        expression = {"key": key, "operator": "Exists"}
        return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}

    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": required("b"),
        "requiredDuringSchedulingRequiredDuringExecution": required("c"),
    }
    sent = {"nodeSelector": {"a": "1"}, "affinity": {"nodeAffinity": affinity}}
    spec = msgspec.convert(sent, PodSpec)
    assert required_node_affinity_matches(spec, "n", {"a": "1", "b": "", "c": ""})
    for missing in "abc":
        labels = {key: "1" for key in "abc" if key != missing}
        assert not required_node_affinity_matches(spec, "n", labels)
    assert required_node_affinity_matches(PodSpec(), "n", {})


def constraint(label_selector, *keys):
    return TopologySpreadConstraint(
        topology_key="zone", label_selector=label_selector, match_label_keys=keys
    )


def test_match_label_keys_of_a_constraint_are_merged_for_keys_that_the_pod_carries():
    merged = spread_selector(constraint(LabelSelector(), "app", "absent"), LABELS)
    assert merged == selector("app", "In", "web")
    assert not is_empty(merged)


def test_with_a_nil_selector_match_label_keys_are_ignored():
    assert spread_selector(constraint(None, "app"), LABELS) is None


@given(
    labels=st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy")),
    keys=st.lists(st.sampled_from("abcd")),
    base=st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy")),
)
def test_merging_again_changes_nothing(labels, keys, base):
    once = spread_selector(constraint(LabelSelector(match_labels=base), *keys), labels)
    assert spread_selector(constraint(once, *keys), labels) == once


@pytest.mark.parametrize(
    ("text", "number"),
    [("5", 5), ("-5", -5), ("+5", 5), ("007", 7), ("", None), ("5 ", None), ("1_0", None)],
)
def test_integers_are_read_as_go_reads_them(text, number):
    assert parse_integer(text) == number
