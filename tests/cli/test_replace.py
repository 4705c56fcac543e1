"""`moorage replace`: what it sends for a Deployment, and what it tells of waves."""

import msgspec

from tests.cli.conftest import CLUSTER

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}},
    },
}
STEPS = [
    {"action": "Place", "namespace": "shop", "name": "web-x-0", "to": "n1", "wave": 1},
    {"action": "Evict", "namespace": "shop", "name": "web-a-0", "from": "n2", "wave": 2},
]
LATE = {"namespace": "shop", "name": "web-x-1", "message": "0/1 nodes are available."}


def file_of(tmp_path):
    path = tmp_path / "web.json"
    path.write_bytes(msgspec.json.encode(DEPLOYMENT))
    return str(path)


def test_a_dry_run_tells_the_waves(moorage, stub, tmp_path):
    stub.on("POST", f"{CLUSTER}/plans", {"complete": False, "steps": STEPS, "unplaced": [LATE]})
    ended = moorage("replace", "-f", file_of(tmp_path), "--dry-run", "--max-surge", "1")
    assert ended.out.splitlines() == [
        "wave 1: shop/web-x-0 comes on n1",
        "wave 2: shop/web-a-0 goes from n2",
        "shop/web-x-1 waits: 0/1 nodes are available.",
    ]
    assert ended.code == 1
    goal = stub.sent()["goal"]
    assert (goal["type"], goal["replicas"]) == ("Replace", 2)
    assert (goal["maxSurge"], goal["maxUnavailable"]) == (1, 0)
    assert goal["selector"] == {"matchLabels": {"app": "web"}}
    metadata = goal["template"]["metadata"]
    assert metadata["name"] == f"web-{metadata['labels']['pod-template-hash']}"


def test_a_plan_that_has_ended_makes_room_for_a_new_one(moorage, stub, tmp_path):
    stub.on("POST", f"{CLUSTER}/plans", {"complete": True, "steps": [], "unplaced": []})
    moorage("replace", "-f", file_of(tmp_path), "--dry-run")
    name = f"replace-{stub.sent()['goal']['template']['metadata']['name']}"
    path = f"{CLUSTER}/plans/{name}"
    plan = {"kind": "Plan", "metadata": {"name": name}}
    stub.on("GET", path, {**plan, "status": {"endedAt": "2026-05-04T08:00:00Z"}})
    stub.on("DELETE", path, plan)
    stub.on("PUT", path, plan)
    ended = moorage("replace", "-f", file_of(tmp_path), "--no-wait")
    assert ended.out == f"plan/{name} replaces the pods\n"
    assert [each.method for each in stub.requests[-3:]] == ["GET", "DELETE", "PUT"]
    assert stub.sent()["spec"]["goal"]["maxSurge"] == "50%"


def test_only_one_workload_is_replaced(moorage, stub, tmp_path):
    path = tmp_path / "pod.json"
    path.write_text('{"kind": "Pod", "metadata": {"name": "a"}}')
    assert moorage("replace", "-f", str(path)).code == 2
