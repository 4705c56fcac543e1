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
        await harness.put_node(node, host=node)
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


async def test_null_in_a_new_configuration_keeps_the_clusters_too(harness: Harness) -> None:
    await harness.configure(kubernetes="1.35", kubernetesRules="Documented")
    unnamed = {"kubernetes": None, "kubernetesRules": None, "hardPodAffinityWeight": None}
    config = (await harness.client.put(CLUSTER, json={"config": unnamed})).json()["config"]
    assert (config["kubernetes"], config["kubernetesRules"]) == ("1.35", "Documented")
    assert config["hardPodAffinityWeight"] == 1
    unknown = await harness.client.put(CLUSTER, json={"config": {"noSuchSetting": None}})
    assert problem(unknown, 422) == "InvalidManifest"


async def test_the_rules_where_code_and_documentation_differ_are_kept_likewise(
    harness: Harness,
) -> None:
    await harness.configure(kubernetesRules="Documented")
    answer = await harness.client.put(CLUSTER, json={"config": {"hardPodAffinityWeight": 7}})
    assert answer.json()["config"]["kubernetesRules"] == "Documented"
    fresh_cluster = await harness.client.put("/v1/clusters/fresh", json={})
    assert fresh_cluster.json()["config"]["kubernetesRules"] == "Implemented"


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


UPGRADE = [{"op": "SetConfig", "config": {"kubernetes": "1.36"}}]


async def test_a_plan_previews_which_pods_an_upgrade_would_place_elsewhere(uneven: Harness) -> None:
    await uneven.put_pod("moves", nodeName=BY_BALANCE, containers=asking("1", "1Mi"))
    pinned = {"nodeName": BY_BALANCE, "nodeSelector": {"host": BY_BALANCE}}
    await uneven.put_pod("stays", **pinned, containers=asking("10m", "1Mi"))
    body = {"changes": UPGRADE, "goal": {"type": "Compare", "namespace": "shop"}}
    answer = (await uneven.client.post(f"{CLUSTER}/plans", json=body)).json()
    moved = {each["name"]: each for each in answer["differences"]}
    assert (answer["complete"], answer["kubernetes"], answer["compared"]) == (True, "1.36", 4)
    assert answer["differencesTotal"] == len(moved)
    assert moved["moves"] == {
        "namespace": "shop",
        "name": "moves",
        "nodeName": BY_BALANCE,
        "before": BY_BALANCE,
        "after": BY_GAIN,
        "plugin": "NodeResourcesBalancedAllocation",
        "points": moved["moves"]["points"],
    }
    assert moved["moves"]["points"] > 0
    assert "stays" not in moved
    assert (await uneven.client.get(CLUSTER)).json()["config"]["kubernetes"] == "1.35"


async def test_a_preview_names_a_filter_that_refuses_a_node_only_then(uneven: Harness) -> None:
    await uneven.put_node("c", zone="z")
    wanted = {"nodeSelector": {"zone": "z"}, "containers": asking("1", "1Mi")}
    await uneven.put_pod("picky", nodeName="c", **wanted)
    await uneven.put_pod("crowd", nodeName="c", containers=asking("3", "7Gi"))
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"filter": {"disabled": [{"name": "NodeAffinity"}]}},
    }
    changes = [{"op": "SetConfig", "config": {"profiles": [profile]}}]
    goal = {"type": "Compare", "selector": {"matchExpressions": []}}
    answer = (
        await uneven.client.post(f"{CLUSTER}/plans", json={"changes": changes, "goal": goal})
    ).json()
    (change,) = [each for each in answer["differences"] if each["name"] == "picky"]
    assert (change["before"], change["plugin"], change["points"]) == ("c", "NodeAffinity", None)


async def test_a_pod_whose_scheduler_is_no_profile_any_more_gets_no_node(uneven: Harness) -> None:
    await uneven.client.patch(CLUSTER, json={"config": {"profiles": [{"schedulerName": "own"}]}})
    await uneven.put_pod("mine", nodeName=BY_BALANCE, schedulerName="own")
    changes = [{"op": "SetConfig", "config": {"profiles": []}}]
    body = {"changes": changes, "goal": {"type": "Compare"}}
    answer = (await uneven.client.post(f"{CLUSTER}/plans", json=body)).json()
    (change,) = [each for each in answer["differences"] if each["name"] == "mine"]
    assert (change["after"], change["plugin"]) == (None, None)
    assert answer["compared"] == 3


@pytest.mark.parametrize(
    ("changes", "field"),
    [([], "changes"), ([*UPGRADE, {"op": "CordonNodes", "names": ["a"]}], "changes[1].op")],
)
async def test_a_comparison_takes_changed_settings_only(
    uneven: Harness, changes: list[Any], field: str
) -> None:
    body = {"changes": changes, "goal": {"type": "Compare"}}
    answer = await uneven.client.post(f"{CLUSTER}/plans", json=body)
    assert problem(answer, 422) == "InvalidManifest"
    assert [each["field"] for each in answer.json()["errors"]] == [field]


async def test_a_comparison_is_not_committed(uneven: Harness) -> None:
    body = {"changes": UPGRADE, "goal": {"type": "Compare"}}
    answer = await uneven.client.post(f"{CLUSTER}/plan-commits", json=body)
    assert problem(answer, 422) == "InvalidManifest"


async def test_a_simulation_compares_two_versions(harness: Harness) -> None:
    nodes, pods = [], []
    for name, cpu, memory in ((BY_BALANCE, "1800m", "4Gi"), (BY_GAIN, "1", "6Gi")):
        allocatable = {"cpu": "4", "memory": "8Gi", "pods": "9"}
        nodes.append({"metadata": {"name": name}, "status": {"allocatable": allocatable}})
        pods.append(pod(f"on-{name}", nodeName=name, containers=asking(cpu, memory)))
    body = {
        "config": {"kubernetes": "1.35"},
        "nodes": nodes,
        "pods": pods,
        "pod": fresh(),
        "compareTo": "1.37",
    }
    answer = (await harness.client.post("/v1/simulations", json=body)).json()
    (result,) = answer["results"]
    assert (answer["kubernetes"], result["nodeName"]) == ("1.35", BY_BALANCE)
    difference = result["difference"]
    assert (difference["before"], difference["after"]) == (BY_BALANCE, BY_GAIN)
    assert difference["plugin"] == "NodeResourcesBalancedAllocation"
    same = (await harness.client.post("/v1/simulations", json=body | {"compareTo": "1.35"})).json()
    assert "difference" not in same["results"][0]
    wrong = await harness.client.post("/v1/simulations", json=body | {"compareTo": "1.34"})
    assert problem(wrong, 422) == "InvalidManifest"
    assert [each["field"] for each in wrong.json()["errors"]] == ["compareTo"]
