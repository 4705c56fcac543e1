"""Room is kept for pods on the nodes that are nominated for them, as kube-scheduler keeps it."""

import pytest

from service.engine import (
    GroupPlacement,
    GroupRefusal,
    Placement,
    check,
    digest,
    place,
    place_group,
)
from tests.builders import NodeBuilder, PodBuilder, matching, node, pod
from tests.engine import objects
from tests.engine.scene import Scene


def small(name: str) -> NodeBuilder:
    """A node with room for one pod of one cpu."""
    return node(name).label(host=name).allocatable(cpu="1", memory="8Gi", pods="10")


def asking(name: str, priority: int = 0, cpu: str = "1") -> PodBuilder:
    return pod(name).request(cpu=cpu).priority(priority)


FULL = "0/1 nodes are available: 1 Insufficient cpu."


@pytest.mark.parametrize(("priority", "feasible"), [(4, []), (5, []), (6, ["n1"])])
def test_room_is_kept_from_pods_of_lower_or_equal_priority(
    priority: int, feasible: list[str]
) -> None:
    scene = Scene(small("n1"), asking("waiting", 5).nominated("n1"))
    other = asking("other", priority)
    assert scene.feasible(other) == feasible
    assert scene.explain(other).message == (None if feasible else FULL)
    assert scene.place(other) == (feasible or [None])[0]


@pytest.mark.parametrize(
    "ended",
    [
        asking("waiting", 5).nominated("n1").terminating(),
        asking("waiting", 5).nominated("n1").phase("Failed"),
        asking("waiting", 5).nominated("n2"),
        asking("waiting", 5),
    ],
)
def test_no_room_is_kept_any_more_for_a_pod_that_wants_none_there(ended: PodBuilder) -> None:
    scene = Scene(small("n1"), asking("waiting", 5).nominated("n1"))
    before = digest(scene.engine)
    scene.put(ended)
    assert scene.feasible(asking("other")) == ["n1"]
    assert digest(scene.engine) != before


def test_the_pod_itself_has_the_room_that_is_kept_for_it() -> None:
    waiting = asking("waiting").nominated("n1")
    assert Scene(small("n1"), waiting).place(waiting) == "n1"


def test_the_nominated_node_is_tried_before_better_ones() -> None:
    big = node("n2").allocatable(cpu="100", memory="800Gi", pods="10")
    scene = Scene(small("n1"), big)
    assert scene.place(asking("anywhere")) == "n2"
    assert scene.place(asking("waiting").nominated("n1")) == "n1"
    assert scene.place(asking("late").nominated("n1")) == "n2"


def test_affinity_to_a_pod_that_is_only_nominated_does_not_hold_yet() -> None:
    waiting = asking("waiting", 5, cpu="0").label(app="db").nominated("n1")
    scene = Scene(small("n1"), waiting)
    assert scene.feasible(asking("web").require_affinity("host", matching(app="db"))) == []


def test_anti_affinity_to_a_pod_that_is_only_nominated_holds_on_its_node_alone() -> None:
    waiting = asking("waiting", 5, cpu="0").label(app="db").nominated("n1")
    zone = {"zone": "a"}
    scene = Scene(small("n1").label(zone), small("n2").label(zone), waiting)
    apart = asking("web").require_anti_affinity("zone", matching(app="db"))
    assert scene.feasible(apart) == ["n2"]
    assert scene.reasons(apart, "n1") == {
        "InterPodAffinity": ["node(s) didn't match pod anti-affinity rules"]
    }


def test_a_group_leaves_the_room_free_too() -> None:
    scene = Scene(small("n1"), small("n2"), small("n3"), asking("waiting", 5).nominated("n2"))
    pods = [objects.pod(asking(f"member-{number}"), incoming=True) for number in range(3)]
    found = place_group(scene.engine, pods[:2])
    assert isinstance(found, GroupPlacement)
    assert {each.node_name for each in found.placements} == {"n1", "n3"}
    assert isinstance(place_group(scene.engine, pods), GroupRefusal)


def test_who_names_the_node_is_told_that_its_room_is_kept() -> None:
    scene = Scene(small("n1"), asking("waiting").nominated("n1"))
    other = objects.pod(asking("other"), incoming=True)
    assert check(scene.engine, other, "n1") == {"NodeResourcesFit": ["Insufficient cpu"]}


def test_questions_beside_nominated_pods_change_nothing() -> None:
    scene = Scene(small("n1"), asking("waiting").nominated("n1"))
    mark, before = scene.engine.mark(), digest(scene.engine)
    other = objects.pod(asking("other"), incoming=True)
    assert not isinstance(place(scene.engine, other), Placement)
    assert (scene.engine.mark(), digest(scene.engine)) == (mark, before)
