import httpx
import pytest

from tests.cli.conftest import CLUSTER

POD = {
    "kind": "Pod",
    "metadata": {"name": "web-0", "namespace": "shop"},
    "spec": {"containers": []},
}


def result(name="web-0", outcome="Placed", node="node-1", **more):
    return {
        "namespace": "shop",
        "name": name,
        "outcome": outcome,
        "nodeName": node,
        "score": 601 if node else None,
        "message": None,
        **more,
    }


def answer(*results, revision=12, **more):
    return {"revision": revision, "committed": True, "attempts": 1, "results": [*results], **more}


def test_apply_sends_one_list_and_tells_what_changed(moorage, stub, pod_file):
    counts = {"revision": 3, "created": 1, "changed": 0, "unchanged": 1, "deleted": 0}
    stub.on("POST", f"{CLUSTER}/apply", counts)

    ended = moorage("apply", "-f", pod_file(POD, POD), "--prune", "Pod")

    assert ended.code == 0
    assert ended.out == "1 created, 0 changed, 1 unchanged, 0 deleted (revision 3)\n"
    assert stub.sent() == {"apiVersion": "v1", "kind": "List", "items": [POD, POD]}
    assert stub.requests[0].url.params["prune"] == "Pod"


def test_apply_tells_the_names_that_were_made(moorage, stub, pod_file):
    counts = {"revision": 3, "created": 1, "changed": 0, "unchanged": 0, "deleted": 0}
    made = [{"item": 0, "kind": "Pod", "namespace": "shop", "name": "web-x2x2x"}]
    stub.on("POST", f"{CLUSTER}/apply", {**counts, "generated": made})

    ended = moorage("apply", "-f", pod_file(POD))

    assert ended.out.splitlines()[0] == "Pod shop/web-x2x2x created"


def test_apply_streams_lines_and_tells_the_bad_ones(moorage, stub, pod_file):
    wrong = [{"field": "spec.containers", "message": "is required"}]
    lines = (
        '{"line": 1, "kind": "Pod", "result": "Created", "revision": 4}\n'
        f'{{"line": 2, "kind": "Pod", "result": "Invalid", "errors": {wrong}}}\n'.replace("'", '"')
    )
    stub.on("POST", f"{CLUSTER}/apply", httpx.Response(200, text=lines))

    ended = moorage("apply", "-f", pod_file(POD, POD), "--stream")

    assert ended.code == 1
    assert "object 2: Invalid: spec.containers: is required" in ended.out
    assert "1 created, 1 invalid" in ended.out
    assert stub.requests[0].headers["Content-Type"] == "application/x-ndjson"


def test_warnings_are_told_on_standard_error_each_sort_once(moorage, stub, pod_file):
    fields = ["items[0].spec.volumes[0].ephemeral", "items[1].spec.volumes[2].ephemeral"]
    warnings = [{"field": each, "code": "VolumesIgnored", "message": "is [so]"} for each in fields]
    warnings.append({"field": "items[1].x", "code": "VolumesIgnored", "message": "is so"})
    counts = {"revision": 3, "created": 2, "changed": 0, "unchanged": 0, "deleted": 0}
    stub.on("POST", f"{CLUSTER}/apply", {**counts, "warnings": warnings})

    ended = moorage("apply", "-f", pod_file(POD, POD))

    assert ended.code == 0
    assert ended.err.splitlines() == [
        "warning (VolumesIgnored): items[0].spec.volumes[0].ephemeral is [so]",
        "warning (VolumesIgnored): items[1].x is so",
    ]
    assert ended.out == "2 created, 0 changed, 0 unchanged, 0 deleted (revision 3)\n"


def test_the_warnings_of_lines_are_told_too(moorage, stub, pod_file):
    told = '[{"field": "spec.x", "code": "VolumesIgnored", "message": "is so"}]'
    line = f'{{"line": 1, "kind": "Pod", "result": "Created", "revision": 4, "warnings": {told}}}\n'
    stub.on("POST", f"{CLUSTER}/apply", httpx.Response(200, text=line))

    ended = moorage("apply", "-f", pod_file(POD), "--stream")

    assert "warning (VolumesIgnored): spec.x is so" in ended.err


def test_an_invalid_manifest_is_told_field_by_field(moorage, stub, pod_file):
    errors = [
        {"field": "items[0].spec.tolerations[0].key", "message": "is no label key"},
        {"field": "items[1].kind", "message": "is not known"},
    ]
    problem = {"code": "InvalidManifest", "detail": "2 fields are wrong.", "errors": errors}
    stub.on("POST", f"{CLUSTER}/apply", httpx.Response(422, json=problem))

    ended = moorage("apply", "-f", pod_file(POD))

    assert ended.code == 1
    assert "(InvalidManifest): 2 fields are wrong." in ended.err
    assert "  items[0].spec.tolerations[0].key: is no label key\n" in ended.err
    assert "  items[1].kind: is not known\n" in ended.err


def test_place_asks_with_the_chosen_options(moorage, stub, pod_file):
    stub.on("POST", f"{CLUSTER}/placements", answer(result()))

    ended = moorage(
        "place", "-f", pod_file(POD), "--all-or-nothing", "--queue", "--explain", "summary"
    )

    assert ended.code == 0
    assert stub.sent() == {
        "pods": [POD],
        "policy": "AllOrNothing",
        "onUnschedulable": "Queue",
        "dryRun": False,
        "explain": "Summary",
    }
    assert "shop/web-0  Placed   node-1  601" in ended.out
    assert ended.out.endswith("1 placed (revision 12)\n")


def test_a_pod_without_a_place_is_exit_code_1_with_its_message(moorage, stub, pod_file):
    message = "0/5 nodes are available: 5 Insufficient cpu."
    stub.on(
        "POST",
        f"{CLUSTER}/placements",
        answer(result(outcome="Unschedulable", node=None, message=message)),
    )

    ended = moorage("place", "-f", pod_file(POD))

    assert ended.code == 1
    assert message in ended.out


@pytest.mark.parametrize(("outcome", "code"), [("AlreadyPlaced", 0), ("Queued", 1), ("Denied", 1)])
def test_only_a_place_is_exit_code_0(moorage, stub, pod_file, outcome, code):
    stub.on("POST", f"{CLUSTER}/placements", answer(result(outcome=outcome)))

    assert moorage("place", "-f", pod_file(POD)).code == code


def test_stored_pods_are_placed_by_name(moorage, stub):
    stub.on("POST", f"{CLUSTER}/placements", answer(result()))

    moorage("place", "shop/web-0", "web-1")

    references = [{"namespace": "shop", "name": "web-0"}, {"namespace": "default", "name": "web-1"}]
    assert stub.sent()["podRefs"] == references


def test_many_pods_are_placed_in_batches_and_told_as_counts(moorage, stub, pod_file):
    placed = answer(*[result()] * 60)
    refused = answer(*[result(outcome="Unschedulable", node=None, message="no room")] * 60)
    stub.on("POST", f"{CLUSTER}/placements", placed, refused)

    ended = moorage("place", "-f", pod_file(*[POD] * 120), "--batch", "60")

    assert [len(stub.sent(number)["pods"]) for number in (0, 1)] == [60, 60]
    assert "60    no room" in ended.out
    assert ended.out.endswith("60 placed, 60 unschedulable (revision 12)\n")


def test_a_group_is_never_cut_into_batches(moorage, stub, pod_file):
    stub.on("POST", f"{CLUSTER}/placements", answer(result()))

    moorage("place", "-f", pod_file(*[POD] * 3), "--batch", "1", "--all-or-nothing")

    assert [len(stub.sent(0)["pods"]), len(stub.requests)] == [3, 1]


def test_replicas_are_placed_from_a_template(moorage, stub, pod_file):
    stub.on("POST", f"{CLUSTER}/placements", answer(result()))

    moorage("place", "-f", pod_file(POD), "--replicas", "3")

    template = {"metadata": POD["metadata"], "spec": POD["spec"]}
    assert stub.sent()["template"] == template
    assert stub.sent()["replicas"] == 3


def test_a_dry_run_has_no_idempotency_key(moorage, stub, pod_file):
    stub.on("POST", f"{CLUSTER}/placements", answer(result()))

    moorage("place", "-f", pod_file(POD), "--dry-run")

    assert stub.sent()["dryRun"] is True
    assert "Idempotency-Key" not in stub.requests[0].headers


def test_the_answer_can_be_had_as_json(moorage, stub, pod_file):
    stub.on("POST", f"{CLUSTER}/placements", answer(result()))

    assert moorage("place", "-f", pod_file(POD), "-o", "json").json == answer(result())


def test_placing_nothing_or_both_is_wrong_usage(moorage, pod_file):
    assert moorage("place").code == 2
    assert moorage("place", "shop/web-0", "-f", pod_file(POD)).code == 2


def test_a_full_explanation_shows_scores_and_refused_nodes(moorage, stub, pod_file):
    explanation = {
        "feasible": ["node-1", "node-2"],
        "best": ["node-1"],
        "total": {"node-1": 601, "node-2": 590},
        "filters": {
            "NodeResourcesFit": {"node-3": ["Insufficient cpu", "Insufficient memory"]},
            "InterPodAffinity": {"node-3": ["node(s) didn't match pod anti-affinity rules"]},
        },
        "unresolvable": {},
        "scores": {"TaintToleration": {"node-1": 100, "node-2": 99}},
        "scoreSkipped": ["InterPodAffinity"],
        "prefilter": None,
        "message": None,
        "semantics": "Kubernetes",
    }
    stub.on("POST", f"{CLUSTER}/placements", answer(result(explanation=explanation)))

    out = moorage("place", "-f", pod_file(POD), "--explain", "full").out

    assert "shop/web-0: placed on node-1" in out
    assert "* node-1  601    100" in out
    assert "  node-2  590    99" in out
    assert "node-3        NodeResourcesFit  Insufficient cpu; Insufficient memory" in out


def test_bind_names_the_filters_that_refuse(moorage, stub):
    reasons = {"TaintToleration": ["node(s) had untolerated taint(s)"]}
    problem = {"code": "BindingRefused", "detail": "node-1 is refused.", "reasons": reasons}
    path = f"{CLUSTER}/namespaces/shop/pods/web-0/binding"
    stub.on("POST", path, httpx.Response(409, json=problem))

    ended = moorage("bind", "shop/web-0", "node-1", "--force")

    assert ended.code == 1
    assert stub.sent() == {"target": {"name": "node-1"}, "force": True}
    assert "TaintToleration: node(s) had untolerated taint(s)" in ended.err


def test_evict_and_delete_address_the_pod(moorage, stub):
    pod = f"{CLUSTER}/namespaces/shop/pods/web-0"
    stub.on("POST", f"{pod}/eviction", httpx.Response(201, json={}))
    stub.on("DELETE", pod, POD)

    assert moorage("evict", "web-0", "-n", "shop").out == "shop/web-0 is being evicted\n"
    assert moorage("evict", "pod/shop/web-0").code == 0
    assert moorage("delete", "pod", "shop/web-0").code == 0
    assert moorage("delete", "node", "absent").code == 1
    assert moorage("delete", "node", "absent", "--ignore-not-found").code == 0


def test_an_eviction_that_a_budget_blocks_is_refused_at_once(moorage, stub):
    cause = "The disruption budget web needs 2 healthy pods and has 2 currently"
    problem = {"code": "EvictionBlocked", "status": 429, "detail": "Cannot evict pod."}
    problem["reasons"] = {"DisruptionBudget": [cause]}
    refusal = httpx.Response(429, json=problem, headers={"Retry-After": "5"})
    stub.on("POST", f"{CLUSTER}/namespaces/shop/pods/web-0/eviction", refusal)

    ended = moorage("evict", "shop/web-0")

    assert ended.code == 1
    assert "Cannot evict pod." in ended.err
    assert f"DisruptionBudget: {cause}" in ended.err
    assert len(stub.requests) == 1


def test_several_objects_are_deleted_and_those_that_cannot_be_are_told(moorage, stub):
    stub.on("DELETE", f"{CLUSTER}/namespaces/shop/pods/web-0", POD)
    stub.on("DELETE", f"{CLUSTER}/nodes/node-1", {})
    stub.on("DELETE", "/v1/clusters/old", {})

    ended = moorage("delete", "pod/shop/web-0", "pod/shop/gone", "node/node-1", "cluster/old")

    assert ended.code == 1
    assert ended.out == "pod/shop/web-0 deleted\nnode/node-1 deleted\ncluster/old deleted\n"
    assert "/pods/gone" in ended.err
    assert moorage("delete", "pods").code == 2


def test_config_shows_and_changes_settings(moorage, stub):
    cluster = {"name": "default", "config": {"hardPodAffinityWeight": 5}, "revision": 4}
    stub.on("GET", CLUSTER, cluster)
    stub.on("PATCH", CLUSTER, cluster)

    shown = moorage("config")
    changed = moorage("config", "hardPodAffinityWeight=5", "daemonNamespaces=[]", "-o", "json")

    assert "hardPodAffinityWeight  5" in shown.out
    assert stub.sent() == {"config": {"hardPodAffinityWeight": 5, "daemonNamespaces": []}}
    assert changed.json == {"hardPodAffinityWeight": 5}
    assert moorage("config", "nonsense").code == 2


@pytest.mark.parametrize(
    ("arguments", "method", "path", "answers"),
    [
        (
            ["apply", "-f", "FILE"],
            "POST",
            "/apply",
            {"revision": 3, "created": 1, "changed": 0, "unchanged": 0, "deleted": 0},
        ),
        (
            ["apply", "--stream", "-f", "FILE"],
            "POST",
            "/apply",
            httpx.Response(200, text='{"line": 1, "kind": "Pod", "result": "Created"}'),
        ),
        (["create", "namespace", "shop"], "PUT", "/namespaces/shop", {}),
        (["delete", "node", "n1"], "DELETE", "/nodes/n1", {}),
        (
            ["delete", "nodes", "--all"],
            "DELETE",
            "/nodes",
            {"remaining": 7, "deleted": 1, "results": [{"name": "n1", "result": "Deleted"}]},
        ),
        (["bind", "shop/a", "n1"], "POST", "/namespaces/shop/pods/a/binding", {}),
        (["evict", "shop/a"], "POST", "/namespaces/shop/pods/a/eviction", {}),
        (["cordon", "n1"], "POST", "/nodes/n1/cordon", {}),
        (["drain", "n1"], "POST", "/nodes/n1/drain", {"metadata": {"name": "drain-n1"}}),
    ],
)
def test_a_dry_run_is_asked_for_and_told(moorage, stub, pod_file, arguments, method, path, answers):
    stub.on(method, CLUSTER + path, answers)
    given = [pod_file(POD) if each == "FILE" else each for each in arguments]

    ended = moorage(*given, "--dry-run")

    assert ended.code == 0
    assert "(dry run)" in ended.out
    assert [each.url.params["dryRun"] for each in stub.requests] == ["true"]


SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}}


def test_what_no_placement_depends_on_is_left_out_and_named(moorage, stub, pod_file):
    counts = {"revision": 3, "created": 1, "changed": 0, "unchanged": 0, "deleted": 0}
    stub.on("POST", f"{CLUSTER}/apply", counts)

    ended = moorage("apply", "-f", pod_file(SETTINGS, POD))

    assert ended.code == 0
    assert "Left out, as no placement depends on them: ConfigMap shop/a." in ended.err
    assert stub.sent()["items"] == [POD]


@pytest.mark.parametrize(
    ("group", "kind"),
    [
        ("storage.k8s.io", "VolumeAttributesClass"),
        ("resource.k8s.io", "ResourcePoolStatusRequest"),
        ("lifecycle.k8s.io", "EvictionRequest"),
    ],
)
def test_so_are_kinds_of_later_versions(moorage, stub, pod_file, group, kind):
    counts = {"revision": 3, "created": 1, "changed": 0, "unchanged": 0, "deleted": 0}
    stub.on("POST", f"{CLUSTER}/apply", counts)
    item = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "a"}}

    assert moorage("apply", "-f", pod_file(item, POD)).code == 0
    assert stub.sent()["items"] == [POD]


def test_composite_groups_are_left_to_the_server_which_refuses_them(moorage, stub, pod_file):
    counts = {"revision": 3, "created": 1, "changed": 0, "unchanged": 0, "deleted": 0}
    stub.on("POST", f"{CLUSTER}/apply", counts)
    version = "scheduling.k8s.io/v1alpha3"
    item = {"apiVersion": version, "kind": "CompositePodGroup", "metadata": {"name": "a"}}

    moorage("apply", "-f", pod_file(item))

    assert stub.sent()["items"] == [item]


def test_a_kind_that_nobody_knows_is_left_to_the_server(moorage, stub, pod_file):
    counts = {"revision": 3, "created": 1, "changed": 0, "unchanged": 0, "deleted": 0}
    stub.on("POST", f"{CLUSTER}/apply", counts)
    own = {"apiVersion": "example.com/v1", "kind": "Secret", "metadata": {"name": "a"}}

    moorage("apply", "-f", pod_file(own, {"kind": "Pood"}))

    assert stub.sent()["items"] == [own, {"kind": "Pood"}]


def test_pods_are_placed_over_clusters(moorage, stub, pod_file):
    refusal = {"cluster": "east", "reason": None, "message": "0/1 nodes are available."}
    placed = {**result(), "cluster": "west", "refusals": [refusal]}
    stub.on("POST", "/v1/placements", {"committed": True, "revisions": {}, "results": [placed]})

    ended = moorage("place", "-f", pod_file(POD), "--clusters", "east,west", "--queue")

    assert ended.code == 0
    assert "west" in ended.out
    assert "east: 0/1 nodes" in ended.out
    sent = stub.sent()
    assert (sent["clusters"], sent["pods"]) == (["east", "west"], [POD])
    assert (sent["onUnschedulable"], "explain" in sent) == ("Queue", False)
    assert moorage("place", "shop/web-0", "--clusters", "all").code == 2
