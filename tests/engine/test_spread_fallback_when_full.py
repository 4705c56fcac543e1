"""Constraints that are hard only while there is room, against the reference."""

import pytest
from hypothesis import given, settings, strategies as st

from service.engine import Placement, check, explain, place, summarize
from tests.builders import matching, node, pod
from tests.engine import objects
from tests.reference import evaluate
from tests.seeds import examples

WHEN = ("FallbackWhenFull", "FallbackWhenFull", "DoNotSchedule", "ScheduleAnyway")
ZONES = [
    node(f"n{index}").label(zone=f"z{index % 3}", host=f"n{index}").allocatable(pods="3")
    for index in range(4)
]
WEB = matching(app="web")


@st.composite
def nodes(draw):
    """Four nodes in three zones, of which some take no more pods, or lack a label."""
    made = []
    for each in ZONES:
        one = each.allocatable(pods=str(draw(st.integers(0, 3))))
        made.append(one if draw(st.integers(0, 5)) else one.label(zone="z9"))
    return made


@st.composite
def incoming(draw):
    made = pod("new").label(app=draw(st.sampled_from(("web", "web", "db"))))
    for key in draw(st.permutations(("zone", "host", "missing")))[: draw(st.integers(1, 2))]:
        made = made.spread(
            draw(st.integers(1, 2)), key, WEB, whenUnsatisfiable=draw(st.sampled_from(WHEN))
        )
    if draw(st.booleans()):
        made = made.require_anti_affinity("host", WEB)
    return made


placed = st.lists(st.sampled_from(("n0", "n1", "n2", "n3")), max_size=7)


@settings(max_examples=examples(150), deadline=None)
@given(nodes(), placed, incoming())
def test_explanations_and_placements_agree_with_the_reference(nodes, placed, incoming):
    pods = [pod(f"p{index}").label(app="web").on(name) for index, name in enumerate(placed)]
    cluster = objects.cluster({}, [], nodes, pods)
    asked = objects.pod(incoming, incoming=True)
    expected = evaluate({}, [], nodes, pods, incoming)
    told = explain(cluster, asked)
    assert (told.filters, told.feasible, told.total) == (
        expected["filters"],
        expected["feasible"],
        expected["total"],
    )
    found = place(cluster, asked)
    assert (found.node_name in told.best) if isinstance(found, Placement) else not told.best
    assert summarize(cluster, asked).feasible_count == len(told.feasible)
    fitting = [each for each in ("n0", "n1", "n2", "n3") if not check(cluster, asked, each)]
    assert fitting == told.feasible


def falling_back(*keys):
    made = pod("new").label(app="web")
    for key in keys:
        made = made.spread(1, key, whenUnsatisfiable="FallbackWhenFull")
    return objects.pod(made, incoming=True)


@pytest.mark.parametrize(("keys", "chosen"), [(("zone", "host"), "c"), (("host", "zone"), "a")])
def test_of_two_constraints_that_cannot_both_hold_the_first_one_does(keys, chosen):
    """Zone z1 has fewer pods, but its only node has more of them than the free node of zone z0."""
    nodes = [node(name).label(zone=zone, host=name) for name, zone in (("a", "z0"), ("c", "z1"))]
    full = node("b").label(zone="z0", host="b").allocatable(pods="4")
    on = ("a", "b", "b", "b", "b", "c", "c", "c")
    pods = [pod(f"p{index}").label(app="web").on(name) for index, name in enumerate(on)]
    cluster = objects.cluster({}, [], [*nodes, full], pods)
    told = explain(cluster, falling_back(*keys))
    assert told.feasible == [chosen]
    [yielded] = told.exemptions
    assert (yielded.rule, yielded.topology_key) == ("spec.topologySpreadConstraints[1]", keys[1])
    assert (yielded.owner_namespace, yielded.pods, yielded.nodes) == (None, 8, 2)
