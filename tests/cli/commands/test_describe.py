"""`moorage describe` and `moorage top`: single objects in full, and what is used of nodes."""

import httpx

from tests.cli.conftest import CLUSTER

NODE = {
    "metadata": {"name": "node-1", "labels": {"zone": "a", "disk": "ssd"}},
    "spec": {"unschedulable": True, "taints": [{"key": "gpu", "effect": "NoSchedule"}]},
    "status": {
        "capacity": {"cpu": "9"},
        "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110", "example.com/gpu": "2"},
    },
}
POD = {
    "metadata": {
        "name": "web-0",
        "namespace": "shop",
        "uid": "u-1",
        "labels": {"app": "web"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "controller": True}],
    },
    "spec": {
        "nodeName": "node-1",
        "priority": 7,
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "gpu", "effect": "NoSchedule"}, {"operator": "Exists"}],
        "containers": [{"name": "web", "resources": {"requests": {"cpu": "250m"}}}],
    },
}
EVENT = {
    "metadata": {"name": "e", "namespace": "shop"},
    "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web-0"},
    "type": "Normal",
    "reason": "Scheduled",
    "message": "Successfully assigned shop/web-0 to node-1",
    "count": 2,
    "lastTimestamp": "2026-01-01T00:00:00Z",
}
FREE = {"cpu": "7750m", "memory": str(16 << 30), "pods": "109", "example.com/gpu": "2"}
PATH = f"{CLUSTER}/namespaces/shop/pods/web-0"


def page(*items):
    return {"items": [*items], "metadata": {}}


def fields(out):
    """What stands after each label, by label."""
    return {
        label: text.strip() for label, colon, text in (x.partition(":") for x in out.splitlines())
    }


def test_a_placed_pod_is_described_with_its_node_and_what_happened(moorage, stub):
    explanation = {"feasible": ["node-1", "node-2"], "total": {"node-1": 9}, "filters": {}}
    stub.on("GET", PATH, POD)
    stub.on("GET", f"{PATH}/explanation", explanation)
    stub.on("GET", f"{CLUSTER}/namespaces/shop/events", page(EVENT))

    out = moorage("describe", "pod", "shop/web-0").out

    told = fields(out)
    assert told["Node"] == "node-1"
    assert told["Controlled by"] == "ReplicaSet/web"
    assert told["Container"] == "web: requests cpu 250m, limits nothing"
    assert "gpu:NoSchedule\n                    all taints\n" in out
    assert "Node selector:\n  disk: ssd\n" in out
    assert "on node-1, score 9; 2 nodes are feasible now" in out
    assert "Scheduled  2      Successfully assigned shop/web-0 to node-1" in out
    selected = stub.requests[-1].url.params["fieldSelector"]
    assert selected == "involvedObject.name=web-0,involvedObject.uid=u-1"


def test_a_waiting_pod_is_described_with_the_reasons_by_number_of_nodes(moorage, stub):
    refused = {f"node-{number}": ["Insufficient cpu"] for number in range(3)}
    explanation = {
        "feasible": [],
        "total": {},
        "filters": {"NodeResourcesFit": refused},
        "message": "0/3 nodes are available: 3 Insufficient cpu.",
    }
    stub.on("GET", PATH, POD | {"spec": {}})
    stub.on("GET", f"{PATH}/explanation", explanation)
    stub.on("GET", f"{CLUSTER}/namespaces/shop/events", page())

    out = moorage("describe", "pod/web-0", "-n", "shop").out

    assert fields(out)["State"] == "Pending"
    assert "0/3 nodes are available" in out
    assert "  3              NodeResourcesFit  Insufficient cpu\n" in out
    assert fields(out)["Events"] == "<none>"


def test_a_pod_that_cannot_be_explained_is_described_all_the_same(moorage, stub):
    stub.on("GET", PATH, POD)
    stub.on("GET", f"{PATH}/explanation", httpx.Response(403, json={"detail": "You may not."}))
    stub.on("GET", f"{CLUSTER}/namespaces/shop/events", page())

    ended = moorage("describe", "po", "shop/web-0")

    assert ended.code == 0
    assert "  You may not.\n" in ended.out


def serve_node(stub):
    domain = {"value": "node-1", "nodes": ["node-1"], "pods": 1, "free": FREE}
    stub.on("GET", f"{CLUSTER}/nodes", page(NODE))
    stub.on("GET", f"{CLUSTER}/nodes/node-1", NODE)
    stub.on("GET", f"{CLUSTER}/topology", {"revision": 1, "domains": [domain]})


def test_a_node_is_described_with_what_is_used_and_by_which_pods(moorage, stub):
    serve_node(stub)
    stub.on("GET", f"{CLUSTER}/pods", page(POD))

    out = moorage("describe", "node", "node-1").out

    assert fields(out)["Taints"] == "gpu:NoSchedule"
    assert fields(out)["Unschedulable"] == "yes"
    rows = [line.split() for line in out.splitlines()]
    assert ["cpu", "9", "8", "250m", "3%", "7750m"] in rows
    assert ["memory", "-", "32Gi", "16Gi", "50%", "16Gi"] in rows
    assert ["shop", "web-0", "Placed", "250m", "-", "-"] in rows
    assert stub.requests[-1].url.params["nodeName"] == "node-1"


def test_namespaces_and_other_kinds_are_described(moorage, stub):
    quota = {
        "metadata": {"name": "small", "namespace": "shop"},
        "spec": {"hard": {"pods": "9"}},
        "status": {"used": {"pods": "4"}},
    }
    service = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"selector": {"a": "b"}}}
    stub.on("GET", f"{CLUSTER}/namespaces/shop", {"metadata": {"name": "shop"}})
    stub.on("GET", f"{CLUSTER}/namespaces/shop/resourcequotas", page(quota))
    stub.on("GET", f"{CLUSTER}/namespaces/shop/services", page(service))

    assert "small  pods      4     9\n" in moorage("describe", "ns", "shop").out
    assert "Spec:\n  selector:\n    a: b\n" in moorage("describe", "svc", "-n", "shop").out
    assert moorage("describe", "svc", "-n", "shop", "-o", "json").json == service


def test_top_shows_what_is_used_and_free_of_nodes(moorage, stub):
    serve_node(stub)

    head, row = moorage("top", "nodes").out.splitlines()
    wide = moorage("top", "no", "node-1", "-o", "wide").out

    assert stub.requests[1].url.params["key"] == "metadata.name"
    assert head.split()[:5] == ["NAME", "CPU", "CPU", "%", "CPU"]
    assert row.split() == [
        "node-1",
        *["250m", "3%", "7750m", "16Gi", "50%", "16Gi", "1", "0%", "109"],
    ]
    assert "example.com/gpu 2" in wide
    assert moorage("top", "nodes", "-o", "json").json["items"][0]["used"]["cpu"] == "250m"
    assert moorage("top", "pods").code == 2
    assert moorage("top", "nodes", "--sort-by", "age").code == 2


def test_top_can_begin_with_the_most_used_nodes(moorage, stub):
    def domain(name, free):
        return {"value": name, "nodes": [name], "pods": 0, "free": {"cpu": free}}

    idle, busy = (
        {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "4"}}} for name in ("a", "b")
    )
    stub.on("GET", f"{CLUSTER}/nodes", page(idle, busy))
    answer = {"revision": 1, "domains": [domain("a", "4"), domain("b", "-1")]}
    stub.on("GET", f"{CLUSTER}/topology", answer)

    rows = moorage("top", "nodes", "--no-headers", "--sort-by", "cpu").out.splitlines()

    assert [row.split()[:4] for row in rows] == [["b", "5", "125%", "-1"], ["a", "0", "0%", "4"]]
