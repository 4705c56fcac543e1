"""`moorage drain`, `cordon` and `uncordon`: what they send, and how `drain` waits for the end."""

import httpx
import msgspec
import pytest

from tests.cli.conftest import CLUSTER

HEAD = {"name": "default", "revision": 7}
PATH = f"{CLUSTER}/plans/drain-node-1"
WAITS = {
    "namespace": "shop",
    "name": "web-0",
    "reason": "DisruptionBudget",
    "message": "The disruption budget web does not allow that it leaves.",
}


def plan(**status):
    told = {"status": status} if status else {}
    return {"kind": "Plan", "metadata": {"name": "drain-node-1"}, "spec": {}, **told}


def events(*plans):
    return httpx.Response(
        200,
        text="".join(
            f"id: {8 + number}\nevent: MODIFIED\n"
            f"data: {msgspec.json.encode({'kind': 'Plan', 'object': each}).decode()}\n\n"
            for number, each in enumerate(plans)
        ),
    )


@pytest.fixture
def drained(stub):
    stub.on("POST", f"{CLUSTER}/nodes/node-1/drain", httpx.Response(201, json=plan()))
    stub.on("GET", CLUSTER, HEAD)
    stub.on("GET", PATH, plan())
    return stub


def test_nodes_are_cordoned_and_uncordoned_one_after_the_other(moorage, stub):
    for name in ("node-1", "node-2"):
        stub.on("POST", f"{CLUSTER}/nodes/{name}/cordon", {})
        stub.on("POST", f"{CLUSTER}/nodes/{name}/uncordon", {})

    told = moorage("cordon", "node-1", "node-2").out
    assert told == "node/node-1 cordoned\nnode/node-2 cordoned\n"
    assert moorage("uncordon", "node-1").out == "node/node-1 uncordoned\n"
    assert moorage("uncordon", "node/node-2").out == "node/node-2 uncordoned\n"
    assert stub.sent() == {}
    assert moorage("cordon", "absent").code == 1
    assert moorage("cordon").code == 2


def test_drain_takes_the_options_that_kubectl_wants_and_node_slash_name(moorage, drained):
    told = moorage(
        *("drain", "node/node-1", "--ignore-daemonsets", "--delete-emptydir-data", "--force"),
        "--no-wait",
    )

    assert told.out == "node/node-1 cordoned, plan/drain-node-1 drains it\n"
    assert drained.sent() == {"whenUnschedulable": "Wait"}


def test_drain_waits_for_the_end_and_tells_who_waits_for_what(moorage, drained):
    running = plan(phase="Running", evicted=2, leaving=1, waitingPods=[WAITS])
    ended = plan(phase="Succeeded", evicted=3)
    drained.on("GET", f"{CLUSTER}/watch", events(running, running, ended))

    told = moorage("drain", "node-1")

    assert told.code == 0
    assert told.out == (
        "node/node-1 cordoned, plan/drain-node-1 drains it\n"
        "plan/drain-node-1 has succeeded: 3 pods evicted\n"
    )
    assert told.err == (
        "1 pod is leaving, until an agent reports that it has ended.\n"
        f"shop/web-0 waits: {WAITS['message']}\n"
    )
    assert drained.sent(0) == {"whenUnschedulable": "Wait"}
    assert drained.requests[-1].url.params["kind"] == "Plan"


def test_a_plan_without_progress_ends_the_waiting(moorage, drained):
    stuck = plan(phase="Running", reason="ProgressDeadlineExceeded")
    drained.on("GET", f"{CLUSTER}/watch", events(stuck))

    told = moorage("drain", "node-1")

    assert told.code == 1
    assert "plan/drain-node-1 makes no progress" in told.err


def test_drain_need_not_wait_and_can_evict_who_has_no_other_node(moorage, drained):
    told = moorage("drain", "node-1", "--no-wait", "--when-unschedulable", "evict")

    assert told.out == "node/node-1 cordoned, plan/drain-node-1 drains it\n"
    assert drained.sent() == {"whenUnschedulable": "Evict"}
    assert moorage("drain", "node-1", "--no-wait", "-o", "json").json == plan()


def test_a_drain_that_is_cancelled_has_not_succeeded(moorage, drained):
    drained.on("GET", f"{CLUSTER}/watch", events(plan(phase="Cancelled")))
    told = moorage("drain", "node-1")
    assert (told.code, "plan/drain-node-1 was cancelled" in told.err) == (1, True)


def test_plans_are_listed_with_how_far_they_have_come(moorage, stub):
    metadata = {"revision": 7, "resourceVersion": "7"}
    listed = {
        "kind": "PlanList",
        "metadata": metadata,
        "items": [plan(phase="Running", evicted=2, leaving=1, waiting=4)],
    }
    stub.on("GET", f"{CLUSTER}/plans", listed)

    told = moorage("get", "plans").out

    assert told.splitlines()[-1].split()[:5] == ["drain-node-1", "Running", "2", "1", "4"]
