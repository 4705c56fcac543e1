"""Workloads become their pods, with owners, and refusals name the fields of the workload's manifest."""

import httpx
import pytest

from moorage.cli.exceptions import WrongUsage
from moorage.cli.input.workloads import expand
from tests.cli.conftest import CLUSTER

LABELS = {"app": "web"}
SPEC = {"containers": [{"name": "web", "image": "web:1"}]}
TEMPLATE = {"metadata": {"labels": LABELS, "annotations": {"a": "b"}}, "spec": SPEC}
COUNTS = {"revision": 3, "created": 1, "changed": 0, "unchanged": 0, "deleted": 0}


def workload(kind, version="apps/v1", template=TEMPLATE, **spec):
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"matchLabels": LABELS}, "template": template, **spec},
    }


def made(*objects, nodes=()):
    return expand(objects, lambda _: nodes).objects


def names(objects):
    return [(each["kind"], each["metadata"]["name"]) for each in objects]


def owner(pod):
    [only] = pod["metadata"]["ownerReferences"]
    assert only["controller"] is True
    return only["kind"], only["name"]


def test_a_deployment_becomes_a_replica_set_and_its_pods():
    replica_set, *pods = made(workload("Deployment", replicas=2))

    name = replica_set["metadata"]["name"]
    hashed = {**LABELS, "pod-template-hash": name.removeprefix("web-")}
    assert replica_set["spec"]["selector"]["matchLabels"] == hashed
    assert owner(replica_set) == ("Deployment", "web")
    assert names(pods) == [("Pod", f"{name}-0"), ("Pod", f"{name}-1")]
    for pod in pods:
        assert owner(pod) == ("ReplicaSet", name)
        assert pod["metadata"]["namespace"] == "shop"
        assert pod["metadata"]["labels"] == hashed
        assert pod["metadata"]["annotations"] == {"a": "b"}
        assert pod["spec"] == SPEC


def test_the_same_manifest_means_the_same_pods_and_a_changed_template_others():
    one, again = made(workload("Deployment")), made(workload("Deployment", replicas=1))
    changed = made(workload("Deployment", template=TEMPLATE | {"spec": SPEC | {"priority": 1}}))

    assert one[1] == again[1]
    assert one[1]["metadata"]["name"] != changed[1]["metadata"]["name"]


def test_a_stateful_set_is_kept_and_has_pods_with_numbers_and_claims():
    claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": "fast"}}
    template = TEMPLATE | {"spec": SPEC | {"volumes": [{"name": "data"}, {"name": "tmp"}]}}
    given = workload(
        "StatefulSet",
        template=template,
        replicas=2,
        ordinals={"start": 5},
        volumeClaimTemplates=[claim],
    )

    kept, *others = made(given)

    assert kept == given
    assert names(others) == [
        ("PersistentVolumeClaim", "data-web-5"),
        ("Pod", "web-5"),
        ("PersistentVolumeClaim", "data-web-6"),
        ("Pod", "web-6"),
    ]
    assert others[0]["spec"] == {"storageClassName": "fast"}
    assert others[1]["spec"]["volumes"] == [
        {"name": "tmp"},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-5"}},
    ]
    assert others[1]["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "5"
    assert owner(others[1]) == ("StatefulSet", "web")


def test_a_daemon_set_has_a_pod_on_each_node_where_it_belongs():
    terms = [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    template = TEMPLATE | {"spec": SPEC | {"affinity": {"nodeAffinity": affinity}}}

    one, two = made(workload("DaemonSet", template=template), nodes=("n1", "n2"))

    assert names([one, two]) == [("Pod", "web-n1"), ("Pod", "web-n2")]
    assert owner(one) == ("DaemonSet", "web")
    required = two["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    by_name = [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]
    assert required["nodeSelectorTerms"] == [terms[0] | {"matchFields": by_name}]
    tolerated = {(each["key"], each["effect"]) for each in one["spec"]["tolerations"]}
    assert ("node.kubernetes.io/unschedulable", "NoSchedule") in tolerated
    assert ("node.kubernetes.io/network-unavailable", "NoSchedule") not in tolerated


def test_jobs_have_the_pods_that_they_begin_with():
    job = workload("Job", "batch/v1", parallelism=3, completions=2, completionMode="Indexed")
    cron = workload("CronJob", "batch/v1")
    cron["spec"] = {"jobTemplate": {"spec": {"template": TEMPLATE}}}

    first, second, run = made(job, cron)

    assert names([first, second, run]) == [
        ("Pod", "web-0"),
        ("Pod", "web-1"),
        ("Pod", "web-next-0"),
    ]
    assert owner(first) == ("Job", "web")
    assert owner(run) == ("Job", "web-next")
    assert second["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "1"
    assert made(workload("Job", "batch/v1", suspend=True)) == []


def test_a_workload_whose_pods_are_there_has_none_made():
    deployment = workload("Deployment")
    replica_set, pod = made(deployment)

    assert names(made(deployment, replica_set, pod)) == names([replica_set, pod])


def test_foreign_kinds_of_the_same_name_are_left_alone():
    volcano = workload("Job", "batch.volcano.sh/v1alpha1")

    assert made(volcano) == [volcano]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (workload("Deployment", template=None), "Deployment shop/web: spec.template.spec is req"),
        (workload("CronJob", "batch/v1"), "spec.jobTemplate.spec.template.spec is required"),
        (workload("Deployment", template={"spec": SPEC}), "spec.template.metadata.labels must"),
        (workload("Deployment", replicas="3"), "spec.replicas must be a whole number"),
    ],
)
def test_what_describes_no_pods_is_told_by_its_own_fields(given, complaint):
    with pytest.raises(WrongUsage, match=complaint):
        made(given)


def refusal(word):
    errors = [
        {"field": f"{word}[{n}].spec.containers", "message": "is required"} for n in (1, 2, 3)
    ]
    detail = f"{word}[1].spec.containers: is required (and 2 more)"
    problem = {"code": "InvalidManifest", "detail": detail, "errors": errors}
    return httpx.Response(422, json=problem)


def test_a_refusal_names_the_fields_of_the_workload_and_each_once(moorage, stub, pod_file):
    stub.on("POST", f"{CLUSTER}/apply", refusal("items"))

    ended = moorage("apply", "-f", pod_file(workload("Deployment", replicas=3)))

    told = "Deployment shop/web: spec.template.spec.containers: is required"
    assert ended.code == 1
    assert ended.err.splitlines() == [f"refused (InvalidManifest): {told}"]


def test_a_line_that_is_refused_is_told_by_its_workload(moorage, stub, pod_file):
    lines = (
        '{"line":1,"kind":"ReplicaSet","result":"Created"}\n'
        '{"line":2,"kind":"Pod","result":"Invalid",'
        '"errors":[{"field":"spec.x","message":"is wrong"}]}\n'
    )
    stub.on("POST", f"{CLUSTER}/apply", httpx.Response(200, text=lines))

    ended = moorage("apply", "--stream", "-f", pod_file(workload("Deployment")))

    assert "Deployment shop/web: Invalid: spec.template.spec.x: is wrong\n" in ended.out


def placed(*pods):
    results = [
        {"namespace": "shop", "name": name, "outcome": "Placed", "nodeName": "n1", "score": 1}
        for name in pods
    ]
    return {"revision": 4, "results": results}


def test_place_stores_what_pods_come_with_and_then_places_them(moorage, stub, pod_file):
    stub.on("POST", f"{CLUSTER}/apply", COUNTS)
    stub.on("POST", f"{CLUSTER}/placements", placed("a"))
    file = pod_file(workload("Deployment"))

    assert moorage("place", "-f", file).code == 0
    stored, asked = (stub.sent(number) for number in (-2, -1))
    assert names(stored["items"])[0][0] == "ReplicaSet"
    assert [each["kind"] for each in asked["pods"]] == ["Pod"]

    stub.requests.clear()
    assert moorage("place", "-f", file, "--dry-run").code == 0
    assert [request.url.path for request in stub.requests] == [f"{CLUSTER}/placements"]


def test_replicas_of_a_workloads_template_can_be_placed(moorage, stub, pod_file):
    stub.on("POST", f"{CLUSTER}/placements", placed("a"))

    moorage("place", "--replicas", "4", "-f", pod_file(workload("Deployment")))

    assert stub.sent()["replicas"] == 4
    assert stub.sent()["template"]["spec"] == SPEC
    assert stub.sent()["template"]["metadata"]["name"] == "web"


def test_the_server_says_where_daemons_belong(moorage, stub, pod_file):
    explanation = {
        "feasible": ["n1"],
        "filters": {
            "NodeAffinity": {"n2": ["no"]},
            "TaintToleration": {"n3": ["no"], "n4": ["no"]},
            "NodeResourcesFit": {"n4": ["full"], "n5": ["full"]},
        },
    }
    asked = placed("web")
    asked["results"][0]["explanation"] = explanation
    stub.on("POST", f"{CLUSTER}/placements", asked)
    stub.on("POST", f"{CLUSTER}/apply", COUNTS)

    assert moorage("apply", "-f", pod_file(workload("DaemonSet"))).code == 0

    assert stub.sent(0)["dryRun"] is True
    assert names(stub.sent()["items"]) == [("Pod", "web-n1"), ("Pod", "web-n5")]


def test_workloads_can_be_stored_as_they_are(moorage, stub, pod_file):
    stub.on("POST", f"{CLUSTER}/apply", COUNTS)
    given = workload("StatefulSet")

    moorage("apply", "--no-pods", "-f", pod_file(given))

    assert stub.sent()["items"] == [given]


def test_a_job_that_groups_its_pods_is_told_what_to_write(moorage, stub, pod_file):
    stub.on("POST", f"{CLUSTER}/apply", COUNTS)
    scheduling = {"schedulingPolicy": {"gang": {"minCount": 2}}}

    ended = moorage("apply", "-f", pod_file(workload("Job", "batch/v1", scheduling=scheduling)))

    assert ended.code == 0
    assert ended.err.startswith("Job shop/web: spec.scheduling is not read; write a PodGroup")


def test_a_workload_of_which_no_pods_are_made_is_told(moorage, stub, pod_file):
    stub.on("POST", f"{CLUSTER}/apply", COUNTS)

    ended = moorage("apply", "-f", pod_file(workload("Job", "batch/v1", suspend=True)))

    assert ended.err == "Job shop/web: no pods are made of it\n"
