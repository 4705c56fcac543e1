"""Preemption for pods with volumes: on which nodes pods have to be removed in thought to know more."""

from typing import Any
from unittest.mock import patch

import pytest

from service.engine import Preemption, preempt
from service.engine.framework.volume_plugin import VolumePlugin
from service.engine.plugins import PLUGINS
from service.engine.plugins.volume_binding import VolumeBinding
from tests.builders import (
    HOST,
    NodeBuilder,
    ObjectBuilder,
    PodBuilder,
    claim,
    node,
    pod,
    storage_class,
    volume,
)
from tests.engine import objects
from tests.engine.scene import Scene

DRIVER = "csi.example.com"
NODES = ("n1", "n2", "n3")


def small(name: str) -> NodeBuilder:
    return node(name).label({HOST: name}).allocatable(cpu="2", memory="8Gi", pods="10")


def bound(name: str, **spec: Any) -> list[ObjectBuilder]:
    """A claim with its volume, which the driver can use on every node."""
    made = claim(name, volumeName=f"pv-{name}", **spec)
    made["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    handle = {"driver": DRIVER, "volumeHandle": name}
    return [made, volume(f"pv-{name}", csi=handle)]


def limited(name: str, count: int) -> ObjectBuilder:
    drivers = [{"name": DRIVER, "nodeID": name, "allocatable": {"count": count}}]
    return ObjectBuilder(
        apiVersion="storage.k8s.io/v1",
        kind="CSINode",
        metadata={"name": name},
        spec={"drivers": drivers},
    )


def with_disk(each: PodBuilder) -> PodBuilder:
    each["spec"]["volumes"] = [{"name": "disk", "gcePersistentDisk": {"pdName": "disk"}}]
    return each


def world(*things: Any) -> Scene:
    """Three nodes that are full of pods of low priority, and claims for any and for only one pod."""
    fill = [pod(f"fill-{name}-{k}").request(cpu="1").on(name) for name in NODES for k in (1, 2)]
    alone = bound("alone", accessModes=["ReadWriteOncePod"])
    shared = [each for name in ("any", "other") for each in bound(name)]
    return Scene(*map(small, NODES), *fill, storage_class(), *alone, *shared, *things)


def urgent(*claims: str) -> PodBuilder:
    made = pod("urgent").request(cpu="1").priority(9)
    for each in claims:
        made = made.claim(each)
    return made


def unsettled(scene: Scene, incoming: PodBuilder) -> set[str]:
    """The nodes on which some filter of volumes has to be asked again when pods have left."""
    found, pod_class = set(), scene.engine.class_of(objects.pod(incoming, incoming=True))
    nodes = scene.engine.nodes
    for plugin in (each() for each in PLUGINS if issubclass(each, VolumePlugin)):
        told = plugin.headrooms(nodes, pod_class)
        assert told is not None
        if told.unsure is not None:
            found |= {name for name in NODES if told.unsure[nodes.slots[name]]}
    return found


@pytest.mark.parametrize(
    ("things", "incoming", "expected"),
    [
        ([pod("a").claim("any").on("n1")], urgent("any"), set()),
        ([], urgent("alone"), set()),
        ([pod("a").claim("alone").on("n1")], urgent("alone"), {"n1"}),
        ([with_disk(pod("a").on("n2"))], urgent("any"), set()),
        ([with_disk(pod("a").on("n2"))], with_disk(urgent()), {"n2"}),
        ([limited("n1", 1), limited("n2", 0)], urgent("any"), {"n2"}),
        ([limited("n1", 1), pod("a").claim("other").on("n1")], urgent("any"), {"n1"}),
        ([limited("n1", 5), pod("a").claim("other").on("n1")], urgent("any"), set()),
        ([limited("n1", 5), pod("a").claim("any").on("n1")], urgent("any"), {"n1"}),
    ],
)
def test_only_where_pods_that_leave_matter_to_volumes_is_a_node_tried_by_itself(
    things: list[Any], incoming: PodBuilder, expected: set[str]
) -> None:
    assert unsettled(world(*things), incoming) == expected


@pytest.mark.parametrize(
    ("things", "incoming", "expected"),
    [
        ([], urgent("any"), {name: [f"fill-{name}-2"] for name in NODES}),
        (
            [pod("a").claim("alone").on("n1")],
            urgent("alone"),
            {"n1": ["a", "fill-n1-2"]},
        ),
        (
            [with_disk(pod("a").on("n2"))],
            with_disk(urgent()),
            {"n1": ["fill-n1-2"], "n2": ["a", "fill-n2-2"], "n3": ["fill-n3-2"]},
        ),
        (
            [limited("n1", 1), limited("n2", 0), pod("a").claim("other").on("n1")],
            urgent("any"),
            {"n1": ["a", "fill-n1-2"], "n3": ["fill-n3-2"]},
        ),
    ],
)
@pytest.mark.parametrize("depth", [1, 128])
def test_the_victims_are_those_without_whom_the_volumes_can_be_used(
    things: list[Any], incoming: PodBuilder, expected: dict[str, list[str]], depth: int
) -> None:
    scene = world(*things)
    with patch("service.engine.state.pods.importance.DEPTH_MAX", depth):
        found = preempt(scene.engine, objects.pod(incoming, incoming=True), all_candidates=True)
    assert isinstance(found, Preemption)
    assert found.candidates is not None
    told = {name: sorted(p.name for p in each.pods) for name, each in found.candidates.items()}
    assert told == expected


@pytest.mark.interpreted
def test_a_filter_whose_verdict_lasts_is_asked_as_often_however_many_nodes_are_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []
    for name in ("vetoes_of", "failures_of"):
        real = getattr(VolumeBinding, name)

        def counting(self: Any, *given: Any, real: Any = real) -> Any:
            asked.append(given)
            return real(self, *given)

        monkeypatch.setattr(VolumeBinding, name, counting)
    monkeypatch.setattr("service.engine.state.pods.importance.DEPTH_MAX", 1)
    scene, counts = world(), []
    for names in ((), ("n4", "n5", "n6")):
        for each in names:
            scene.put(small(each), *(pod(f"{each}-{k}").request(cpu="1").on(each) for k in (1, 2)))
        asked.clear()
        assert isinstance(preempt(scene.engine, objects.pod(urgent("any"))), Preemption)
        counts.append(len(asked))
    assert counts[0] == counts[1]
