import httpx
import msgspec
import pytest

from moorage.cli.session.client import Client
from tests.builders import matching, pod
from tests.conformance import vectors
from tools.conformance.cases import (
    NO_DAEMONS,
    NO_RESTRICTION,
    Difference,
    by_documentation,
    departures_of,
    differences,
    group_of,
    request_of,
    result_differences,
    settings_of,
)
from tools.conformance.comparison import (
    check_case,
    count_departures,
    render_report,
    replay_trace,
    tally,
)

HOSTNAME = "kubernetes.io/hostname"
CONFIG = {"hardPodAffinityWeight": 5, "scoringStrategy": "LeastAllocated", "preAdmission": True}
EXPECT = {
    "prefilter": None,
    "filters": {"NodeName": {"n2": ["node(s) didn't match the requested node name"]}},
    "unresolvable": {"NodeName": ["n2"]},
    "feasible": ["n1"],
    "scores": {"TaintToleration": {"n1": 100}},
    "scoreSkipped": ["NodeAffinity"],
    "total": {"n1": 300},
    "best": ["n1"],
    "message": None,
}
CASE = {
    "name": "nodename-000001",
    "source": "fuzz",
    "config": CONFIG,
    "namespaces": [],
    "nodes": [],
    "pods": [],
    "pod": {"metadata": {"name": "in"}},
    "expect": EXPECT,
}


def described(found):
    return [difference.describe() for difference in found]


def test_an_equal_explanation_has_no_differences_beside_the_semantics():
    assert differences(EXPECT, {**EXPECT, "semantics": "Kubernetes"}) == []


def test_differences_are_told_plugin_by_plugin_and_node_by_node():
    answer = {
        **EXPECT,
        "filters": {"NodeName": {}, "NodePorts": {"n1": ["x"]}},
        "scores": {"TaintToleration": {"n1": 99}},
        "best": [],
        "surplus": 1,
    }

    assert described(differences(EXPECT, answer)) == [
        "best: expected ['n1'], got []",
        "filters NodeName n2: expected [\"node(s) didn't match the requested node name\"], got '(absent)'",
        "filters NodePorts: expected '(absent)', got {'n1': ['x']}",
        "scores TaintToleration n1: expected 100, got 99",
        "surplus: expected '(absent)', got 1",
    ]


def test_a_case_of_preemption_compares_victims_choice_and_words():
    victims = {"victims": ["shop/web"], "pdbViolations": 1}
    expect = EXPECT | {
        "preemption": {"candidates": {"n1": victims, "n2": victims}, "chosen": ["n1"]},
        "why": None,
        "fullMessage": "no room",
    }
    case = CASE | {"expect": expect}
    proposed = {"victims": [{"namespace": "shop", "name": "web"}], "budgetViolations": 1}
    equal = {
        "explanation": EXPECT,
        "message": "no room",
        "preemption": {"nodeName": "n1", "candidates": {"n1": proposed, "n2": proposed}},
    }
    fewer = {"nodeName": "n2", "candidates": {"n2": proposed | {"budgetViolations": 0}}}

    assert request_of(case)["preemption"] == "Propose"
    assert result_differences(case, equal) == []
    assert described(result_differences(case, equal | {"message": "no", "preemption": fewer})) == [
        "chosen: expected ['n1'], got 'n2'",
        "message: expected 'no room', got 'no'",
        f"candidates preemption n1: expected {proposed}, got '(absent)'",
        f"candidates preemption n2: expected {proposed}, got {proposed | {'budgetViolations': 0}}",
    ]
    assert [each.field for each in result_differences(case, equal | {"preemption": None})] == [
        "chosen",
        "candidates",
        "candidates",
    ]


def test_an_absent_field_is_a_difference():
    answer = {name: value for name, value in EXPECT.items() if name != "scores"}

    assert [found.field for found in differences(EXPECT, answer)] == ["scores"]


def test_the_documented_rule_is_expected_where_the_code_deviates_from_it():
    documented = {**EXPECT, "best": []}

    (twin,) = by_documentation([CASE, {**CASE, "name": "a-1", "expectDocumented": documented}])
    assert (twin["name"], twin["expect"]) == ("a-1-documented", documented)
    assert group_of(twin) == "a-documented"
    assert settings_of(twin) == settings_of(CASE) | {"kubernetesRules": "Documented"}


def test_a_readers_note_is_no_setting_and_what_a_case_does_not_set_has_its_default():
    assert settings_of(CASE) == {
        "nodeConditions": "Ignore",
        "kubernetes": "1.35",
        "hardPodAffinityWeight": 5,
        "scoringStrategy": "LeastAllocated",
    }


SHOP, DAEMON = pod("web", "shop"), pod("dns", "kube-system")
AGAINST_ALL = {"selector": {}, "namespaceSelector": {}}


@pytest.mark.parametrize(
    ("pods", "changed"),
    [
        ([SHOP, DAEMON], {}),
        ([SHOP, DAEMON.require_anti_affinity("host", {})], {}),
        ([DAEMON, DAEMON.require_anti_affinity(HOSTNAME, **AGAINST_ALL)], {}),
        ([SHOP, DAEMON.require_anti_affinity("host", {}, namespaces=["shop"])], NO_DAEMONS),
        ([DAEMON, SHOP.require_anti_affinity("host", {}, namespaces=["kube-system"])], NO_DAEMONS),
        ([DAEMON, SHOP.require_anti_affinity(HOSTNAME, **AGAINST_ALL)], NO_DAEMONS),
        ([DAEMON, SHOP.prefer_anti_affinity(9, "zone", **AGAINST_ALL)], {}),
        ([SHOP.require_anti_affinity("zone", **AGAINST_ALL)], NO_RESTRICTION),
        ([SHOP.require_anti_affinity("zone", {}, namespaceSelector=matching(team="a"))], {}),
    ],
)
def test_only_rules_that_kubernetes_does_not_have_are_switched_off(pods, changed):
    *placed, incoming = pods
    assert departures_of(CASE | {"pods": placed, "pod": incoming}) == changed
    assert departures_of({"steps": [{"op": "schedule", "pod": each} for each in pods]}) == changed


def test_nearly_all_vectors_are_asked_with_default_settings():
    departures = count_departures([*vectors.cases(), *vectors.traces()])
    assert departures == {
        "daemonNamespaces: []": 64,
        "restrictAllNamespacesAntiAffinity: false": 45,
    }


def test_vectors_are_grouped_by_feature():
    assert group_of(CASE) == "nodename"
    assert group_of({"name": "seed-first-pod", "source": "seed"}) == "scenarios"
    assert group_of({"name": "trace-1", "source": 4, "steps": []}) == "traces"


def test_a_case_is_simulated_and_compared(stub):
    stub.on("POST", "/v1/simulations", {"results": [{"explanation": EXPECT}]})

    check = check_case(stub.client(), CASE)

    assert (check.group, check.name, list(check.differences)) == ("nodename", "nodename-000001", [])
    assert set(stub.sent()) == {"config", "namespaces", "nodes", "objects", "pods", "pod"}


def test_the_lists_of_a_case_say_of_which_kinds_its_other_objects_are(stub):
    stub.on("POST", "/v1/simulations", {"results": [{"explanation": EXPECT}]})
    lists = {"services": [{"metadata": {"name": "web"}}], "replicaSets": [{"spec": {}}]}
    settings = {"defaultSpread": "List", "defaultConstraints": [{"maxSkew": 2}]}

    check_case(stub.client(), {**CASE, **lists, "config": settings})

    sent = stub.sent()
    assert sent["config"]["defaultTopologySpread"] == "List"
    assert sent["config"]["defaultTopologySpreadConstraints"] == [{"maxSkew": 2}]
    assert sent["objects"] == [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": {}},
    ]


def test_a_refused_case_is_a_difference_not_the_end(stub):
    stub.on("POST", "/v1/simulations", httpx.Response(422, json={"detail": "pods[0] is wrong."}))

    [found] = check_case(stub.client(), CASE).differences

    assert found == Difference(field="answer", expected="200", got="pods[0] is wrong.")


class RecordingServer:
    """Says yes to everything, answers placements with one explanation, refuses bindings if told so."""

    def __init__(self, explanation, binding_status=200):
        self.calls = []
        self.explanation = explanation
        self.binding_status = binding_status

    def __call__(self, request):
        path = request.url.path.split("/", 4)[-1] if request.url.path.count("/") > 3 else ""
        body = msgspec.json.decode(request.content) if request.content else None
        self.calls.append((request.method, path, body))
        if path == "placements":
            return httpx.Response(200, json={"results": [{"explanation": self.explanation}]})
        if path.endswith("/binding") and not body.get("force"):
            return httpx.Response(self.binding_status, json={"detail": "no"})
        return httpx.Response(200, json={})


POD = {"metadata": {"name": "p", "namespace": "prod"}, "spec": {}}
NODE = {"metadata": {"name": "n1"}}
STEP = {"feasible": ["n1"], "best": ["n1"], "total": {"n1": 300}, "chosen": "n1"}
TRACE = {
    "name": "trace-1",
    "config": CONFIG,
    "namespaces": [{"metadata": {"name": "prod"}}],
    "nodes": [NODE],
    "steps": [
        {"op": "schedule", "pod": POD, "expect": STEP},
        {"op": "updateNode", "node": NODE},
        {"op": "deletePod", "namespace": "prod", "name": "p"},
        {"op": "deleteNode", "name": "n1"},
        {"op": "updateNamespace", "namespace": {"metadata": {"name": "prod"}}},
    ],
}


def client_of(server):
    return Client("http://stub", transport=httpx.MockTransport(server))


def test_a_trace_is_lived_through_on_a_cluster_of_its_own():
    server = RecordingServer({**EXPECT, "filters": {}})

    [check] = replay_trace(client_of(server), TRACE)

    assert list(check.differences) == []
    assert [(method, path) for method, path, _ in server.calls] == [
        ("PUT", ""),
        ("PUT", "namespaces/prod"),
        ("PUT", "nodes/n1"),
        ("POST", "placements"),
        ("PUT", "namespaces/prod/pods/p"),
        ("POST", "namespaces/prod/pods/p/binding"),
        ("PUT", "nodes/n1"),
        ("DELETE", "namespaces/prod/pods/p"),
        ("DELETE", "nodes/n1"),
        ("PUT", "namespaces/prod"),
        ("DELETE", ""),
    ]
    assert server.calls[0][2]["config"]["placePendingPods"] is False
    assert server.calls[3][2] == {"pods": [POD], "dryRun": True, "explain": "Full"}


def test_a_refused_binding_is_told_and_made_by_force():
    server = RecordingServer({**EXPECT, "total": {"n1": 299}}, binding_status=409)

    [check] = replay_trace(client_of(server), TRACE)

    assert [found.field for found in check.differences] == ["total", "binding"]
    assert server.calls[6][:2] == ("POST", "namespaces/prod/pods/p/binding")
    assert server.calls[6][2]["force"] is True


def test_counts_are_kept_by_group_and_written_as_a_table(stub):
    stub.on("POST", "/v1/simulations", {"results": [{"explanation": EXPECT}]})
    wrong = {**CASE, "name": "ports-000001", "expect": {**EXPECT, "best": []}}
    checks = [check_case(stub.client(), case) for case in (CASE, CASE, wrong)]

    newer = {**CASE, "config": {**CASE["config"], "kubernetes": "1.37"}}
    checks.append(check_case(stub.client(), newer))
    departures = {"daemonNamespaces: []": 7}
    report = render_report(tally(checks), ["a.jsonl"], departures, "They were compared today.")

    assert "| `daemonNamespaces: []` | 7 |" in report
    assert "They were compared today." in report
    assert "| group | 1.35 | 1.36 | 1.37 |\n|---|--:|--:|--:|\n" in report
    rows = ("nodename | 2 of 2 |  | 1 of 1", "ports | 0 of 1 |  | ", "all | 2 of 3 |  | 1 of 1")
    assert "".join(f"| {row} |\n" for row in rows) in report
