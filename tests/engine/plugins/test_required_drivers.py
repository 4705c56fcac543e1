"""From Kubernetes 1.37 on, a CSI driver can ask that pods with its volumes get nodes where it runs."""

from typing import Any

import pytest

from service.engine import explain
from service.engine.framework.events import object_events
from service.engine.plugins.node_volume_limits import NodeVolumeLimits
from tests.builders import ObjectBuilder, claim, node, pod, storage_class, volume
from tests.engine import objects
from tests.engine.plugins.storage import csi_node, driver
from tests.engine.scene import Scene
from tests.reference import evaluate

DRIVER, EBS = "csi.example.com", "ebs.csi.aws.com"
REQUIRED = {"preventPodSchedulingIfMissing": True}
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def missing(name: str) -> dict[str, list[str]]:
    return {"NodeVolumeLimits": [f"{name} CSI driver is not installed on the node"]}


def refused(
    kept: list[ObjectBuilder], version: str = "1.37", **source: Any
) -> dict[str, dict[str, list[str]]]:
    """The reasons of each refused node for a pod with a volume, the claim `data` by default.

    On n1 both drivers run, on n2 the other one, n3 has none, and n4 no CSINode. Engine and
    reference agree, and no refusal is final.
    """
    nodes = [node(name) for name in ("n1", "n2", "n3", "n4")]
    csi_nodes = [csi_node("n1", DRIVER, EBS), csi_node("n2", "other"), csi_node("n3")]
    asking = pod("db")
    asking["spec"]["volumes"] = [
        {"name": "data", **(source or {"persistentVolumeClaim": {"claimName": "data"}})}
    ]
    settings = {"kubernetes": version}
    cluster = objects.cluster(settings, [], nodes, [], [*csi_nodes, *kept])
    answer = explain(cluster, objects.pod(asking, incoming=True))
    expected = evaluate(settings, [], nodes, [], asking, [*csi_nodes, *kept])
    assert answer.filters == expected["filters"]
    assert answer.unresolvable == {}
    by_node = answer.filters.get("NodeVolumeLimits", {})
    return {name: {"NodeVolumeLimits": reasons} for name, reasons in by_node.items()}


def bound(**source: Any) -> list[ObjectBuilder]:
    data = claim("data", volumeName="disk")
    data["metadata"]["annotations"] = BOUND
    return [data, volume("disk", **source)]


OWN = bound(csi={"driver": DRIVER, "volumeHandle": "h"})
MADE = [storage_class("fast", DRIVER), claim("data", storageClassName="fast")]


@pytest.mark.parametrize("kept", [OWN, MADE], ids=["bound", "made"])
def test_nodes_without_the_driver_are_refused(kept):
    given = refused([*kept, driver(DRIVER, **REQUIRED)])
    assert given == dict.fromkeys(("n2", "n3", "n4"), missing(DRIVER))


@pytest.mark.parametrize("version", ["1.35", "1.36"])
def test_older_versions_do_not_ask_for_drivers(version):
    assert refused([*OWN, driver(DRIVER, **REQUIRED)], version) == {}


@pytest.mark.parametrize(
    "kept", [[], [driver(DRIVER)], [driver(DRIVER, preventPodSchedulingIfMissing=False)]]
)
def test_a_driver_that_does_not_ask_for_it_is_needed_nowhere(kept):
    assert refused([*OWN, *kept]) == {}


@pytest.mark.parametrize(
    ("kept", "source"),
    [
        ([], {"awsElasticBlockStore": {"volumeID": "v"}}),
        (bound(awsElasticBlockStore={"volumeID": "v"}), {}),
        (
            [
                storage_class("old", "kubernetes.io/aws-ebs"),
                claim("data", storageClassName="old"),
            ],
            {},
        ),
    ],
    ids=["of the pod", "bound", "made"],
)
def test_disks_of_a_plugin_that_a_driver_replaces_need_it_where_there_is_a_csi_node(kept, source):
    given = refused([*kept, driver(EBS, **REQUIRED)], **source)
    assert given == dict.fromkeys(("n2", "n3"), missing(EBS))


def test_the_first_missing_driver_by_name_is_named():
    asking = pod("db").claim("data").claim("logs")
    logs = claim("logs", storageClassName="other")
    scene = Scene(
        *(node("n1"), storage_class("other", "a.example.com"), *MADE, logs),
        *(driver(name, **REQUIRED) for name in (DRIVER, "a.example.com")),
        kubernetes="1.37",
    )
    assert scene.reasons(asking, "n1") == missing("a.example.com")


def test_a_driver_that_comes_or_goes_is_noticed():
    asking = pod("db").claim("data")
    scene = Scene(node("n1"), *OWN, driver(DRIVER, **REQUIRED), kubernetes="1.37")
    assert scene.feasible(asking) == []
    scene.put(csi_node("n1", DRIVER))
    assert scene.feasible(asking) == ["n1"]
    scene.put(csi_node("n1", "other"))
    assert scene.feasible(asking) == []
    scene.put(driver(DRIVER))
    assert scene.feasible(asking) == ["n1"]


def test_a_node_that_comes_after_its_csi_node_has_the_driver():
    asking = pod("db").claim("data")
    scene = Scene(*OWN, driver(DRIVER, **REQUIRED), csi_node("n1", DRIVER), kubernetes="1.37")
    assert scene.feasible(asking) == []
    scene.put(node("n1"), node("n2"))
    assert scene.feasible(asking) == ["n1"]
    scene.engine.delete_object("CSINode", "", "n1")
    assert scene.feasible(asking) == []


def test_csi_nodes_and_drivers_wake_pods_that_miss_a_driver():
    asking = objects.pod(pod("db").claim("data"))
    reasons = missing(DRIVER)["NodeVolumeLimits"]

    def wakes(kept: ObjectBuilder, reasons: list[str]) -> bool:
        events = object_events(None, objects.kept(kept))
        return any(
            event.change in NodeVolumeLimits.events
            and NodeVolumeLimits.helps(event, asking, reasons)
            for event in events
        )

    assert wakes(csi_node("n1", DRIVER), reasons)
    assert wakes(driver(DRIVER), reasons)
    assert not wakes(driver(DRIVER), ["node(s) exceed max volume count"])
