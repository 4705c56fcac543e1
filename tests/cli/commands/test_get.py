"""`moorage get`: which objects it asks for, and how it shows them."""

from datetime import UTC, datetime, timedelta

import httpx
import pytest

from moorage.cli.progress import follower
from moorage.cli.render.rows import Clock
from tests.cli.conftest import CLUSTER, PLACED, WAITING

NODE = {
    "metadata": {"name": "node-1", "labels": {"topology.kubernetes.io/zone": "zone-a"}},
    "spec": {
        "unschedulable": True,
        "taints": [{"key": "gpu", "value": "a100", "effect": "NoSchedule"}],
    },
    "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
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

    assert lines[0].split() == ["NAME", "STATE", "ZONE", "CPU", "MEMORY", "PODS", "AGE", "TAINTS"]
    first = ["node-1", "-", "zone-a", "8", "32Gi", "110", "-", "cordoned,", "gpu=a100:NoSchedule"]
    assert lines[1].split() == first
    assert [each.split()[1] for each in lines[2:]] == ["Ready", "NotReady", "Silent"]


def test_pods_are_shown_with_where_they_are_or_why_they_wait(moorage, stub):
    stub.on("GET", f"{CLUSTER}/namespaces/shop/pods", page(PLACED, WAITING))

    out = moorage("get", "po", "-n", "shop", "-l", "app=web").out

    assert "web-0  Placed   node-1  -    -" in out
    assert "web-1  Pending  -       -    0/1 nodes are available." in out
    assert stub.requests[0].url.params["labelSelector"] == "app=web"


def test_earlier_revisions_are_asked_for(moorage, stub):
    stub.on("GET", f"{CLUSTER}/namespaces/shop/pods", page(PLACED))
    stub.on("GET", f"{CLUSTER}/namespaces/shop/pods/web-0", PLACED)

    assert "web-0" in moorage("get", "pods", "-n", "shop", "--revision", "7").out
    assert "web-0" in moorage("get", "pod", "web-0", "-n", "shop", "--revision", "7").out

    assert [each.url.params["revision"] for each in stub.requests] == ["7", "7"]
    for wrong in (("pods", "-w"), ("events",), ("clusters",)):
        assert moorage("get", *wrong, "--revision", "7").code == 2
    assert len(stub.requests) == 2


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
        "AGE",
    ]
    assert lines[1].split() == ["shop", "train", "Scheduling", "3", "3", "0", "-"]
    assert lines[2].split() == ["shop", "sim", "-", "2", "-", "-", "-"]
    assert lines[3].split() == ["shop", "tidy", "-", "-", "-", "-", "-"]


def test_kinds_that_are_kept_for_rules_are_shown_with_their_labels(moorage, stub):
    service = {"metadata": {"name": "web", "namespace": "shop", "labels": {"tier": "front"}}}
    stub.on("GET", f"{CLUSTER}/services", page(service))

    for name in ("services", "service", "svc"):
        lines = moorage("get", name).out.splitlines()
        assert lines[0].split() == ["NAMESPACE", "NAME", "AGE", "LABELS"]
        assert lines[1].split() == ["shop", "web", "-", "tier=front"]


def test_what_admission_reads_is_shown_like_all_kinds_that_are_kept(moorage, stub):
    usual = {"metadata": {"name": "usual", "namespace": "shop"}}
    stub.on("GET", f"{CLUSTER}/limitranges", page(usual))
    stub.on("GET", f"{CLUSTER}/runtimeclasses", page({"metadata": {"name": "sandboxed"}}))

    assert moorage("get", "limits", "-o", "name").out == "limitrange/shop/usual\n"
    assert moorage("get", "runtimeclass", "-o", "name").out == "runtimeclass/sandboxed\n"


def test_names_and_manifests_can_be_had_for_scripts(moorage, stub):
    stub.on("GET", f"{CLUSTER}/pods", page(PLACED, WAITING))

    assert moorage("get", "pods", "-o", "name").out == "pod/shop/web-0\npod/shop/web-1\n"
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


def names(out):
    return [line.split()[0] for line in out.splitlines()]


def test_a_list_is_of_all_namespaces_and_names_them_unless_one_is_chosen(moorage, stub):
    stub.on("GET", f"{CLUSTER}/pods", page(PLACED))
    stub.on("GET", f"{CLUSTER}/namespaces/shop/pods", page(PLACED))

    assert moorage("get", "pods").out.startswith("NAMESPACE  NAME ")
    assert moorage("get", "pods", "-A").out.startswith("NAMESPACE  NAME ")
    assert moorage("get", "pods", "-n", "shop").out.startswith("NAME ")
    assert moorage("get", "pods", "-n", "shop", "-o", "name").out == "pod/web-0\n"
    assert moorage("get", "pods", "-n", "shop", "-A").code == 2


def test_several_kinds_are_tables_of_their_own_whose_names_tell_the_kind(moorage, stub):
    stub.on("GET", f"{CLUSTER}/pods", page(PLACED))
    stub.on("GET", f"{CLUSTER}/nodes", page(NODE))
    stub.on("GET", f"{CLUSTER}/services", page())

    lines = moorage("get", "po,no,svc").out.splitlines()

    assert [line.split()[:2] for line in lines] == [
        ["NAMESPACE", "NAME"],
        ["shop", "pod/web-0"],
        [],
        ["NAME", "STATE"],
        ["node/node-1", "-"],
    ]
    assert moorage("get", "pods,nodes", "-o", "json").json["items"] == [PLACED, NODE]


def test_objects_are_named_in_all_of_kubectls_ways(moorage, stub):
    stub.on("GET", f"{CLUSTER}/namespaces/shop/pods/web-0", PLACED)
    stub.on("GET", f"{CLUSTER}/namespaces/shop/pods/web-1", WAITING)
    stub.on("GET", f"{CLUSTER}/nodes/node-1", NODE)

    def named(*words):
        ended = moorage("get", *words, "-o", "name")
        assert ended.code == 0
        return ended.out.split()

    assert named("pod", "web-0", "web-1", "-n", "shop") == ["pod/web-0", "pod/web-1"]
    assert named("pods", "shop/web-0", "shop/web-1") == ["pod/shop/web-0", "pod/shop/web-1"]
    assert named("pod/web-0", "node/node-1", "-n", "shop") == ["pod/web-0", "node/node-1"]
    assert named("pod/shop/web-1", "nodes/node-1") == ["pod/shop/web-1", "node/node-1"]
    assert named("pods.v1", "shop/web-0") == ["pod/shop/web-0"]


@pytest.mark.parametrize("words", [["pod/a", "b"], ["pod/"], ["nothing/a"], ["pods", "-o", "xml"]])
def test_words_that_name_nothing_are_exit_code_2(moorage, stub, words):
    assert moorage("get", *words).code == 2
    assert stub.requests == []


def test_kinds_of_which_only_pods_are_kept_are_told(moorage):
    for kind in ("deployments", "deploy", "cronjob", "ds"):
        ended = moorage("get", kind)
        assert ended.code == 2
        assert "apply -f" in ended.err


def test_of_several_names_the_present_ones_are_shown_and_the_others_told(moorage, stub):
    stub.on("GET", f"{CLUSTER}/nodes/node-1", NODE)

    ended = moorage("get", "node", "absent", "node-1", "-o", "name")

    assert (ended.code, ended.out) == (1, "node/node-1\n")
    assert "absent" in ended.err
    assert moorage("get", "node", "absent", "--ignore-not-found").code == 0


def test_no_objects_are_told_on_standard_error(moorage, stub):
    stub.on("GET", f"{CLUSTER}/namespaces/shop/pods", page())

    ended = moorage("get", "pods", "-n", "shop")

    assert (ended.code, ended.out) == (0, "")
    assert ended.err == "No pods found in the namespace shop.\n"
    assert moorage("get", "pods", "-n", "shop", "-o", "json").json["items"] == []


def test_templates_and_columns_take_out_what_is_wanted(moorage, stub):
    stub.on("GET", f"{CLUSTER}/pods", page(PLACED, WAITING))
    stub.on("GET", f"{CLUSTER}/namespaces/shop/pods/web-0", PLACED)

    listed = moorage("get", "pods", "-o", "jsonpath={.items[*].metadata.name}")
    single = moorage("get", "pod/shop/web-0", "-o", "jsonpath={.spec.nodeName}")
    columns = moorage("get", "pods", "-o", "custom-columns=POD:.metadata.name,NODE:.spec.nodeName")

    assert listed.out == "web-0 web-1"
    assert single.out == "node-1"
    assert columns.out.splitlines() == ["POD    NODE", "web-0  node-1", "web-1  <none>"]
    assert moorage("get", "pods", "-o", "jsonpath={.a").code == 2
    assert moorage("get", "pods", "-o", "custom-columns=POD").code == 2
    assert moorage("get", "pods", "-o", "jsonpath").code == 2


def test_wide_shows_more_columns_and_labels_can_be_shown(moorage, stub):
    owner = {"kind": "ReplicaSet", "name": "web", "uid": "1", "apiVersion": "apps/v1"}
    metadata = PLACED["metadata"] | {"ownerReferences": [owner], "labels": {"app": "web"}}
    pod = {"metadata": metadata, "spec": PLACED["spec"] | {"priority": 7}}
    stub.on("GET", f"{CLUSTER}/pods", page(pod))

    head, row = moorage("get", "pods", "-o", "wide", "--show-labels").out.splitlines()

    assert head.split()[-6:] == ["OWNER", "PRIORITY", "NOMINATED", "NODE", "SCHEDULER", "LABELS"]
    assert row.split()[-5:] == ["ReplicaSet/web", "7", "-", "-", "app=web"]


def sized(name, memory=None):
    return {
        "metadata": {"name": name},
        "status": {"allocatable": {"memory": memory} if memory else {}},
    }


def test_lists_are_sorted_as_quantities_or_as_text(moorage, stub):
    stub.on("GET", f"{CLUSTER}/nodes", page(sized("b", "2Gi"), sized("c"), sized("a", "900Mi")))

    by_size = moorage("get", "no", "--no-headers", "--sort-by", "{.status.allocatable.memory}")
    by_name = moorage("get", "no", "--no-headers", "--sort-by", ".metadata.name")

    assert names(by_size.out) == ["c", "a", "b"]
    assert names(by_name.out) == ["a", "b", "c"]


CHANGES = """\
id: 8
event: MODIFIED
data: {"kind":"Pod","object":{"metadata":{"namespace":"shop","name":"web-1"},"spec":{"nodeName":"node-9"}}}

id: 9
event: DELETED
data: {"kind":"Pod","object":{"metadata":{"namespace":"shop","name":"other"},"spec":{}}}

"""
GONE = httpx.Response(410, json={"code": "Compacted", "detail": "Too old."})


def test_a_watch_lists_and_goes_on_from_the_revision_of_the_list(moorage, stub, monkeypatch):
    monkeypatch.setattr(follower, "RECONNECT_SECONDS", 0)
    first = page(PLACED) | {"metadata": {"resourceVersion": "7", "continue": "more"}}
    second = page(WAITING) | {"metadata": {"resourceVersion": "8"}}
    stub.on("GET", f"{CLUSTER}/namespaces/shop/pods", first, second)
    stub.on("GET", f"{CLUSTER}/watch", httpx.Response(200, text=CHANGES), GONE)

    ended = moorage("get", "pods", "-n", "shop", "-l", "app", "-w", "--output-watch-events")

    assert ended.code == 1
    assert [line.split()[:4] for line in ended.out.splitlines()] == [
        ["EVENT", "NAME", "STATE", "NODE"],
        ["ADDED", "web-0", "Placed", "node-1"],
        ["ADDED", "web-1", "Pending", "-"],
        ["MODIFIED", "web-1", "Placed", "node-9"],
        ["DELETED", "other", "Pending", "-"],
    ]
    params = stub.requests[2].url.params
    expected = {"kind": "Pod", "namespace": "shop", "labelSelector": "app", "sinceRevision": "7"}
    assert dict(params) == expected
    assert stub.requests[3].url.params["sinceRevision"] == "9"


def test_one_object_can_be_watched(moorage, stub, monkeypatch):
    monkeypatch.setattr(follower, "RECONNECT_SECONDS", 0)
    listed = page(WAITING) | {"metadata": {"resourceVersion": "7"}}
    stub.on("GET", f"{CLUSTER}/namespaces/shop/pods", listed)
    stub.on("GET", f"{CLUSTER}/watch", httpx.Response(200, text=CHANGES), GONE)

    ended = moorage("get", "pod", "shop/web-1", "-w", "-o", "jsonpath={.spec.nodeName};")

    assert ended.out == ";node-9;"
    assert stub.requests[0].url.params["fieldSelector"] == "metadata.name=web-1"
    assert moorage("get", "pods,nodes", "-w").code == 2


def test_ages_are_written_as_kubectl_writes_them():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    passed = {
        timedelta(seconds=119): "119s",
        timedelta(minutes=5, seconds=3): "5m3s",
        timedelta(hours=2): "120m",
        timedelta(hours=7, minutes=30): "7h30m",
        timedelta(hours=30): "30h",
        timedelta(days=3): "3d",
        timedelta(days=300): "300d",
        timedelta(days=800): "2y70d",
        -timedelta(hours=1): "0s",
    }
    for ago, text in passed.items():
        created = (now - ago).isoformat().replace("+00:00", "Z")
        assert Clock(now).age({"metadata": {"creationTimestamp": created}}) == text
