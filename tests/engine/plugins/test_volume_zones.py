"""Labels of volumes that say in which zones and regions they can be used."""

import pytest

from tests.builders import claim, node, pod, storage_class, volume
from tests.engine.scene import Scene
from tests.reference.volumes import zone_matches

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
PLACES = {"n1": {ZONE: "a", REGION: "r"}, "n2": {ZONE: "b", REGION: "s"}}
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


@pytest.mark.parametrize(
    ("labels", "feasible"),
    [
        ({ZONE: "a"}, ["n1"]),
        ({ZONE: "a__b"}, ["n1", "n2"]),
        ({ZONE: ""}, ["n1", "n2"]),
        ({ZONE: "a____c"}, ["n1", "n2"]),
        ({ZONE: "a____c", REGION: "s"}, ["n2"]),
    ],
)
def test_a_label_with_an_empty_part_is_ignored_as_in_kubernetes(
    labels: dict[str, str], feasible: list[str]
) -> None:
    data = claim("data", volumeName="disk")
    data["metadata"]["annotations"] = BOUND
    nodes = [node(name).label(place) for name, place in PLACES.items()]
    scene = Scene(*nodes, storage_class(), volume("disk").label(labels), data)
    assert scene.feasible(pod("db").claim("data")) == feasible
    assert [name for name, place in PLACES.items() if zone_matches(labels, place)] == feasible
