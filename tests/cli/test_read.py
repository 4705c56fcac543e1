import httpx

from tests.cli.conftest import CLUSTER

NODE = {
    "metadata": {"name": "node-1", "labels": {"topology.kubernetes.io/zone": "zone-a"}},
    "spec": {
        "unschedulable": True,
        "taints": [{"key": "gpu", "value": "a100", "effect": "NoSchedule"}],
    },
    "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
}
PLACED = {"metadata": {"name": "web-0", "namespace": "shop"}, "spec": {"nodeName": "node-1"}}
WAITING = {
    "metadata": {"name": "web-1", "namespace": "shop"},
    "spec": {},
    "status": {
        "conditions": [
            {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available."}
        ]
    },
}


def page(*items):
    return {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": [*items]}


def condition(status, reason="told"):
    return {"conditions": [{"type": "Ready", "status": status, "reason": reason}]}


def test_nodes_are_shown_with_state_zone_room_and_taints(moorage, stub):
    others = [
        {"metadata": {"name": "node-2"}, "status": condition("True")},
        {"metadata": {"name": "node-3"}, "status": condition("False")},
        {"metadata": {"name": "node-4"}, "status": condition("Unknown", "NodeStatusUnknown")},
    ]
    stub.on("GET", f"{CLUSTER}/nodes", page(NODE, *others))

    lines = moorage("get", "nodes").out.splitlines()

    assert lines[0].split() == ["NAME", "STATE", "ZONE", "CPU", "MEMORY", "PODS", "TAINTS"]
    first = ["node-1", "-", "zone-a", "8", "32Gi", "110", "cordoned,", "gpu=a100:NoSchedule"]
    assert lines[1].split() == first
    assert [each.split()[1] for each in lines[2:]] == ["Ready", "NotReady", "Silent"]


def test_pods_are_shown_with_where_they_are_or_why_they_wait(moorage, stub):
    stub.on("GET", f"{CLUSTER}/namespaces/shop/pods", page(PLACED, WAITING))

    out = moorage("get", "po", "-n", "shop", "-l", "app=web").out

    assert "shop       web-0  Placed   node-1  -" in out
    assert "shop       web-1  Pending  -       0/1 nodes are available." in out
    assert stub.requests[0].url.params["labelSelector"] == "app=web"


def test_pod_groups_are_shown_with_how_their_members_fare(moorage, stub):
    group = {
        "metadata": {"name": "train", "namespace": "shop"},
        "spec": {"minMember": 3},
        "status": {"phase": "Scheduling", "members": 4, "scheduled": 3, "running": 0},
    }
    policies = {"sim": {"gang": {"minCount": 2}}, "tidy": {"basic": {}}}
    upstream = [
        {
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"schedulingPolicy": policy},
        }
        for name, policy in policies.items()
    ]
    stub.on("GET", f"{CLUSTER}/podgroups", page(group, *upstream))

    lines = moorage("get", "pg").out.splitlines()

    assert lines[0].split() == [
        "NAMESPACE",
        "NAME",
        "PHASE",
        "MIN",
        "MEMBER",
        "SCHEDULED",
        "RUNNING",
    ]
    assert lines[1].split() == ["shop", "train", "Scheduling", "3", "3", "0"]
    assert lines[2].split() == ["shop", "sim", "-", "2", "-", "-"]
    assert lines[3].split() == ["shop", "tidy", "-", "-", "-", "-"]


def test_kinds_that_are_kept_for_rules_are_shown_with_their_labels(moorage, stub):
    service = {"metadata": {"name": "web", "namespace": "shop", "labels": {"tier": "front"}}}
    stub.on("GET", f"{CLUSTER}/services", page(service))

    for name in ("services", "service", "svc"):
        lines = moorage("get", name).out.splitlines()
        assert lines[0].split() == ["NAMESPACE", "NAME", "LABELS"]
        assert lines[1].split() == ["shop", "web", "tier=front"]


def test_what_admission_reads_is_shown_like_all_kinds_that_are_kept(moorage, stub):
    usual = {"metadata": {"name": "usual", "namespace": "shop"}}
    stub.on("GET", f"{CLUSTER}/limitranges", page(usual))
    stub.on("GET", f"{CLUSTER}/runtimeclasses", page({"metadata": {"name": "sandboxed"}}))

    assert moorage("get", "limits", "-o", "name").out == "shop/usual\n"
    assert moorage("get", "runtimeclass", "-o", "name").out == "sandboxed\n"


def test_names_and_manifests_can_be_had_for_scripts(moorage, stub):
    stub.on("GET", f"{CLUSTER}/pods", page(PLACED, WAITING))

    assert moorage("get", "pods", "-o", "name").out == "shop/web-0\nshop/web-1\n"
    assert moorage("get", "pods", "-o", "json").json["items"] == [PLACED, WAITING]
    assert "- metadata:\n    name: web-0\n" in moorage("get", "pods", "-o", "yaml").out


def test_one_object_is_shown_by_name(moorage, stub):
    stub.on("GET", f"{CLUSTER}/namespaces/shop/pods/web-0", PLACED)

    assert moorage("get", "pod", "shop/web-0", "-o", "json").json == PLACED
    assert "web-0" in moorage("get", "pod", "web-0", "-n", "shop").out
    assert moorage("get", "pod", "shop/web-0", "-n", "other").code == 2


def test_clusters_are_shown_with_their_counts(moorage, stub):
    counts = {"nodes": 3, "pods": 20, "pending": 1}
    cluster = {"name": "default", "revision": 42, "config": {}, "counts": counts}
    stub.on("GET", "/v1/clusters", {"items": [cluster]})

    assert "default  42        3      20    1" in moorage("get", "clusters").out


def test_an_absent_object_is_exit_code_1_and_no_server_is_3(moorage, stub):
    assert moorage("get", "node", "absent").code == 1

    stub.on("GET", f"{CLUSTER}/nodes", httpx.ConnectError("refused"))
    ended = moorage("get", "nodes")

    assert ended.code == 3
    assert "No server answers" in ended.err
    assert ended.out == ""


def test_an_unknown_kind_or_option_is_exit_code_2(moorage):
    assert moorage("get", "deployments").code == 2
    assert moorage("get", "nodes", "--nonsense").code == 2


def test_a_waiting_pod_is_explained_by_counts_of_reasons_when_nodes_are_many(moorage, stub):
    refused = {f"node-{number}": ["Insufficient cpu"] for number in range(30)}
    answer = {
        "feasible": [],
        "best": [],
        "total": {},
        "filters": {"NodeResourcesFit": refused},
        "unresolvable": {},
        "scores": {},
        "scoreSkipped": [],
        "prefilter": None,
        "message": "0/30 nodes are available: 30 Insufficient cpu.",
        "semantics": "Kubernetes",
    }
    path = f"{CLUSTER}/namespaces/shop/pods/web-1"
    stub.on("GET", f"{path}/explanation", answer)
    stub.on("GET", path, WAITING)

    ended = moorage("explain", "shop/web-1")

    assert ended.code == 0
    assert ended.out.startswith("shop/web-1: 0/30 nodes are available")
    assert "30             NodeResourcesFit  Insufficient cpu" in ended.out


def test_a_placed_pod_is_explained_with_its_node(moorage, stub):
    path = f"{CLUSTER}/namespaces/shop/pods/web-0"
    explanation = {"feasible": ["node-1"], "total": {"node-1": 9}, "scores": {}, "filters": {}}
    stub.on("GET", f"{path}/explanation", explanation)
    stub.on("GET", path, PLACED)

    out = moorage("explain", "web-0", "-n", "shop").out

    assert out.startswith("shop/web-0: on node-1\n")
    assert "* node-1  9" in out


def test_rules_that_were_left_out_are_told_with_the_reason(moorage, stub):
    rule = {"rule": "spec.own[0]", "ownerNamespace": None, "topologyKey": "h", "reason": "So."}
    explanation = {
        "feasible": ["node-1"],
        "total": {"node-1": 9},
        "scores": {},
        "filters": {},
        "exemptions": [
            rule | {"pods": 5, "nodes": 3},
            rule | {"ownerNamespace": "shop", "nodes": 4},
        ],
    }
    path = f"{CLUSTER}/namespaces/shop/pods/web-0"
    stub.on("GET", f"{path}/explanation", explanation)
    stub.on("GET", path, PLACED)

    told = moorage("explain", "web-0", "-n", "shop").out.splitlines()

    assert [line.rstrip().split(maxsplit=1) for line in told[-2:]] == [
        ["3", "the pod itself           spec.own[0]  So."],
        ["4", "shop                     spec.own[0]  So."],
    ]


def test_violations_and_topology_are_tables(moorage, stub):
    violation = {
        "namespace": "shop",
        "name": "web-0",
        "nodeName": "node-1",
        "plugin": "NodeAffinity",
        "rule": "spec.affinity.nodeAffinity",
        "reason": "node(s) didn't match Pod's node affinity/selector",
    }
    domain = {
        "value": "zone-a",
        "nodes": ["node-1", "node-2"],
        "pods": 5,
        "free": {"cpu": "3", "memory": 5 << 30},
    }
    stub.on("GET", f"{CLUSTER}/violations", {"revision": 1, "items": [violation]})
    stub.on("GET", f"{CLUSTER}/topology", {"revision": 1, "domains": [domain]})

    assert "shop/web-0  node-1  NodeAffinity" in moorage("violations").out
    assert (
        "zone-a                       2      5     cpu 3, memory 5.0Gi" in moorage("topology").out
    )


def test_status_tells_readiness(moorage, stub):
    stub.on("GET", "/readyz", {"status": "ready"})
    assert moorage("status").code == 0

    stub.on("GET", "/readyz", httpx.Response(503, json={"detail": "starting"}))
    assert moorage("status").code == 3
