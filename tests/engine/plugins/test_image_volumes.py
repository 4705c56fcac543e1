"""Images that are volumes count in ImageLocality from Kubernetes 1.36 on."""

import pytest

from tests.builders import PodBuilder, node, pod
from tests.engine.scene import Scene

MIB = 1024 * 1024


def mounting(*references: str) -> PodBuilder:
    made = pod("p")
    made["spec"]["volumes"] = [
        {"name": f"files-{number}", "image": {"reference": reference}}
        for number, reference in enumerate(references)
    ]
    return made


@pytest.mark.parametrize(
    ("kubernetes", "score"),
    [
        ("1.35", 0),
        ("1.36", 100 * (523 - 23) // (1000 - 23)),
        ("1.37", 100 * (523 - 23) // (2000 - 23)),
    ],
)
def test_an_image_volume_raises_the_sum_and_later_also_the_number(
    kubernetes: str, score: int
) -> None:
    scene = Scene(node("has").image("model:latest", 523 * MIB), kubernetes=kubernetes)
    assert scene.explain(mounting("model")).scores["ImageLocality"] == {"has": score}


def test_a_volume_without_a_reference_is_one_image_that_no_node_holds() -> None:
    scene = Scene(node("has").image("model:1", 523 * MIB), kubernetes="1.37")
    asked = mounting("model:1", "")
    assert scene.explain(asked).scores["ImageLocality"] == {"has": 100 * 500 // (3000 - 23)}


def test_pods_that_differ_only_in_image_volumes_are_told_apart() -> None:
    there = (node("a").image("one:1", 900 * MIB), node("b").image("two:1", 900 * MIB))
    scene = Scene(*there, kubernetes="1.36")
    assert scene.favourites(mounting("one:1"), "ImageLocality") == ["a"]
    assert scene.favourites(mounting("two:1"), "ImageLocality") == ["b"]
