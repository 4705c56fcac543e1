"""Whether requirements can hold together, compared with trying all labels of a small world."""

from itertools import product

from hypothesis import given, settings, strategies as st

from service.model.core.primitives import NodeSelectorRequirement, NodeSelectorTerm
from service.model.core.satisfiability import can_hold, node_terms_can_match
from service.model.core.selectors import node_term_matches, requirement_matches
from tests.seeds import examples

KEYS = ("a", "b")
VALUES = ("x", "y", "1", "2", "3", "4")
BOUNDS = ("0", "1", "2", "3", "4")
ABSENT = None

OUTSIDE = "no-value-that-any-requirement-names"
"""`NotIn` and `Exists` leave room for values that nobody thought of."""


def requirement(key, operator, values):
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


some_values = st.lists(st.sampled_from(VALUES), min_size=1, max_size=3, unique=True).map(tuple)
requirements = st.one_of(
    st.builds(requirement, st.sampled_from(KEYS), st.sampled_from(["In", "NotIn"]), some_values),
    st.builds(
        requirement, st.sampled_from(KEYS), st.sampled_from(["Exists", "DoesNotExist"]), st.none()
    ),
    st.builds(
        requirement,
        st.sampled_from(KEYS),
        st.sampled_from(["Gt", "Lt"]),
        st.sampled_from(BOUNDS).map(lambda bound: (bound,)),
    ),
)
several = st.lists(requirements, min_size=1, max_size=5)

NUMBERS = (*map(str, range(-1, 7)), "0001", "0002", "0003")
"""Also other ways to write numbers, which `NotIn` does not exclude."""
WORLD = [
    {key: value for key, value in zip(KEYS, chosen, strict=True) if value is not ABSENT}
    for chosen in product((ABSENT, OUTSIDE, *dict.fromkeys((*VALUES, *NUMBERS))), repeat=len(KEYS))
]


@settings(max_examples=examples(60), deadline=None)
@given(several)
def test_requirements_can_hold_if_some_labels_satisfy_them(wanted):
    tried = any(all(requirement_matches(r, labels) for r in wanted) for labels in WORLD)
    assert can_hold(wanted) == tried


@settings(max_examples=examples(40), deadline=None)
@given(several, several)
def test_terms_can_match_if_some_node_satisfies_all_of_them(first, second):
    terms = [NodeSelectorTerm(match_expressions=tuple(each)) for each in (first, second)]
    tried = any(all(node_term_matches(term, "n", labels) for term in terms) for labels in WORLD)
    assert node_terms_can_match(terms, []) == tried


def test_a_value_that_is_no_label_value_makes_its_term_match_nothing():
    term = NodeSelectorTerm(match_expressions=(requirement("a", "NotIn", ("not a value",)),))
    assert not node_terms_can_match([term], [])


def test_a_node_has_one_name():
    named = [
        NodeSelectorTerm(match_fields=(requirement("metadata.name", "In", (name,)),))
        for name in ("node-1", "node-2")
    ]
    assert node_terms_can_match(named[:1], [])
    assert not node_terms_can_match(named, [])
