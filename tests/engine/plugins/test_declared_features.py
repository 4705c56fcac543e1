"""Pods need features that their nodes declare, from Kubernetes 1.36 on."""

from typing import Any

import pytest
from msgspec.structs import replace

from service.engine import NoPreemption, Placement, place, preempt
from service.engine.rules.culprits import culprits
from service.engine.rules.node_templates import node_addition
from service.engine.rules.obstacles import ObstacleMap
from service.model.plans.repair_changes import AddNodes, DropRule
from tests.builders import NodeBuilder, PodBuilder, node, pod
from tests.engine import objects
from tests.engine.scene import Scene

REASON = "node(s) didn't match Pod's required features"
RESTART = "RestartAllContainersOnContainerExits"
USERS = "UserNamespacesHostNetworkSupport"
MOUNT = "VolumeBindMountOptions"
RESTARTING = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}


def declaring(name: str, *features: str) -> NodeBuilder:
    made = node(name)
    made["status"]["declaredFeatures"] = list(features)
    return made


def needing(feature: str) -> PodBuilder:
    made = pod("p")
    spec = made["spec"]
    (main,) = spec["containers"]
    match feature:
        case "RestartAllContainersOnContainerExits":
            main["restartPolicyRules"] = [{"action": "Restart"}, RESTARTING]
        case "UserNamespacesHostNetworkSupport":
            spec |= {"hostNetwork": True, "hostUsers": False}
        case "VolumeBindMountOptions":
            init = {
                "name": "i",
                "volumeMounts": [{"name": "w"}, {"name": "v", "bindMountOptions": ["noexec"]}],
            }
            spec["initContainers"] = [init]
    return made


@pytest.mark.parametrize(
    ("kubernetes", "feature", "matters"),
    [
        ("1.35", RESTART, False),
        ("1.35", USERS, False),
        ("1.36", RESTART, True),
        ("1.36", USERS, True),
        ("1.36", MOUNT, False),
        ("1.37", RESTART, True),
        ("1.37", USERS, True),
        ("1.37", MOUNT, True),
    ],
)
def test_a_node_has_to_declare_what_the_version_infers(
    kubernetes: str, feature: str, *, matters: bool
) -> None:
    there = (declaring("bare"), declaring("full", RESTART, USERS, MOUNT))
    scene = Scene(*there, kubernetes=kubernetes)
    answer = scene.explain(needing(feature))
    assert answer.feasible == (["full"] if matters else ["bare", "full"])
    wanted = {"NodeDeclaredFeatures": {"bare": [REASON]}} if matters else {}
    assert answer.filters == wanted
    assert answer.unresolvable == ({"NodeDeclaredFeatures": ["bare"]} if matters else {})


@pytest.mark.parametrize(
    "plain",
    [
        {"hostNetwork": True},
        {"hostUsers": False},
        {"hostNetwork": True, "hostUsers": True},
        {"containers": [{"name": "main", "restartPolicyRules": [{"action": "Restart"}]}]},
        {"containers": [{"name": "main", "volumeMounts": [{"name": "v", "bindMountOptions": []}]}]},
    ],
)
def test_other_values_of_these_fields_need_nothing(plain: dict[str, Any]) -> None:
    asked = pod("p")
    asked["spec"] |= plain
    assert Scene(node("bare"), kubernetes="1.37").feasible(asked) == ["bare"]


def test_nobody_is_evicted_for_a_feature() -> None:
    scene = Scene(declaring("bare"), kubernetes="1.36")
    scene.put(pod("low").request(cpu="4").on("bare"))
    asked = objects.pod(needing(RESTART).request(cpu="4").priority(9), incoming=True)
    answer = preempt(scene.engine, asked, [])
    assert isinstance(answer, NoPreemption)
    assert scene.explain(needing(RESTART)).message == f"0/1 nodes are available: 1 {REASON}."


def test_a_culprit_is_the_field_that_asks_for_a_feature() -> None:
    scene = Scene(declaring("bare", USERS), kubernetes="1.37")
    asked = needing(RESTART)
    asked["spec"] |= needing(MOUNT)["spec"] | {"containers": asked["spec"]["containers"]}
    asked["spec"] |= {"hostNetwork": True, "hostUsers": False}
    told = culprits(scene.engine, objects.pod(asked, incoming=True), "bare")
    assert [each.rule for each in told] == [
        "spec.containers[0].restartPolicyRules[1]",
        "spec.initContainers[0].volumeMounts[1].bindMountOptions",
    ]


def test_a_repair_drops_the_field_or_adds_a_node_that_declares_the_feature() -> None:
    scene = Scene(declaring("bare"), kubernetes="1.36")
    asked = objects.pod(needing(RESTART), incoming=True)
    found = ObstacleMap(scene.engine, asked)
    (kind,) = found.kinds(9)
    (obstacle,) = kind.obstacles
    (remedy,) = found.options(obstacle, kind.slot)
    assert remedy.change == DropRule(path="spec.containers[0].restartPolicyRules[1]")
    assert remedy.of_pod is not None
    changed = replace(asked, spec=remedy.of_pod(asked.spec))
    assert isinstance(place(scene.engine, changed), Placement)
    added = node_addition(objects.node(declaring("full", RESTART)), "added")
    assert isinstance(added.change, AddNodes)
    assert added.change.template["status"]["declaredFeatures"] == (RESTART,)
    assert added.added is not None
    assert added.added.declared_features == (RESTART,)


def test_a_node_that_declares_other_features_is_decided_anew() -> None:
    scene = Scene(declaring("n"), kubernetes="1.36")
    asked = needing(RESTART)
    assert scene.feasible(asked) == []
    scene.put(declaring("n", RESTART))
    assert scene.feasible(asked) == ["n"]
    scene.put(declaring("n", MOUNT))
    assert scene.feasible(asked) == []
