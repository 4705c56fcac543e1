"""The Kubernetes version that a cluster follows, over HTTP."""

from typing import Any

import pytest

from tests.api.harness import CLUSTER, Harness, pod, problem

BY_BALANCE, BY_GAIN = "a", "b"
"""The node that has the better balance with the pod, and the one whose balance it improves more."""


@pytest.fixture
async def uneven(harness: Harness) -> Harness:
    """Two nodes between which kube-scheduler 1.35 and 1.36 decide differently."""
    await harness.configure(placePendingPods=False, kubernetes="1.35")
    for node, cpu, memory in ((BY_BALANCE, "1800m", "4Gi"), (BY_GAIN, "1", "6Gi")):
        await harness.put_node(node, cpu="4", memory="8Gi")
        await harness.put_pod(f"on-{node}", nodeName=node, containers=asking(cpu, memory))
    return harness


def asking(cpu: str, memory: str) -> list[dict[str, Any]]:
    return [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]


def fresh() -> dict[str, Any]:
    return pod("fresh", containers=asking("1", "1Mi"))


async def configured(harness: Harness, version: str) -> None:
    answer = await harness.client.patch(CLUSTER, json={"config": {"kubernetes": version}})
    assert answer.status_code == 200, answer.text


async def test_a_cluster_decides_as_the_version_that_it_is_set_to(uneven: Harness) -> None:
    chosen = {}
    for version in ("1.35", "1.36", "1.37", "1.35"):
        await configured(uneven, version)
        body = {"pods": [fresh()], "dryRun": True, "explain": "Summary"}
        answer = (await uneven.client.post(f"{CLUSTER}/placements", json=body)).json()
        assert answer["kubernetes"] == answer["results"][0]["explanation"]["kubernetes"] == version
        chosen[version] = answer["results"][0]["nodeName"]
    assert chosen == {"1.35": BY_BALANCE, "1.36": BY_GAIN, "1.37": BY_GAIN}


async def test_every_kind_of_decision_names_the_version(uneven: Harness) -> None:
    await configured(uneven, "1.36")
    await uneven.put("namespaces/shop/pods/fresh", fresh())
    questions = {
        "plans": {"goal": {"type": "Place", "pods": [fresh()]}},
        "capacity": {"template": fresh()},
    }
    for path, body in questions.items():
        answer = await uneven.client.post(f"{CLUSTER}/{path}", json=body)
        assert answer.json()["kubernetes"] == "1.36", answer.text
    for path in ("explanation", "repairs"):
        answer = await uneven.client.get(f"{CLUSTER}/namespaces/shop/pods/fresh/{path}")
        assert answer.json()["kubernetes"] == "1.36", answer.text


async def test_a_plan_can_change_the_version(uneven: Harness) -> None:
    body = {
        "changes": [{"op": "SetConfig", "config": {"kubernetes": "1.36"}}],
        "goal": {"type": "Place", "pods": [fresh()]},
    }
    answer = (await uneven.client.post(f"{CLUSTER}/plans", json=body)).json()
    assert (answer["kubernetes"], answer["steps"][0]["to"]) == ("1.36", BY_GAIN)


async def test_a_simulation_follows_the_version_of_its_configuration(harness: Harness) -> None:
    for version in ("1.35", "1.37"):
        body = {"config": {"kubernetes": version}, "pod": fresh()}
        answer = (await harness.client.post("/v1/simulations", json=body)).json()
        assert answer["kubernetes"] == version


async def test_a_new_configuration_without_a_version_keeps_the_clusters(harness: Harness) -> None:
    await harness.configure(kubernetes="1.35")
    answer = await harness.client.put(CLUSTER, json={"config": {"hardPodAffinityWeight": 7}})
    config = answer.json()["config"]
    assert (config["kubernetes"], config["hardPodAffinityWeight"]) == ("1.35", 7)


async def test_the_past_keeps_the_version_of_its_time(uneven: Harness) -> None:
    await uneven.put("namespaces/shop/pods/fresh", fresh())
    before = (await uneven.client.get(CLUSTER)).json()["revision"]
    await configured(uneven, "1.36")
    path = f"{CLUSTER}/namespaces/shop/pods/fresh/explanation"
    past = (await uneven.client.get(path, params={"revision": before})).json()
    assert (past["kubernetes"], past["best"]) == ("1.35", [BY_BALANCE])
    present = (await uneven.client.get(path)).json()
    assert (present["kubernetes"], present["best"]) == ("1.36", [BY_GAIN])


@pytest.mark.parametrize("value", ["1.34", "v1.36", 1.36, ""])
async def test_other_versions_are_refused_with_those_that_there_are(
    harness: Harness, value: object
) -> None:
    answer = await harness.client.put(CLUSTER, json={"config": {"kubernetes": value}})
    assert problem(answer, 422) == "InvalidManifest"
    error = answer.json()["errors"][0]
    assert error["field"] == "config.kubernetes"
    assert error["message"].startswith("must be one of 1.35, 1.36, 1.37")
