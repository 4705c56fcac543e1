"""Which pods would have to leave a node for one that fits nowhere, over HTTP."""

from typing import Any

import msgspec
import pytest

from tests.api.harness import CLUSTER, Harness, node, pod, problem
from tests.waiting import once

FULL = "0/1 nodes are available: 1 Insufficient cpu."
PREEMPTING = (
    f"{FULL} preemption: found a potential placement for pod on node n1, preempting 3 victims"
)


def running(name: str, priority: int, **spec: Any) -> dict[str, Any]:
    return pod(name, priority=priority, nodeName="n1", **spec)


def urgent(name: str = "urgent", cpu: str = "3", **spec: Any) -> dict[str, Any]:
    requests = {"requests": {"cpu": cpu}}
    containers = [{"name": "c", "resources": requests}]
    return pod(name, priority=1000, **spec) | {
        "spec": {"containers": containers, "priority": 1000, **spec}
    }


PLACED = [running(f"low-{number}", number) for number in range(4)]


async def fill(harness: Harness) -> None:
    await harness.configure(placePendingPods=False)
    await harness.put_node("n1")
    for each in PLACED:
        await harness.put(f"namespaces/shop/pods/{each['metadata']['name']}", each)


def victims(*numbers: int) -> list[dict[str, str]]:
    return [{"namespace": "shop", "name": f"low-{number}"} for number in numbers]


async def test_a_proposal_names_the_node_and_the_victims_and_evicts_nobody(
    harness: Harness,
) -> None:
    await fill(harness)
    before = (await harness.client.get(f"{CLUSTER}/pods")).json()["items"]
    answer = await harness.place(urgent(), preemption="Propose")
    [result] = answer["results"]
    assert (result["outcome"], result["message"]) == ("Unschedulable", PREEMPTING)
    assert result["preemption"] == {
        "nodeName": "n1",
        "victims": victims(2, 1, 0),
        "budgetViolations": 0,
    }
    assert answer["committed"] is False
    assert (await harness.client.get(f"{CLUSTER}/pods")).json()["items"] == before


async def test_nobody_is_proposed_who_was_not_asked_for(harness: Harness) -> None:
    await fill(harness)
    for options in ({}, {"preemption": "Never"}):
        [result] = (await harness.place(urgent(), **options))["results"]
        assert "preemption" not in result
        assert result["message"] == FULL


async def test_a_pod_that_fits_needs_no_proposal(harness: Harness) -> None:
    await harness.put_node("n1")
    [result] = (await harness.place(urgent(), preemption="Propose"))["results"]
    assert result["outcome"] == "Placed"
    assert "preemption" not in result


async def test_a_full_explanation_has_all_candidates(harness: Harness) -> None:
    await fill(harness)
    [result] = (await harness.place(urgent(), preemption="Propose", explain="Full"))["results"]
    proposed = {"victims": victims(2, 1, 0), "budgetViolations": 0}
    assert result["preemption"]["candidates"] == {"n1": proposed}


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (urgent(preemptionPolicy="Never"), "not eligible due to preemptionPolicy=Never."),
        (
            urgent() | {"spec": urgent()["spec"] | {"priority": -1}},
            "0/1 nodes are available: 1 No preemption victims found for incoming pod.",
        ),
        (
            urgent(nodeSelector={"disk": "none"}),
            "0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
        ),
    ],
)
async def test_where_nothing_helps_the_message_says_why_in_the_words_of_kubernetes(
    harness: Harness, wanted: dict[str, Any], why: str
) -> None:
    await fill(harness)
    [plain] = (await harness.place(wanted))["results"]
    [result] = (await harness.place(wanted, preemption="Propose"))["results"]
    assert result["preemption"] is None
    assert result["message"] == f"{plain['message']} preemption: {why}"
    await harness.configure(placePendingPods=False, kubernetes="1.36")
    [result] = (await harness.place(wanted, preemption="Propose"))["results"]
    assert result["message"] == (
        f"{plain['message']} no new claims to deallocate, preemption: {why}"
    )


async def test_a_pod_that_is_queued_says_only_why_it_waits(harness: Harness) -> None:
    await fill(harness)
    options = {"preemption": "Propose", "onUnschedulable": "Queue"}
    [result] = (await harness.place(urgent(), **options))["results"]
    assert (result["outcome"], result["preemption"]["nodeName"]) == ("Queued", "n1")
    stored = (await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/urgent")).json()
    assert stored["status"]["conditions"][0]["message"] == FULL


async def test_a_simulation_proposes_too(harness: Harness) -> None:
    body = {"nodes": [node("n1")], "pods": PLACED, "pod": urgent(), "preemption": "Propose"}
    answer = await harness.client.post("/v1/simulations", json=body)
    [result] = answer.json()["results"]
    assert result["preemption"]["victims"] == victims(2, 1, 0)
    assert set(result["preemption"]["candidates"]) == {"n1"}


DOMAINS = {"preemptionScope": "Domains"}


def alone_in_zone(**spec: Any) -> dict[str, Any]:
    """A pod of high priority for the node n1 that puts up with no other pod in its zone."""
    term = {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {}}
    rules = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    selector = {"kubernetes.io/hostname": "n1"}
    return urgent(affinity={"podAntiAffinity": rules}, nodeSelector=selector, **spec)


async def fill_zone(harness: Harness, **settings: Any) -> None:
    """Two nodes in a zone, with pods of low priority on the second one alone."""
    await harness.configure(
        placePendingPods=False, restrictAllNamespacesAntiAffinity=False, **settings
    )
    for name in ("n1", "n2"):
        await harness.put_node(name, **{"zone": "a", "kubernetes.io/hostname": name})
    for number in (0, 1):
        await harness.put_pod(f"low-{number}", priority=number, nodeName="n2")


async def test_pods_on_other_nodes_of_a_domain_are_victims_if_the_scope_says_so(
    harness: Harness,
) -> None:
    """N06: also a rule about a whole domain gives way to priority."""
    await fill_zone(harness)
    for options in ({}, {"preemptionScope": "Node"}):
        [result] = (await harness.place(alone_in_zone(), preemption="Propose", **options))[
            "results"
        ]
        assert result["preemption"] is None
    [result] = (await harness.place(alone_in_zone(), **EVICT, **DOMAINS))["results"]
    assert result["preemption"] == {
        "nodeName": "n1",
        "victims": victims(1, 0),
        "budgetViolations": 0,
    }
    assert (await stored(harness, "urgent"))["status"]["nominatedNodeName"] == "n1"
    assert await leaving(harness) == ["low-0", "low-1"]
    await harness.put_pod("late", priority=0, nodeName="n2")
    [again] = (await harness.place(alone_in_zone(), **EVICT, **DOMAINS))["results"]
    assert again["message"].endswith("due to a terminating pod on the nominated node.")
    assert await leaving(harness) == ["low-0", "low-1"]
    await gone(harness, "low-0", "low-1", "late")
    [result] = (await harness.place(alone_in_zone()))["results"]
    assert (result["outcome"], result["nodeName"]) == ("Placed", "n1")


async def test_a_simulation_proposes_victims_on_other_nodes_if_the_scope_says_so(
    harness: Harness,
) -> None:
    nodes = [node(name, zone="a", **{"kubernetes.io/hostname": name}) for name in ("n1", "n2")]
    placed = pod("low-0", priority=0, nodeName="n2")
    config = {"restrictAllNamespacesAntiAffinity": False}
    body = {"config": config, "nodes": nodes, "pods": [placed], "pod": alone_in_zone()}
    options = {"preemption": "Propose"} | DOMAINS
    answer = await harness.client.post("/v1/simulations", json=body | options)
    [result] = answer.json()["results"]
    assert result["preemption"]["victims"] == victims(0)


@pytest.mark.parametrize("path", ["/v1/simulations", f"{CLUSTER}/placements"])
async def test_a_scope_that_there_is_not_is_refused(harness: Harness, path: str) -> None:
    subject = {"pod": urgent()} if "simulations" in path else {"pods": [urgent()]}
    answer = await harness.client.post(path, json=subject | {"preemptionScope": "Zone"})
    assert problem(answer, 422) == "InvalidManifest"
    assert [each["field"] for each in answer.json()["errors"]] == ["preemptionScope"]


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("/v1/simulations", {"preemption": "Always"}),
        ("/v1/simulations", {"preemption": "Evict"}),
        (f"{CLUSTER}/placements", {"preemption": "Always"}),
        (f"{CLUSTER}/placements", {"preemption": "Evict", "policy": "AllOrNothing"}),
    ],
)
async def test_what_cannot_be_done_is_refused_with_its_field(
    harness: Harness, path: str, options: dict[str, str]
) -> None:
    subject = {"pod": urgent()} if "simulations" in path else {"pods": [urgent()]}
    answer = await harness.client.post(path, json=subject | options)
    assert problem(answer, 422) == "InvalidManifest"
    assert [each["field"] for each in answer.json()["errors"]] == ["preemption"]


async def stored(harness: Harness, name: str) -> dict[str, Any]:
    return (await harness.client.get(f"{CLUSTER}/namespaces/shop/pods/{name}")).json()


async def leaving(harness: Harness) -> list[str]:
    """The pods that are marked as to be stopped."""
    pods = (await harness.client.get(f"{CLUSTER}/pods")).json()["items"]
    marked = [each["metadata"] for each in pods if "deletionTimestamp" in each["metadata"]]
    return sorted(each["name"] for each in marked)


async def gone(harness: Harness, *names: str) -> None:
    """The orchestrator has stopped these pods."""
    for name in names:
        answer = await harness.client.delete(f"{CLUSTER}/namespaces/shop/pods/{name}")
        assert answer.status_code == 200


EVICT = {"preemption": "Evict"}


@pytest.mark.parametrize("options", [{}, {"onUnschedulable": "Queue"}])
async def test_victims_are_marked_and_the_pod_waits_for_their_room(
    harness: Harness, options: dict[str, str]
) -> None:
    """N06: priority decides who has to go."""
    await fill(harness)
    answer = await harness.place(urgent(), **EVICT, **options)
    [result] = answer["results"]
    assert answer["committed"] is True
    assert (result["outcome"], result["message"]) == ("Queued", PREEMPTING)
    assert result["preemption"] == {
        "nodeName": "n1",
        "victims": victims(2, 1, 0),
        "budgetViolations": 0,
    }
    assert (await stored(harness, "urgent"))["status"]["nominatedNodeName"] == "n1"
    assert await leaving(harness) == ["low-0", "low-1", "low-2"]
    [condition] = (await stored(harness, "low-0"))["status"]["conditions"]
    assert (condition["type"], condition["reason"], condition["message"]) == (
        "DisruptionTarget",
        "PreemptionByScheduler",
        "default-scheduler: preempting to accommodate a higher priority pod",
    )


async def test_the_pod_gets_its_room_once_the_victims_are_gone(harness: Harness) -> None:
    await fill(harness)
    await harness.place(urgent(), **EVICT)
    await gone(harness, "low-0", "low-1", "low-2")
    [lower] = (await harness.place(pod("lower", priority=999)))["results"]
    assert lower["message"] == FULL
    [result] = (await harness.place(urgent()))["results"]
    assert (result["outcome"], result["nodeName"]) == ("Placed", "n1")
    assert "nominatedNodeName" not in (await stored(harness, "urgent"))["status"]


async def test_the_queue_places_the_pod_once_the_victims_are_gone(harness: Harness) -> None:
    await fill(harness)
    await harness.place(urgent(), **EVICT)
    await harness.configure(placePendingPods=True)
    await gone(harness, "low-0", "low-1", "low-2")
    assert await once(lambda: node_of(harness, "urgent")) == "n1"


async def node_of(harness: Harness, name: str) -> str | None:
    node_name: str | None = (await stored(harness, name))["spec"].get("nodeName")
    return node_name


async def test_while_victims_leave_nobody_else_has_to(harness: Harness) -> None:
    await fill(harness)
    await harness.put_node("n2")
    for number in range(4):
        await harness.put_pod(f"other-{number}", priority=5, nodeName="n2")
    await harness.place(urgent(), **EVICT)
    [again] = (await harness.place(urgent(), **EVICT))["results"]
    assert (again["outcome"], again["preemption"]) == ("Queued", None)
    assert again["message"].endswith("due to a terminating pod on the nominated node.")
    assert (await stored(harness, "urgent"))["status"]["nominatedNodeName"] == "n1"
    assert await leaving(harness) == ["low-0", "low-1", "low-2"]


async def test_a_dry_run_says_who_would_leave_and_marks_nobody(harness: Harness) -> None:
    await fill(harness)
    answer = await harness.place(urgent(), **EVICT, dryRun=True)
    [result] = answer["results"]
    assert (answer["committed"], result["preemption"]["victims"]) == (False, victims(2, 1, 0))
    assert await leaving(harness) == []


async def test_a_request_that_is_sent_again_under_its_key_evicts_once(harness: Harness) -> None:
    await fill(harness)
    body = {"pods": [urgent()], **EVICT}
    headers = {"idempotency-key": "once"}
    path = f"{CLUSTER}/placements"
    first, second = [await harness.client.post(path, json=body, headers=headers) for _ in "ab"]
    assert first.json() == second.json()
    assert await leaving(harness) == ["low-0", "low-1", "low-2"]


@pytest.mark.parametrize(
    "wanted",
    [urgent(preemptionPolicy="Never"), urgent() | {"spec": urgent()["spec"] | {"priority": -1}}],
)
@pytest.mark.parametrize("options", [{}, {"onUnschedulable": "Queue"}])
async def test_where_nobody_may_be_evicted_nothing_is_nominated(
    harness: Harness, wanted: dict[str, Any], options: dict[str, str]
) -> None:
    await fill(harness)
    [result] = (await harness.place(wanted, **EVICT, **options))["results"]
    assert result["outcome"] == ("Queued" if options else "Unschedulable")
    assert result["preemption"] is None
    assert await leaving(harness) == []
    if options:
        assert "nominatedNodeName" not in (await stored(harness, "urgent"))["status"]


async def test_who_preempts_a_node_ends_lower_nominations_for_it(harness: Harness) -> None:
    await fill(harness)
    low = urgent("low") | {"spec": urgent(cpu="2")["spec"] | {"priority": 2}}
    await harness.place(low, **EVICT)
    assert (await stored(harness, "low"))["status"]["nominatedNodeName"] == "n1"
    await harness.place(urgent(cpu="4"), **EVICT)
    assert "nominatedNodeName" not in (await stored(harness, "low"))["status"]
    assert await leaving(harness) == ["low-0", "low-1", "low-2", "low-3"]


async def test_a_nomination_that_is_of_no_use_any_more_ends(harness: Harness) -> None:
    await fill(harness)
    await harness.place(urgent(), **EVICT)
    await harness.put("nodes/n1", node("n1") | {"spec": {"unschedulable": True}})
    await harness.place(urgent(), **EVICT)
    assert "nominatedNodeName" not in (await stored(harness, "urgent"))["status"]


async def test_a_pod_of_the_same_request_knows_that_its_nomination_has_ended(
    harness: Harness,
) -> None:
    await fill(harness)
    low = urgent("low") | {"spec": urgent(cpu="2")["spec"] | {"priority": 2}}
    await harness.place(low, **EVICT)
    _, result = (await harness.place(urgent(cpu="4"), low, **EVICT))["results"]
    assert result["preemption"] is None
    assert "terminating pod" not in result["message"]
    assert "nominatedNodeName" not in (await stored(harness, "low"))["status"]


NOMINATED = {"nominatedNodeName": "n1"}
MERGE = "application/merge-patch+json"
PATCHES: list[tuple[str, Any]] = [
    (MERGE, {"status": {"nominatedNodeName": None}}),
    (MERGE, {"status": {"nominatedNodeName": ""}}),
    (MERGE, {"status": None}),
    ("application/strategic-merge-patch+json", {"status": {"nominatedNodeName": None}}),
    ("application/json-patch+json", [{"op": "remove", "path": "/status/nominatedNodeName"}]),
]


async def nominate(harness: Harness) -> str:
    """A waiting pod with a nominated node; return its path."""
    await harness.configure(placePendingPods=False)
    await harness.put_node("n1")
    await harness.put("namespaces/shop/pods/urgent", urgent() | {"status": NOMINATED})
    return f"{CLUSTER}/namespaces/shop/pods/urgent"


@pytest.mark.parametrize(("kind", "patch"), PATCHES)
async def test_a_patch_removes_a_nomination(harness: Harness, kind: str, patch: Any) -> None:
    path = await nominate(harness)
    body = msgspec.json.encode(patch)
    answer = await harness.client.patch(path, content=body, headers={"content-type": kind})
    assert answer.status_code == 200, answer.text
    assert not (await stored(harness, "urgent")).get("status", {}).get("nominatedNodeName")
    [other] = (await harness.place(pod("other"), dryRun=True))["results"]
    assert other["outcome"] == "Placed"


async def test_a_reported_status_removes_a_nomination_by_null(harness: Harness) -> None:
    await nominate(harness)
    for status, kept in ({"phase": "Pending"}, True), ({"nominatedNodeName": None}, False):
        report = {"namespace": "shop", "name": "urgent", "status": status}
        answer = await harness.client.post(f"{CLUSTER}/pods/statuses", json={"items": [report]})
        assert answer.json()["results"][0]["result"] == "Changed"
        assert ("nominatedNodeName" in (await stored(harness, "urgent"))["status"]) is kept


@pytest.mark.parametrize(
    ("status", "kept"),
    [
        ({}, True),
        ({"status": None}, True),
        ({"status": {}}, True),
        ({"status": {"phase": "Pending"}}, True),
        ({"status": {"nominatedNodeName": None}}, False),
        ({"status": {"nominatedNodeName": ""}}, False),
    ],
)
async def test_a_whole_pod_removes_a_nomination_only_by_stating_none(
    harness: Harness, status: dict[str, Any], kept: Any
) -> None:
    await nominate(harness)
    await harness.put("namespaces/shop/pods/urgent", urgent() | status)
    nominated = (await stored(harness, "urgent"))["status"].get("nominatedNodeName")
    assert nominated == ("n1" if kept else status["status"]["nominatedNodeName"])


async def test_a_patch_of_something_else_keeps_a_nomination(harness: Harness) -> None:
    path = await nominate(harness)
    body = msgspec.json.encode({"metadata": {"labels": {"a": "b"}}})
    await harness.client.patch(path, content=body, headers={"content-type": MERGE})
    assert (await stored(harness, "urgent"))["status"] == NOMINATED
