"""What stored disruption budgets allow, and that preemption heeds them, over HTTP."""

from typing import Any

import httpx
import pytest

from tests.api.harness import CLUSTER, Harness, node, pod, problem
from tests.builders import (
    REQUIRED_DURING_EXECUTION,
    node as labelled_node,
    pod as built_pod,
    requirement,
)
from tests.waiting import once

BLOCKED = "Cannot evict pod as it would violate the pod's disruption budget"
PATH = f"{CLUSTER}/namespaces/shop/poddisruptionbudgets/web"


async def put_budget(harness: Harness, selector: Any = None, **spec: Any) -> None:
    selector = {"matchLabels": {"app": "web"}} if selector is None else selector
    manifest = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": selector, **spec},
    }
    await harness.put("namespaces/shop/poddisruptionbudgets/web", manifest)


async def status(harness: Harness) -> tuple[int, int, int, int]:
    """The disruptions that are allowed, and the pods that are healthy, needed and wanted."""
    told = (await harness.client.get(PATH)).json()["status"]
    listed = (await harness.client.get(PATH.rpartition("/")[0])).json()["items"]
    assert [each["status"] for each in listed] == [told]
    fields = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
    return tuple(told[field] for field in fields)  # type: ignore[return-value]


def owned(name: str, kind: str = "ReplicaSet", **spec: Any) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "", "controller": True}
    made = pod(name, nodeName="n1", **spec)
    return made | {"metadata": made["metadata"] | {"ownerReferences": [owner]}}


async def put_pods(harness: Harness, *pods: dict[str, Any]) -> None:
    await harness.configure(placePendingPods=False)
    await harness.put_node("n1")
    for each in pods:
        await harness.put(f"namespaces/shop/pods/{each['metadata']['name']}", each)


async def test_a_status_follows_the_pods(over_each_store: Harness) -> None:
    harness = over_each_store
    await put_pods(harness, *(pod(f"web-{number}", nodeName="n1") for number in range(3)))
    await put_budget(harness, minAvailable=2)
    assert await status(harness) == (1, 3, 2, 3)
    await harness.put_pod("web-3")
    assert await status(harness) == (1, 3, 2, 4)
    await harness.client.post(f"{CLUSTER}/namespaces/shop/pods/web-0/eviction")
    assert await status(harness) == (0, 2, 2, 4)
    await harness.client.delete(f"{CLUSTER}/nodes/n1")
    assert (await status(harness))[:2] == (0, 0)


async def test_a_finished_pod_is_not_healthy(harness: Harness) -> None:
    over = pod("over", nodeName="n1") | {"status": {"phase": "Succeeded"}}
    await put_pods(harness, pod("web-0", nodeName="n1"), over)
    await put_budget(harness, minAvailable=0)
    assert await status(harness) == (1, 1, 0, 2)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"maxUnavailable": 1}, (0, 2, 4, 5)),
        ({"minAvailable": "40%"}, (0, 2, 2, 5)),
        ({"minAvailable": 1}, (1, 2, 1, 2)),
    ],
)
async def test_as_many_pods_are_wanted_as_their_owner_says(
    harness: Harness, spec: dict[str, Any], told: tuple[int, ...]
) -> None:
    await put_pods(harness, owned("web-0"), owned("web-1"))
    replica_set = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 5}}
    await harness.put("namespaces/shop/replicasets/web", replica_set)
    await put_budget(harness, **spec)
    assert await status(harness) == told


async def test_a_pod_whose_owner_is_not_known_is_wanted_itself(harness: Harness) -> None:
    await put_pods(harness, owned("web-0", "Job"), owned("web-1"), pod("web-2", nodeName="n1"))
    await put_budget(harness, maxUnavailable=1)
    assert await status(harness) == (1, 3, 2, 3)


async def test_an_empty_selector_is_for_all_pods_of_the_namespace(harness: Harness) -> None:
    await put_pods(harness, pod("web-0", nodeName="n1"))
    await put_budget(harness, {}, minAvailable=0)
    assert await status(harness) == (1, 1, 0, 1)


async def test_a_proposal_counts_the_budgets_that_it_violates(harness: Harness) -> None:
    await put_pods(harness, *(pod(f"web-{number}", nodeName="n1") for number in range(4)))
    containers = [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]
    urgent = pod("urgent", priority=9) | {"spec": {"containers": containers, "priority": 9}}
    for allowed, violations in ((2, 0), (3, 1), (4, 2)):
        await put_budget(harness, minAvailable=allowed)
        [result] = (await harness.place(urgent, preemption="Propose"))["results"]
        assert result["preemption"]["budgetViolations"] == violations


@pytest.mark.parametrize(("allowed", "violations"), [(0, 1), (1, 0)])
async def test_a_simulated_budget_allows_what_its_status_says(
    harness: Harness, allowed: int, violations: int
) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": allowed},
    }
    containers = [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]
    urgent = pod("urgent") | {"spec": {"containers": containers, "priority": 9}}
    body = {"nodes": [node("n1")], "pods": [pod("web-0", nodeName="n1")], "pod": urgent}
    body |= {"objects": [budget], "preemption": "Propose"}
    answer = await harness.client.post("/v1/simulations", json=body)
    [result] = answer.json()["results"]
    assert result["preemption"]["budgetViolations"] == violations


async def lose_their_disks(harness: Harness, *names: str) -> None:
    """Pods whose rule must last, on a node that changes."""
    ssd = requirement("disk", "In", "ssd")
    made = (
        built_pod(name, "shop")
        .label(app="web")
        .require_node(ssd, execution=REQUIRED_DURING_EXECUTION)
        .on("n1")
        for name in names
    )
    await harness.put("nodes/n1", labelled_node("n1").label(disk="ssd"))
    for each in made:
        await harness.put(f"namespaces/shop/pods/{each['metadata']['name']}", each)
    await put_budget(harness, minAvailable=2)
    await harness.put("nodes/n1", labelled_node("n1").label(disk="hdd"))


async def leaving(harness: Harness) -> set[str]:
    items = (await harness.client.get(f"{CLUSTER}/pods")).json()["items"]
    return {each["metadata"]["name"] for each in items if "deletionTimestamp" in each["metadata"]}


async def blocked(harness: Harness) -> list[dict[str, Any]]:
    selector = {"fieldSelector": "reason=EvictionBlocked"}
    answer = await harness.client.get(f"{CLUSTER}/events", params=selector)
    return list(answer.json()["items"])


async def test_an_eviction_waits_for_its_budget_and_is_told(over_each_store: Harness) -> None:
    """M11: of three, two have to stay until the budget allows less; each is told so once."""
    harness = over_each_store
    names = {"web-0", "web-1", "web-2"}
    await lose_their_disks(harness, *names)
    gone = await once(lambda: leaving(harness)) or set()
    assert len(gone) == 1
    told = {each["involvedObject"]["name"]: each for each in await blocked(harness)}
    assert told.keys() == names - gone
    rule = f"spec.affinity.nodeAffinity.{REQUIRED_DURING_EXECUTION}"
    assert {each["message"] for each in told.values()} == {
        f"{BLOCKED} web: {rule} does not hold on node n1."
    }
    await harness.put("nodes/n2", labelled_node("n2"))
    await put_budget(harness, minAvailable=1)
    assert len(await once(lambda: more_than(harness, gone)) or ()) == 2
    assert {each["count"] for each in await blocked(harness)} == {1}
    await harness.client.delete(PATH)
    assert await once(lambda: all_of(harness, names))


async def more_than(harness: Harness, before: set[str]) -> set[str]:
    now = await leaving(harness)
    return now if now > before else set()


async def all_of(harness: Harness, names: set[str]) -> bool:
    return await leaving(harness) == names


async def test_a_blocked_eviction_is_given_up_when_the_rule_holds_again(harness: Harness) -> None:
    """M11: as long as the budget allows nothing, the node may change back."""
    await lose_their_disks(harness, "web-0", "web-1")
    assert len(await once(lambda: blocked(harness)) or ()) == 2
    await harness.put("nodes/n1", labelled_node("n1").label(disk="ssd"))
    await harness.client.delete(PATH)
    await harness.put("nodes/n1", labelled_node("n1").label(disk="ssd", other="x"))
    assert await leaving(harness) == set()


async def evict(harness: Harness, name: str, **sent: Any) -> httpx.Response:
    return await harness.client.post(
        f"{CLUSTER}/namespaces/shop/pods/{name}/eviction", **{"json": {}, **sent}
    )


def words(needed: int, healthy: int, name: str = "web") -> str:
    return f"The disruption budget {name} needs {needed} healthy pods and has {healthy} currently"


@pytest.mark.parametrize("is_owned", [False, True])
@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        ({"maxUnavailable": 0}, 2),
        ({"maxUnavailable": "0%"}, 2),
        ({"minAvailable": 2}, 2),
        ({"minAvailable": "100%"}, 2),
        ({"minAvailable": 3}, 3),
    ],
)
async def test_an_eviction_on_request_is_refused_by_its_budget(
    over_each_store: Harness, spec: dict[str, Any], needed: int, *, is_owned: bool
) -> None:
    harness = over_each_store
    names = ("web-0", "web-1")
    if is_owned:
        replica_set = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 2}}
        await harness.put("namespaces/shop/replicasets/web", replica_set)
    await put_pods(harness, *(owned(e) if is_owned else pod(e, nodeName="n1") for e in names))
    await put_budget(harness, **spec)
    for dry_run in ({"dryRun": "true"}, {}):
        refused = await evict(harness, "web-0", params=dry_run)
        assert problem(refused, 429) == "EvictionBlocked"
        assert refused.json()["detail"] == f"{BLOCKED}."
        assert refused.json()["reasons"] == {"DisruptionBudget": [words(needed, 2)]}
        assert refused.headers["retry-after"] == "5"
    assert await leaving(harness) == set()


async def test_evictions_on_request_take_what_a_budget_allows(over_each_store: Harness) -> None:
    """A pod that is leaving already is answered as it is, and the next has to wait for another."""
    harness = over_each_store
    names = ("web-0", "web-1", "web-2")
    await put_pods(harness, *(pod(each, nodeName="n1") for each in names))
    await put_budget(harness, minAvailable=2)
    assert (await evict(harness, "web-1")).status_code == 201
    assert (await evict(harness, "web-1")).status_code == 201
    assert problem(await evict(harness, "web-0"), 429) == "EvictionBlocked"
    await harness.put_pod("web-3", nodeName="n1")
    assert (await evict(harness, "web-0")).status_code == 201
    assert await leaving(harness) == {"web-0", "web-1"}


async def test_a_budget_is_not_asked_for_a_pod_that_is_not_running(
    over_each_store: Harness,
) -> None:
    harness = over_each_store
    over = pod("over", nodeName="n1") | {"status": {"phase": "Failed"}}
    await put_pods(harness, pod("web-0", nodeName="n1"), pod("waiting"), over)
    await put_budget(harness, maxUnavailable=0)
    assert (await evict(harness, "waiting")).status_code == 201
    assert (await evict(harness, "over")).status_code == 201
    assert (await evict(harness, "web-0")).status_code == 429
    assert await leaving(harness) == {"waiting", "over"}


async def test_all_budgets_of_a_pod_have_to_allow_its_eviction(harness: Harness) -> None:
    await put_pods(harness, pod("web-0", nodeName="n1"), pod("web-1", nodeName="n1"))
    await put_budget(harness, minAvailable=1)
    for name, spec in (("a", {"minAvailable": 2}), ("z", {"minAvailable": "75%"})):
        body = {"metadata": {"name": name, "namespace": "shop"}, "spec": {"selector": {}, **spec}}
        await harness.put(f"namespaces/shop/poddisruptionbudgets/{name}", body)
    refused = await evict(harness, "web-0")
    assert problem(refused, 429) == "EvictionBlocked"
    assert refused.json()["reasons"]["DisruptionBudget"] == [words(2, 2, "a"), words(2, 2, "z")]
    for name in ("a", "z"):
        await harness.client.delete(f"{CLUSTER}/namespaces/shop/poddisruptionbudgets/{name}")
    assert (await evict(harness, "web-0")).status_code == 201


async def test_an_eviction_that_was_done_is_answered_again_under_its_key(harness: Harness) -> None:
    """The pod of this name that is there now is another one, which its budget protects."""
    await put_pods(harness, pod("web-0", nodeName="n1"), pod("web-1", nodeName="n1"))
    await put_budget(harness, minAvailable=1)
    key = {"headers": {"idempotency-key": "once"}}
    first = await evict(harness, "web-0", **key)
    assert first.status_code == 201
    await harness.client.delete(f"{CLUSTER}/namespaces/shop/pods/web-0")
    await harness.put_pod("web-0", nodeName="n1")
    await put_budget(harness, minAvailable=2)
    again = await evict(harness, "web-0", **key)
    assert (again.status_code, again.json()) == (201, first.json())
    assert problem(await evict(harness, "web-0"), 429) == "EvictionBlocked"


def reporting(name: str, ready: str | None, phase: str = "Running", **spec: Any) -> dict[str, Any]:
    conditions = [] if ready is None else [{"type": "Ready", "status": ready}]
    return pod(name, nodeName="n1", **spec) | {"status": {"phase": phase, "conditions": conditions}}


async def test_a_pod_that_reports_that_it_is_not_ready_is_not_healthy(
    over_each_store: Harness,
) -> None:
    harness = over_each_store
    reports = [None, "True", "False", "Unknown"]
    await put_pods(harness, *(reporting(f"web-{n}", ready) for n, ready in enumerate(reports)))
    await put_budget(harness, minAvailable=1)
    assert await status(harness) == (1, 2, 1, 4)
    await harness.put("namespaces/shop/pods/web-2", reporting("web-2", "True"))
    assert await status(harness) == (2, 3, 1, 4)
    await harness.client.delete(f"{CLUSTER}/namespaces/shop/pods/web-3")
    assert await status(harness) == (2, 3, 1, 3)
    await harness.put("namespaces/shop/pods/web-1", reporting("web-1", "False", "Succeeded"))
    assert await status(harness) == (1, 2, 1, 3)
    report = {"namespace": "shop", "name": "web-2", "status": {"conditions": None}}
    await harness.client.post(f"{CLUSTER}/pods/statuses", json={"items": [report]})
    assert await status(harness) == (1, 2, 1, 3)


@pytest.mark.parametrize(
    ("spec", "others", "left"),
    [
        ({"minAvailable": 1}, ["True"], (0, 1, 1, 2)),
        ({"minAvailable": 2}, ["True"], None),
        ({"minAvailable": 2, "unhealthyPodEvictionPolicy": "IfHealthyBudget"}, ["True"], None),
        ({"minAvailable": 2, "unhealthyPodEvictionPolicy": "AlwaysAllow"}, ["True"], (0, 1, 2, 2)),
        ({"maxUnavailable": 1}, ["True", "True"], (0, 2, 2, 3)),
        ({"maxUnavailable": 1}, ["True", "False"], None),
        ({"maxUnavailable": "100%"}, ["False"], None),
        ({"maxUnavailable": "100%"}, ["True"], (1, 1, 0, 2)),
        ({"minAvailable": 1}, [None, None], (1, 2, 1, 3)),
    ],
)
async def test_an_unready_pod_is_evicted_as_in_kubernetes(
    harness: Harness, spec: dict[str, Any], others: list[str | None], left: Any
) -> None:
    others_reporting = [reporting(f"web-{n}", ready) for n, ready in enumerate(others, 1)]
    await put_pods(harness, reporting("web-0", "False"), *others_reporting)
    await put_budget(harness, **spec)
    answer = await harness.client.post(f"{CLUSTER}/namespaces/shop/pods/web-0/eviction")
    if left is None:
        assert problem(answer, 429) == "EvictionBlocked"
    else:
        assert answer.status_code == 201, answer.text
        assert await status(harness) == left


@pytest.mark.parametrize(("ready", "code"), [("False", 201), ("True", 429), (None, 429)])
async def test_only_a_pod_that_reports_that_it_has_not_started_ignores_budgets(
    harness: Harness, ready: str | None, code: int
) -> None:
    await put_pods(harness, reporting("web-0", ready, "Pending"))
    await put_budget(harness, minAvailable=1)
    answer = await harness.client.post(f"{CLUSTER}/namespaces/shop/pods/web-0/eviction")
    assert answer.status_code == code, answer.text


async def test_preemption_counts_an_unready_victim_as_kube_scheduler_does(harness: Harness) -> None:
    """It reads `disruptionsAllowed` alone, which lacks the pods that are not ready."""
    await put_pods(harness, *(reporting(f"web-{n}", "False" if n else "True") for n in range(4)))
    containers = [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]
    urgent = pod("urgent", priority=9) | {"spec": {"containers": containers, "priority": 9}}
    for policy in ("IfHealthyBudget", "AlwaysAllow"):
        await put_budget(harness, minAvailable=0, unhealthyPodEvictionPolicy=policy)
        [result] = (await harness.place(urgent, preemption="Propose"))["results"]
        assert result["preemption"]["budgetViolations"] == 1


async def test_a_drain_takes_unready_pods_first_past_the_budget(harness: Harness) -> None:
    await put_pods(harness, reporting("web-0", "True"), reporting("web-1", "False"))
    await harness.put_node("n2")
    await put_budget(harness, minAvailable=1)
    goal = {"type": "Drain", "nodes": {"names": ["n1"]}}

    async def drained() -> tuple[list[str], list[tuple[str, str]]]:
        told = (await harness.client.post(f"{CLUSTER}/plans", json={"goal": goal})).json()
        steps = [each["name"] for each in told["steps"] if each["action"] != "Cordon"]
        return steps, [(each["name"], each["reason"]) for each in told["unplaced"]]

    assert await drained() == (["web-1", "web-0"], [])
    await put_budget(harness, minAvailable=2)
    assert await drained() == ([], [(f"web-{n}", "DisruptionBudget") for n in range(2)])
    await put_budget(harness, minAvailable=2, unhealthyPodEvictionPolicy="AlwaysAllow")
    assert await drained() == (["web-1"], [("web-0", "DisruptionBudget")])


async def test_an_unknown_policy_is_refused(harness: Harness) -> None:
    spec = {"minAvailable": 1, "unhealthyPodEvictionPolicy": "Always"}
    body = {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}
    answer = await harness.client.put(PATH, json=body)
    assert problem(answer, 422) == "InvalidManifest"
    assert [each["field"] for each in answer.json()["errors"]] == [
        "spec.unhealthyPodEvictionPolicy"
    ]


async def test_a_budget_that_states_no_number_allows_no_disruption(harness: Harness) -> None:
    """As Kubernetes' controller, which then expects no pods; null is as absent."""
    await put_pods(harness, reporting("web-0", "True"), reporting("web-1", "False"))
    for spec in ({}, {"minAvailable": None, "maxUnavailable": None}):
        await put_budget(harness, **spec)
        assert await status(harness) == (0, 1, 0, 0)
        for name in ("web-0", "web-1"):
            refused = await evict(harness, name)
            assert problem(refused, 429) == "EvictionBlocked"
            message = "The disruption budget web does not allow evicting pods currently"
            assert message in refused.text


@pytest.mark.parametrize(
    ("policy", "expected"), [("AlwaysAllow", {"web-1"}), ("IfHealthyBudget", set[str]())]
)
async def test_an_eviction_for_a_rule_takes_an_unready_pod_past_its_budget(
    harness: Harness, policy: str, expected: set[str]
) -> None:
    await harness.configure(placePendingPods=False)
    await harness.put("nodes/n1", labelled_node("n1").label(disk="ssd"))
    await put_budget(harness, minAvailable=2, unhealthyPodEvictionPolicy=policy)
    for name, ready in (("web-0", "True"), ("web-1", "False")):
        made = (
            built_pod(name, "shop")
            .label(app="web")
            .require_node(requirement("disk", "In", "ssd"), execution=REQUIRED_DURING_EXECUTION)
            .on("n1")
        )
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
        await harness.put(f"namespaces/shop/pods/{name}", {**made, "status": status})
    await harness.put("nodes/n1", labelled_node("n1"))
    held = {"web-0", "web-1"} - expected
    assert await once(lambda: told_of(harness, held))
    assert await leaving(harness) == expected


async def told_of(harness: Harness, names: set[str]) -> bool:
    return {each["involvedObject"]["name"] for each in await blocked(harness)} == names
