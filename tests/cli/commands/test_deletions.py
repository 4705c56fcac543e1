import json

import httpx

from tests.cli.conftest import CLUSTER

PODS = f"{CLUSTER}/namespaces/shop/pods"


def deleted(*names, remaining=0):
    results = [
        {"namespace": "shop", "name": name, "uid": "u", "result": "Deleted", "revision": 9}
        for name in names
    ]
    return {
        "revision": 9,
        "deleted": len(names),
        "remaining": remaining,
        "commits": [],
        "results": results,
    }


def lines_of(*results):
    return httpx.Response(200, text="".join(json.dumps(each) + "\n" for each in results))


def test_a_selector_deletes_until_nothing_remains(moorage, stub):
    stub.on("DELETE", PODS, deleted("a", "b", remaining=1), deleted("c"))

    ended = moorage("delete", "pods", "-n", "shop", "-l", "app=web")

    assert (ended.code, ended.out) == (0, "3 deleted\n")
    assert [dict(each.url.params) for each in stub.requests] == [{"labelSelector": "app=web"}] * 2
    keys = {each.headers["Idempotency-Key"] for each in stub.requests}
    assert len(keys) == 2


def test_what_stays_is_told_and_asked_for_no_more(moorage, stub):
    stays = deleted("a", remaining=1)
    stays["results"].append(
        {"namespace": "shop", "name": "b", "result": "Forbidden", "message": "may not"}
    )
    nothing = {**deleted(remaining=1), "results": []}
    stub.on("DELETE", f"{CLUSTER}/pods", stays, nothing)

    ended = moorage("delete", "pods", "-A", "--all")

    assert ended.code == 1
    assert ended.out == "Pod shop/b: may not\n1 deleted\n"
    assert dict(stub.requests[0].url.params) == {"all": "true"}


def test_the_objects_of_a_file_are_deleted_by_their_names(moorage, stub, pod_file):
    stored = {
        "kind": "Pod",
        "metadata": {"name": "web-0", "namespace": "shop", "resourceVersion": "7"},
        "spec": {"containers": []},
    }
    node = {"kind": "Node", "metadata": {"name": "n1"}}
    stub.on("POST", f"{CLUSTER}/apply", lines_of({"line": 1, "result": "Deleted"}))

    assert moorage("delete", "-f", pod_file(stored, node)).out == "1 deleted\n"

    sent = [json.loads(line)["delete"] for line in stub.requests[0].content.splitlines()]
    assert sent == [
        {"kind": "Pod", "metadata": {"namespace": "shop", "name": "web-0"}},
        {"kind": "Node", "metadata": {"name": "n1"}},
    ]


def test_absent_objects_of_a_file_are_errors_unless_that_is_said(moorage, stub, pod_file):
    named = {"namespace": "shop", "name": "b", "errors": [{"field": "", "message": "none"}]}
    absent = {"line": 1, "kind": "Pod", "result": "NotFound", **named}
    stub.on("POST", f"{CLUSTER}/apply", lines_of(absent), lines_of(absent))
    file = pod_file({"kind": "Pod", "metadata": {"name": "b", "namespace": "shop"}})

    refused = moorage("delete", "-f", file)
    ignored = moorage("delete", "-f", file, "--ignore-not-found")

    assert (refused.code, refused.out) == (1, "Pod shop/b: NotFound: none\n0 deleted\n")
    assert (ignored.code, ignored.out) == (0, "0 deleted\n")


WEB = {"app": "web"}
CLAIMED = {
    "kind": "StatefulSet",
    "apiVersion": "apps/v1",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": WEB},
        "template": {"metadata": {"labels": WEB}, "spec": {"containers": []}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}],
    },
}
DEPLOYED = {**CLAIMED, "kind": "Deployment"}


def test_the_pods_of_a_workload_in_a_file_are_deleted_and_its_claims_stay(moorage, stub, pod_file):
    deletions = [{"line": number, "result": "Deleted"} for number in (1, 2)]
    stub.on("POST", f"{CLUSTER}/apply", lines_of(*deletions, {"line": 3, "result": "NotFound"}))

    ended = moorage("delete", "-f", pod_file(CLAIMED))

    sent = [json.loads(line)["delete"] for line in stub.requests[0].content.splitlines()]
    assert [(each["kind"], each["metadata"]["name"]) for each in sent] == [
        ("StatefulSet", "web"),
        ("Pod", "web-0"),
        ("Pod", "web-1"),
    ]
    assert (ended.code, ended.out) == (0, "2 deleted\n"), "a pod that is gone is no error"


def test_a_workload_of_which_nothing_is_there_is_told_once(moorage, stub, pod_file):
    absent = [{"line": number, "result": "NotFound"} for number in (1, 2, 3)]
    stub.on("POST", f"{CLUSTER}/apply", lines_of(*absent), lines_of(*absent))
    file = pod_file(DEPLOYED)

    refused = moorage("delete", "-f", file)
    ignored = moorage("delete", "-f", file, "--ignore-not-found")

    told = "Deployment shop/web: NotFound: none of its pods is there\n0 deleted\n"
    assert (refused.code, refused.out) == (1, told)
    assert (ignored.code, ignored.out) == (0, "0 deleted\n")


def test_what_is_to_be_deleted_is_said_in_one_way(moorage, stub, pod_file):
    for arguments in (
        ("delete",),
        ("delete", "pods"),
        ("delete", "pods", "a", "-l", "app=web"),
        ("delete", "pods", "-f", pod_file({})),
        ("delete", "pods", "-l", "app=web", "-A", "-n", "shop"),
        ("delete", "gizmos", "g"),
    ):
        assert moorage(*arguments).code == 2, arguments
    assert not stub.requests
