"""Affinity that is left out for one pod of a controller, over HTTP: row E06 of `docs/requirements.md`."""

from typing import Any

import httpx
import pytest

from tests.api.harness import CLUSTER, Harness, problem
from tests.api.story import Story, path_of, tell
from tests.builders import (
    IGNORED_DURING_EXECUTION,
    REQUIRED_DURING_EXECUTION,
    PodBuilder,
    matching,
    node,
    pod,
)
from tests.waiting import once

RULE = f"spec.affinity.podAffinity.{IGNORED_DURING_EXECUTION}"
ZONES = [node(name).label(zone=zone) for name, zone in (("n1", "a"), ("n2", "b"), ("n3", "b"))]


def cache(name: str, owner: str = "cache", **fields: Any) -> PodBuilder:
    """A pod that is to be where the service is, but for the first one of its owner."""
    made = pod(name).label(app="cache").owned_by("ReplicaSet", owner)
    return made.require_affinity("zone", matching(app="web"), firstPodExempt=True, **fields)


async def broken(story: Story) -> list[tuple[str, str]]:
    answer = await story.harness.client.get(f"{CLUSTER}/violations")
    return [(each["name"], each["rule"]) for each in answer.json()["items"]]


async def test_one_pod_of_a_controller_is_exempt_from_a_rule(harness: Harness) -> None:
    """E06: whether or not it matches the rule itself; the explanation says so, and that it is over."""
    story = await tell(harness, *ZONES)
    (left_out,) = (await story.explain(cache("c-0")))["exemptions"]
    assert left_out == {
        "rule": f"{RULE}[0]",
        "ownerNamespace": None,
        "topologyKey": "zone",
        "reason": "firstPodExempt leaves out the rule until one of the pods that it is for is placed.",
        "pods": 0,
        "nodes": 3,
    }
    chosen = await story.place(*(cache(f"c-{number}") for number in range(3)))
    assert [name is None for name in chosen] == [False, True, True]
    late = await story.explain(cache("late"))
    assert "exemptions" not in late
    assert late["message"] == "0/3 nodes are available: 3 node(s) didn't match pod affinity rules."
    assert await story.place(cache("other", owner="other")) != [None]


async def test_the_rule_that_is_left_out_does_not_count_at_all(harness: Harness) -> None:
    """E06: on nodes without the key, too; the pod's other rules hold, and of other pods' nothing changes."""
    story = await tell(harness, node("bare"), node("n1").label(zone="a"))
    both = cache("c-0").require_affinity("zone", matching(app="web"))
    assert await story.feasible(cache("c-0")) == ["bare", "n1"]
    assert await story.feasible(both) == []
    assert await story.feasible(cache("c-0").require_anti_affinity("zone", matching(app="db"))) == [
        "bare",
        "n1",
    ]
    await story.put(pod("web").label(app="web").on("n1"))
    assert await story.feasible(both) == ["n1"]
    assert await story.feasible(cache("c-0")) == ["bare", "n1"], "it is left out for the first pod"


async def test_without_a_controller_pods_of_the_same_labels_are_meant(harness: Harness) -> None:
    """E06: in one namespace, and only pods that have such a term."""

    def alone(name: str, namespace: str = "default", **labels: str) -> PodBuilder:
        made = pod(name, namespace).label(app="cache", **labels)
        return made.require_affinity("zone", matching(app="web"), firstPodExempt=True)

    story = await tell(harness, *ZONES, pod("plain").label(app="cache").on("n1"))
    assert await story.place(alone("c-0"), alone("c-1")) == [(await node_of(story, "c-0")), None]
    for other in (alone("d", tier="x"), alone("e", "shop"), cache("f")):
        assert await story.feasible(other) == ["n1", "n2", "n3"]


async def node_of(story: Story, name: str) -> str:
    return str((await story.read(pod(name)))["spec"]["nodeName"])


async def test_the_next_pod_is_exempt_once_the_first_one_is_gone(harness: Harness) -> None:
    """E06: it waits, and is tried again by itself."""
    story = await tell(harness, *ZONES)
    assert await story.place(cache("c-0")) != [None]
    assert await story.place(cache("c-1"), onUnschedulable="Queue") == [None]
    await story.delete(cache("c-0"))
    assert await once(lambda: node_if_placed(story, "c-1"))


async def node_if_placed(story: Story, name: str) -> str | None:
    return (await story.read(pod(name)))["spec"].get("nodeName")


async def confirmed(story: Story, one: PodBuilder) -> httpx.Response:
    """What a node is told that asks whether it may start a pod."""
    seen = (await story.read(one))["metadata"]
    body = {"uid": seen["uid"], "revision": int(seen["resourceVersion"])}
    path = f"{CLUSTER}/{path_of(one)}/binding:confirm"
    return await story.harness.client.post(path, json=body)


async def test_the_exempt_pod_violates_nothing_and_may_be_started(harness: Harness) -> None:
    """E06: one pod of those that break the rule, the oldest; a second one is told."""
    story = await tell(harness, *ZONES)
    await story.put(cache("c-0").on("n1"))
    assert await broken(story) == []
    await story.put(pod("web").label(app="web").on("n2"))
    assert await story.place(cache("c-1")) in (["n2"], ["n3"])
    assert await broken(story) == []
    assert (await confirmed(story, cache("c-0"))).status_code == 200
    await story.put(cache("c-2").on("n1"))
    assert await broken(story) == [("c-2", f"{RULE}[0]")]
    assert problem(await confirmed(story, cache("c-2")), 409)


async def test_other_rules_of_the_exempt_pod_are_judged_without_it(harness: Harness) -> None:
    """E06: what it requires of pods besides is told, by its own place."""
    both = cache("c-0").require_affinity("zone", matching(app="log"))
    log = pod("log").label(app="log")
    story = await tell(harness, *ZONES, log.on("n1"), both.on("n1"))
    assert await broken(story) == []
    await story.delete(log)
    assert await broken(story) == [("c-0", f"{RULE}[1]")]


@pytest.mark.parametrize(
    "wrong",
    [
        pod("p").require_affinity(
            "zone", {}, execution=REQUIRED_DURING_EXECUTION, firstPodExempt=True
        ),
        pod("p").require_anti_affinity("zone", {}, firstPodExempt=True),
        pod("p").prefer_affinity(1, "zone", {}, firstPodExempt=True),
        pod("p").prefer_anti_affinity(1, "zone", {}, firstPodExempt=True),
    ],
)
async def test_only_affinity_for_placement_exempts_a_pod(
    harness: Harness, wrong: PodBuilder
) -> None:
    """E06: elsewhere the field would mean nothing, so it is refused."""
    told = await (await tell(harness)).wrong_fields(wrong)
    ((field, message),) = told.items()
    assert field.endswith(".firstPodExempt")
    assert message == f"can only be used in podAffinity.{IGNORED_DURING_EXECUTION}"
