import httpx

from tests.cli.conftest import CLUSTER, PLACED, WAITING


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


def test_a_refused_node_is_told_under_the_plugin_that_filters_first_in_the_answer(moorage, stub):
    """So a plugin of volumes or devices, or one that was installed, is not told behind the others."""
    both, last = {"node-1": ["No volume."], "node-2": ["No volume."]}, {"node-1": ["Apart."]}
    last["node-3"] = ["Apart."]
    refused = {"VolumeBinding": both, "OfOthers": {"node-3": ["Closed."]}, "InterPodAffinity": last}
    explanation = {"feasible": [], "total": {}, "scores": {}, "filters": refused}
    path = f"{CLUSTER}/namespaces/shop/pods/web-1"
    stub.on("GET", f"{path}/explanation", explanation)
    stub.on("GET", path, WAITING)

    told = moorage("explain", "shop/web-1").out.splitlines()

    assert [line.split() for line in told[-3:]] == [
        ["node-1", "VolumeBinding", "No", "volume."],
        ["node-2", "VolumeBinding", "No", "volume."],
        ["node-3", "OfOthers", "Closed."],
    ]


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
