"""A pod that names a node leaves only that one to the other filters from Kubernetes 1.37 on."""

import pytest

from service.engine import NoPreemption, preempt
from tests.builders import PodBuilder, node, pod
from tests.engine import objects
from tests.engine.scene import Scene

BEFORE = (
    "0/2 nodes are available: 1 node(s) didn't match the requested node name, "
    "1 node(s) were unschedulable."
)


def affine_to(name: str) -> PodBuilder:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    required = {"nodeSelectorTerms": [term]}
    made = pod("p")
    made["spec"]["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
    }
    return made


@pytest.mark.parametrize(
    ("kubernetes", "message", "narrowed"),
    [
        ("1.35", BEFORE, None),
        ("1.36", BEFORE, None),
        (
            "1.37",
            "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeName].",
            ["elsewhere"],
        ),
    ],
)
def test_nodes_of_other_names_are_refused_before_all_filters(kubernetes, message, narrowed) -> None:
    scene = Scene(node("cordoned").cordon(), node("other"), kubernetes=kubernetes)
    answer = scene.explain(pod("p").on("elsewhere"))
    assert answer.message == message
    assert (answer.prefilter_nodes or None) == narrowed
    assert answer.filters["NodeName"].keys() == {"cordoned", "other"}


def test_the_named_node_itself_is_refused_for_its_own_reasons() -> None:
    scene = Scene(node("named").cordon(), node("other"), kubernetes="1.37")
    assert scene.explain(pod("p").on("named")).message == (
        "0/2 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeName], "
        "1 node(s) were unschedulable."
    )


@pytest.mark.parametrize(
    ("affine", "message"),
    [
        (
            "a",
            "0/2 nodes are available: node(s) didn't satisfy plugin(s) [NodeAffinity NodeName] simultaneously.",
        ),
        (
            "b",
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity NodeName].",
        ),
    ],
)
def test_node_affinity_by_name_narrows_further(affine: str, message: str) -> None:
    scene = Scene(node("a"), node("b"), kubernetes="1.37")
    asked = affine_to(affine).request(cpu="99").on("b")
    assert scene.explain(asked).message == message


def test_room_is_made_on_the_named_node_alone() -> None:
    scene = Scene(node("a").allocatable(cpu="1", pods="9"), kubernetes="1.37")
    scene.put(node("b").allocatable(cpu="1", pods="9"))
    scene.put(*(pod(f"low-{name}").request(cpu="1").on(name) for name in "ab"))
    wanted = pod("p").request(cpu="1").priority(5)
    found = preempt(scene.engine, objects.pod(wanted.on("b"), incoming=True), [])
    assert not isinstance(found, NoPreemption)
    assert found.node_name == "b"
