"""Plans of rolling releases over HTTP: which pods go and come in which wave, and within which bounds."""

from typing import Any

import pytest

from tests.api.harness import CLUSTER, Harness, pod, problem

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
READY = {"conditions": [{"type": "Ready", "status": "True"}]}

Json = dict[str, Any]


def version(number: int, **spec: Any) -> Json:
    """A pod of one version, which is spread over zones among its equals."""
    made = pod(f"web-v{number}", **spec)
    made["metadata"]["labels"]["version"] = f"v{number}"
    return made


def spread(**more: Any) -> Json:
    return {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **more,
    }


def replaced(template: Json, replicas: int = 6, **more: Any) -> Json:
    return {
        "type": "Replace",
        "namespace": "shop",
        "selector": {"matchLabels": {"app": "web"}},
        "template": template,
        "replicas": replicas,
        **more,
    }


async def planned(harness: Harness, goal: Json, **rest: Any) -> Json:
    answer = await harness.client.post(f"{CLUSTER}/plans", json={"goal": goal, **rest})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def three_zones(harness: Harness) -> None:
    await harness.configure(placePendingPods=False)
    for name in ("a-0", "a-1", "b-0", "b-1", "c-0", "c-1"):
        await harness.put_node(name, **{ZONE: name[0], HOST: name})


async def old_pods(harness: Harness, replicas: int = 6, **spec: Any) -> None:
    """Pods of version 1, in turns on the nodes, all ready."""
    for number in range(replicas):
        node = f"{'abc'[number % 3]}-{number // 3 % 2}"
        made = version(1, nodeName=node, **spec)
        made["metadata"]["name"] = f"web-v1-{number}"
        await harness.put(f"namespaces/shop/pods/web-v1-{number}", {**made, "status": READY})


def waves(told: Json) -> list[tuple[set[str], set[str]]]:
    """Of each wave, who goes and who comes."""
    last = max((each["wave"] for each in told["steps"]), default=0)
    return [
        (
            {s["name"] for s in told["steps"] if s["wave"] == wave and s["action"] != "Place"},
            {s["name"] for s in told["steps"] if s["wave"] == wave and s["action"] == "Place"},
        )
        for wave in range(1, last + 1)
    ]


async def test_the_example_of_the_document_is_planned_as_it_says(harness: Harness) -> None:
    await three_zones(harness)
    await harness.put_node("b-7", **{ZONE: "b", HOST: "b-7"})
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-v1", "uid": "1"}
    old = {**version(1, nodeName="a-1"), "status": READY}
    old["metadata"] |= {"name": "web-v1-0", "ownerReferences": [{**owner, "controller": True}]}
    await harness.put("namespaces/shop/pods/web-v1-0", old)
    for each in ("a-0", "a-1", "b-0", "b-1", "c-0", "c-1"):
        await harness.client.post(f"{CLUSTER}/nodes/{each}/cordon", json={})
    document = (await harness.client.get("/openapi.json")).json()
    operation = document["paths"]["/v1/clusters/{cluster}/plans"]["post"]
    bodies = (operation["requestBody"], operation["responses"]["200"])
    asked, told = (
        each["content"]["application/json"]["examples"]["Replace"]["value"] for each in bodies
    )
    assert (await planned(harness, **asked))["steps"] == told["steps"]


async def test_between_two_waves_never_too_few_are_available_nor_too_many_there(
    harness: Harness,
) -> None:
    """Percentages are rounded as Kubernetes does; if both come to nothing, one may be missing."""
    await three_zones(harness)
    await old_pods(harness)
    for surge, unavailable, most, least in (
        (1, 0, 7, 6),
        (0, 2, 6, 4),
        ("20%", "20%", 8, 5),
        ("0%", "1%", 6, 5),
        ("100%", 0, 12, 6),
        (None, None, 8, 5),
    ):
        goal = replaced(version(2), maxSurge=surge, maxUnavailable=unavailable)
        told = await planned(harness, goal)
        assert (told["complete"], told["unplaced"]) == (True, [])
        available = {f"web-v1-{number}" for number in range(6)}
        for goes, comes in waves(told):
            available -= goes
            assert len(available) >= least
            available |= comes
            assert len(available) <= most
        assert available == {f"web-v2-{number}" for number in range(6)}
        assert (told["before"]["pods"], told["after"]["pods"]) == (6, 6)


async def test_nothing_is_stored_and_each_step_says_what_it_is(harness: Harness) -> None:
    await three_zones(harness)
    await old_pods(harness, 1)
    head = (await harness.client.get(CLUSTER)).json()["revision"]
    told = await planned(harness, replaced(version(2), 1, maxSurge=1, maxUnavailable=0))
    (place, evict) = told["steps"]
    to = place.pop("to")
    assert to in {"a-0", "a-1", "b-0", "b-1", "c-0", "c-1"}
    pod_of = {"namespace": "shop", "wave": 1}
    reason = "it is of the new template"
    assert place == {**pod_of, "action": "Place", "name": "web-v2-0", "reason": reason}
    reason = "pods of the new template come in its place"
    wanted = {"action": "Evict", "name": "web-v1-0", "from": "a-0", "reason": reason}
    assert evict == {**pod_of, **wanted, "wave": 2}
    assert (await harness.client.get(CLUSTER)).json()["revision"] == head


async def test_new_pods_are_spread_by_themselves_if_their_rule_says_so(harness: Harness) -> None:
    """With `matchLabelKeys` the old ones do not count, so the new ones end up even."""
    await three_zones(harness)
    await old_pods(harness)
    rule = spread(matchLabelKeys=["version"])
    template = version(2, topologySpreadConstraints=[rule])
    told = await planned(harness, replaced(template, maxSurge=1, maxUnavailable=1))
    assert told["complete"] is True
    zones = [each["to"][0] for each in told["steps"] if each["action"] == "Place"]
    assert sorted(zones) == ["a", "a", "b", "b", "c", "c"]
    for end in range(1, 7):
        counts = [zones[:end].count(zone) for zone in "abc"]
        assert max(counts) - min(counts) <= 1


async def test_no_wave_takes_more_than_a_budget_allows(harness: Harness) -> None:
    await three_zones(harness)
    await old_pods(harness)
    budget = {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"version": "v1"}}, "maxUnavailable": 1},
    }
    await harness.put("namespaces/shop/poddisruptionbudgets/web", budget)
    told = await planned(harness, replaced(version(2), maxUnavailable="50%"))
    assert [len(goes) for goes, _ in waves(told)] == [1] * 6
    budget["spec"] = {"selector": {"matchLabels": {"version": "v1"}}, "minAvailable": 6}
    await harness.put("namespaces/shop/poddisruptionbudgets/web", budget)
    told = await planned(harness, replaced(version(2), maxUnavailable="50%"))
    assert told["complete"] is False
    kept = {each["name"]: each["reason"] for each in told["unplaced"]}
    assert {kept[f"web-v1-{number}"] for number in range(6)} == {"DisruptionBudget"}
    assert {each for name, each in kept.items() if "v2" in name} == {"MaxSurge"}


async def test_who_goes_first_is_as_in_a_replica_set(harness: Harness) -> None:
    await three_zones(harness)
    await old_pods(harness, 3)
    unready = version(1, nodeName="b-0")
    unready["metadata"]["name"] = "web-v1-3"
    waiting = version(1)
    waiting["metadata"]["name"] = "web-v1-4"
    cheap = version(1, nodeName="c-1")
    cheap["metadata"]["name"] = "web-v1-5"
    cheap["metadata"]["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": "-1"}
    for each in (unready, waiting, cheap | {"status": READY}):
        await harness.put(f"namespaces/shop/pods/{each['metadata']['name']}", each)
    told = await planned(harness, replaced(version(2), 4, maxSurge=0, maxUnavailable=1))
    goes = [(each["action"], each["name"]) for each in told["steps"] if each["action"] != "Place"]
    assert goes[:3] == [("Delete", "web-v1-4"), ("Evict", "web-v1-3"), ("Evict", "web-v1-5")]


async def test_what_finds_no_node_is_explained_and_old_pods_stay(harness: Harness) -> None:
    await three_zones(harness)
    await old_pods(harness)
    large = version(2)
    large["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "64"
    told = await planned(harness, replaced(large, maxUnavailable=1), explain="Summary")
    assert told["complete"] is False
    assert [len(goes) for goes, _ in waves(told)] == [1]
    first = told["unplaced"][0]
    assert (first["name"], first["reason"]) == ("web-v2-0", "Unschedulable")
    assert first["message"] == "0/6 nodes are available: 6 Insufficient cpu."
    assert first["explanation"]["message"] == first["message"]
    assert [each["reason"] for each in told["unplaced"]].count("MaxUnavailable") == 5


async def test_pods_of_the_template_that_are_there_are_not_placed_again(harness: Harness) -> None:
    """A label that somebody has added changes nothing."""
    await three_zones(harness)
    await old_pods(harness, 2)
    made = version(2, nodeName="c-0")
    made["metadata"] |= {"name": "web-v2-1"}
    made["metadata"]["labels"]["seen"] = "yes"
    await harness.put("namespaces/shop/pods/web-v2-1", made)
    told = await planned(harness, replaced(version(2), 2, maxSurge=0, maxUnavailable=1))
    assert [comes for _, comes in waves(told) if comes] == [{"web-v2-0"}]
    assert told["complete"] is True
    owner = {"kind": "ReplicaSet", "name": "other"}
    goal = replaced(version(2), 2, owner=owner)
    assert {each["action"] for each in (await planned(harness, goal))["steps"]} == {"Place"}


V2 = version(2)


@pytest.mark.parametrize(
    ("goal", "field", "message"),
    [
        (
            replaced(V2, maxSurge="0%", maxUnavailable=0),
            "goal.maxUnavailable",
            "must not be 0 if maxSurge is 0",
        ),
        (
            replaced(V2, maxSurge="a few"),
            "goal.maxSurge",
            "must be a whole number or a percentage such as 50%",
        ),
        (
            replaced(V2, maxUnavailable="101%"),
            "goal.maxUnavailable",
            "must not be greater than 100%",
        ),
        (replaced(V2, selector=None), "goal", "must have at least one of selector, owner"),
        (replaced(V2, displaced=True), "goal.displaced", "is not a field of Replace"),
        (
            replaced({**V2, "status": READY}),
            "goal.template.status",
            "may not be given: each pod has its own",
        ),
        (
            replaced(version(1, schedulerName="default-scheduler", nodeSelector={"a": "b"})),
            "goal.template.metadata.name",
            "would name a pod that is there, and is another one: shop/web-v1-0",
        ),
        (
            {"type": "Place", "displaced": True, "maxSurge": 1},
            "goal.maxSurge",
            "must be given with Replace only",
        ),
    ],
)
async def test_a_goal_that_makes_no_sense_is_refused(
    harness: Harness, goal: Json, field: str, message: str
) -> None:
    await three_zones(harness)
    await old_pods(harness, 1)
    answer = await harness.client.post(f"{CLUSTER}/plans", json={"goal": goal})
    assert problem(answer, 422) == "InvalidManifest"
    told = [(each["field"], each["message"]) for each in answer.json()["errors"]]
    assert told == [(field, message)]


async def test_a_rolling_release_is_not_one_commit(harness: Harness) -> None:
    answer = await harness.client.post(f"{CLUSTER}/plan-commits", json={"goal": replaced(V2)})
    assert problem(answer, 422) == "InvalidManifest"
    assert [each["field"] for each in answer.json()["errors"]] == ["goal.type"]
