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


SETS = f"{CLUSTER}/namespaces/shop/replicasets"


def file_of(tmp_path, **spec):
    path = tmp_path / "web.json"
    path.write_bytes(msgspec.json.encode({**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], **spec}}))
    return str(path)


def replica_set(name, owner):
    owners = [{"kind": "Deployment", "name": owner}]
    metadata = {"name": name, "namespace": "shop", "ownerReferences": owners}
    return {"metadata": metadata, "spec": {"replicas": 2, "selector": {}}}


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


def plan_in(stub, moorage, file, **spec):
    """The plan that the command would keep, and its name."""
    stub.on("POST", f"{CLUSTER}/plans", {"complete": True, "steps": [], "unplaced": []})
    moorage("replace", "-f", file, "--dry-run")
    goal = stub.sent()["goal"]
    name = f"replace-{goal['template']['metadata']['name']}"
    return name, {"kind": "Plan", "metadata": {"name": name}, "spec": {"goal": goal, **spec}}


def test_a_plan_that_has_ended_makes_room_for_a_new_one(moorage, stub, tmp_path):
    name, plan = plan_in(stub, moorage, file_of(tmp_path))
    path = f"{CLUSTER}/plans/{name}"
    ended_at = {"status": {"endedAt": "2026-05-04T08:00:00Z"}}
    stub.on("GET", f"{CLUSTER}/plans", {"items": [{**plan, **ended_at}]})
    stub.on("DELETE", path, plan)
    stub.on("PUT", path, plan)
    stub.on("GET", SETS, {"items": [replica_set("web-a", "web"), replica_set("db-a", "db")]})
    stub.on("POST", f"{CLUSTER}/apply", {"revision": 2})
    ended = moorage("replace", "-f", file_of(tmp_path), "--no-wait")
    assert ended.out == f"plan/{name} replaces the pods\n"
    assert [each.method for each in stub.requests[-3:]] == ["GET", "DELETE", "PUT"]
    assert stub.sent()["spec"]["goal"]["maxSurge"] == "50%"
    new, earlier = stub.sent(-4)["items"]
    assert f"replace-{new['metadata']['name']}" == name
    assert (new["spec"]["replicas"], earlier["spec"]["replicas"]) == (2, 0)
    assert (earlier["kind"], earlier["metadata"]["name"]) == ("ReplicaSet", "web-a")


def test_a_release_that_runs_is_changed_or_cancelled_and_that_is_said(moorage, stub, tmp_path):
    """A paused one stays paused, as a Deployment does; another workload's is left alone."""
    file = file_of(tmp_path)
    name, plan = plan_in(stub, moorage, file, state="Paused")
    earlier, other = ({**plan, "metadata": {"name": each}} for each in ("replace-web-a", "other"))
    other["spec"] = {"goal": {**plan["spec"]["goal"], "selector": {}}}
    stub.on("GET", f"{CLUSTER}/plans", {"items": [earlier, other, plan]})
    stub.on("POST", f"{CLUSTER}/plans/replace-web-a/cancel", earlier)
    stub.on("GET", SETS, {"items": []})
    stub.on("POST", f"{CLUSTER}/apply", {"revision": 2})
    stub.on("PUT", f"{CLUSTER}/plans/{name}", plan)
    ended = moorage("replace", "-f", file, "--no-wait")
    assert ended.out == f"plan/{name} runs already; it is paused\n"
    told = f"plan/replace-web-a is cancelled: plan/{name} takes its place.\n"
    assert ended.err.endswith(told)
    assert [each.method for each in stub.requests[-3:]] == ["GET", "POST", "PUT"]
    assert stub.sent()["spec"]["state"] == "Paused"
    changed = {**plan, "spec": {"goal": {**plan["spec"]["goal"], "maxSurge": 1}}}
    stub.on("PUT", f"{CLUSTER}/plans/{name}", changed)
    ended = moorage("replace", "-f", file, "--no-wait", "--max-surge", "1")
    assert ended.out == f"plan/{name} runs already, and is changed\n"


def test_old_and_new_pods_of_a_workload_that_is_recreated_are_together_only_if_told(
    moorage, stub, tmp_path
):
    stub.on("POST", f"{CLUSTER}/plans", {"complete": True, "steps": [], "unplaced": []})
    file = file_of(tmp_path, strategy={"type": "Recreate"})
    refused = moorage("replace", "-f", file, "--dry-run")
    assert refused.code == 2
    assert "strategy Recreate" in refused.err
    assert moorage("replace", "-f", file, "--dry-run", "--max-surge", "1").code == 0


def test_only_one_workload_is_replaced(moorage, stub, tmp_path):
    path = tmp_path / "pod.json"
    path.write_text('{"kind": "Pod", "metadata": {"name": "a"}}')
    assert moorage("replace", "-f", str(path)).code == 2
