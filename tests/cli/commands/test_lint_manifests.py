"""`moorage lint`: what it finds in manifests, told in the manifests that were read."""

import json

import httpx

from tests.cli.conftest import CLUSTER

WEB = {"app": "web"}
POD = {"kind": "Pod", "metadata": {"name": "web-0", "namespace": "shop"}, "spec": {}}
DEPLOYMENT = {
    "kind": "Deployment",
    "apiVersion": "apps/v1",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": WEB},
        "template": {"metadata": {"labels": WEB}, "spec": {"containers": []}},
    },
}
SELECTOR = {
    "field": "spec.nodeSelector",
    "code": "RuleNeverHolds",
    "message": "can never hold",
}


def answered(*results):
    lines = [{"line": number, **each} for number, each in enumerate(results, 1)]
    return httpx.Response(200, text="".join(json.dumps(each) + "\n" for each in lines))


def test_errors_and_warnings_are_findings_and_nothing_is_stored(moorage, stub, pod_file):
    invalid = {"result": "Invalid", "errors": [{"field": "spec.containers", "message": "is empty"}]}
    warned = {"result": "Created", "warnings": [SELECTOR]}
    stub.on("POST", f"{CLUSTER}/apply", answered(warned, invalid, {"result": "Created"}))

    ended = moorage("lint", "-f", pod_file(POD, POD, POD))

    assert ended.code == 1
    assert ended.out.splitlines() == [
        "Pod shop/web-0: spec.nodeSelector: can never hold (RuleNeverHolds)",
        "Pod shop/web-0: spec.containers: is empty (Invalid)",
        "3 objects, 2 findings",
    ]
    assert ended.err == "", "no warning is told a second time"
    assert stub.requests[0].url.params["dryRun"] == "true"


def test_a_finding_in_all_pods_of_a_workload_is_told_once_at_its_template(moorage, stub, pod_file):
    warned = {"result": "Created", "warnings": [SELECTOR]}
    stub.on("POST", f"{CLUSTER}/apply", answered(warned, warned))

    ended = moorage("lint", "-f", pod_file(DEPLOYMENT), "-o", "json")

    assert ended.json == {
        "findings": [
            {
                **SELECTOR,
                "object": "Deployment shop/web",
                "field": "spec.template.spec.nodeSelector",
            }
        ]
    }


def test_manifests_without_findings_end_with_0(moorage, stub, pod_file):
    stub.on("POST", f"{CLUSTER}/apply", answered({"result": "Created"}))

    ended = moorage("lint", "-f", pod_file(POD))

    assert (ended.code, ended.out) == (0, "1 objects, 0 findings\n")


def test_what_is_refused_without_a_reason_is_a_finding_too(moorage, stub, pod_file):
    stub.on("POST", f"{CLUSTER}/apply", answered({"result": "Denied"}))

    ended = moorage("lint", "-f", pod_file(POD))

    assert ended.code == 1
    assert "Pod shop/web-0: is refused (Denied)" in ended.out
