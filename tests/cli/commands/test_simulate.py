import pytest

PLACED = {"namespace": "default", "name": "p", "outcome": "Placed", "nodeName": "n", "score": 1}
REFUSED = {
    **PLACED,
    "outcome": "Unschedulable",
    "nodeName": None,
    "message": "0/1 nodes are available.",
}
NODE = {"kind": "Node", "metadata": {"name": "n"}}
THERE = {"kind": "Pod", "metadata": {"name": "there"}, "spec": {"nodeName": "n"}}
WAITING = {"kind": "Pod", "metadata": {"name": "waiting"}, "spec": {}}
NEW = {"kind": "Pod", "metadata": {"name": "new"}, "spec": {}}


def test_pods_without_a_node_are_placed_on_the_cluster_of_the_files(moorage, stub, pod_file):
    stub.on("POST", "/v1/simulations", {"results": [PLACED]})

    ended = moorage("simulate", "-f", pod_file(NODE, THERE, WAITING))

    assert ended.code == 0
    assert stub.sent() == {"namespaces": [], "nodes": [NODE], "pods": [THERE], "place": [WAITING]}


def test_pods_of_another_file_are_placed_beside_all_that_is_there(moorage, stub, pod_file):
    stub.on("POST", "/v1/simulations", {"results": [REFUSED]})
    cluster, pods = pod_file(NODE, THERE, WAITING), pod_file(NEW, name="new.jsonl")

    ended = moorage("simulate", "-f", cluster, "--place", pods, "--all-or-nothing")

    assert ended.code == 1
    assert stub.sent()["pods"] == [THERE, WAITING]
    assert stub.sent()["place"] == [NEW]
    assert stub.sent()["policy"] == "AllOrNothing"
    assert "0/1 nodes are available." in ended.out


def test_a_whole_request_is_sent_as_it_is(moorage, stub, pod_file):
    stub.on("POST", "/v1/simulations", {"results": [PLACED]})
    request = {"config": {}, "nodes": [NODE], "pods": [], "pod": NEW}

    moorage("simulate", "-f", pod_file(request, name="request.json"))

    assert stub.sent() == request


@pytest.mark.parametrize("kind", ["Deployment", None])
def test_what_a_simulation_does_not_know_is_wrong_usage(moorage, pod_file, kind):
    assert moorage("simulate", "-f", pod_file({"kind": kind})).code == 2


def test_another_version_is_compared(moorage, stub, pod_file):
    difference = {
        "namespace": "default",
        "name": "p",
        "nodeName": None,
        "before": "n",
        "after": "m",
        "plugin": "ImageLocality",
        "points": 3,
    }
    stub.on("POST", "/v1/simulations", {"results": [PLACED | {"difference": difference}]})

    ended = moorage("simulate", "-f", pod_file(NODE, WAITING), "--compare-to", "1.35")

    assert stub.sent()["compareTo"] == "1.35"
    assert "ImageLocality (+3 points)" in ended.out
    assert "1 of 1 pods would get another node with Kubernetes 1.35." in ended.out


def test_a_comparison_without_differences_says_so(moorage, stub, pod_file):
    stub.on("POST", "/v1/simulations", {"results": [PLACED]})

    ended = moorage("simulate", "-f", pod_file(NODE, WAITING), "--compare-to", "1.35")

    assert "0 of 1 pods would get another node with Kubernetes 1.35." in ended.out
