"""The slow reference implementation against the vectors: it is what the engine is held to."""

import pytest

from tests.conformance import vectors
from tests.reference import ReferenceCluster, View, evaluate, evaluate_preemption
from tests.seeds import EXPLORING

SHARE = 3
"""The gate asks it for one in so many cases, and the engine for all."""


@pytest.mark.parametrize("number", range(vectors.CHUNKS))
def test_reference_answers_every_field_of_a_case(number):
    failures = [
        failure
        for case in vectors.chunk(number)[:: 1 if EXPLORING else SHARE]
        if (failure := vectors.report(case, reference_answer(case), vectors.expected(case)))
    ]
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("version", vectors.versions())
def test_reference_answers_as_each_version_of_kubernetes(version):
    cases = vectors.of_version(version)[:: 1 if EXPLORING else 2 * SHARE]
    failures = [
        failure
        for case in cases
        if "resourceClaims" not in case
        if (failure := vectors.report(case, reference_answer(case), vectors.explained(case)))
    ]
    assert not failures, "\n".join(failures)


def reference_answer(case):
    config = vectors.config_of(case) | {"preAdmission": case["config"].get("preAdmission", False)}
    parts = [case[name] for name in ("namespaces", "nodes", "pods", "pod")]
    return evaluate(config, *parts, vectors.objects_of(case))


@pytest.mark.parametrize("number", range(vectors.CHUNKS))
def test_reference_chooses_the_victims_of_a_preemption(number):
    failures = [
        failure
        for case in vectors.preemptions()[number :: vectors.CHUNKS * (1 if EXPLORING else SHARE)]
        if (failure := vectors.report(case, preemption_answer(case), vectors.expected(case)))
    ]
    assert not failures, "\n".join(failures)


def preemption_answer(case):
    config = vectors.config_of(case)
    parts = [case[name] for name in ("namespaces", "nodes", "pods")]
    view = View(config, *parts, vectors.objects_of(case))
    return evaluate_preemption(view, case["pod"], case.get("podDisruptionBudgets", []))


@pytest.mark.parametrize("trace", vectors.traces(), ids=lambda trace: trace["name"])
def test_reference_follows_every_trace(trace):
    namespaces = [("Namespace", each) for each in trace["namespaces"]]
    nodes = [("Node", each) for each in trace["nodes"]]
    cluster = ReferenceCluster(vectors.config_of(trace), namespaces + nodes)
    for step in trace["steps"]:
        follow(cluster, step)


def follow(cluster, step):
    match step["op"]:
        case "schedule":
            schedule(cluster, step["pod"], step["expect"])
        case "deletePod":
            cluster.delete_pod(step["namespace"], step["name"])
        case "addNode" | "updateNode":
            cluster.put_node(step["node"])
        case "deleteNode":
            cluster.delete_node(step["name"])
        case "updateNamespace":
            cluster.put_namespace(step["namespace"])


def schedule(cluster, pod, want):
    answer = cluster.evaluate(pod)
    got = {field: answer[field] for field in ("feasible", "best", "total", "message")}
    got["chosen"] = min(answer["best"], default=None)
    assert not vectors.differences(got, {"message": None} | want)
    if got["chosen"]:
        cluster.bind(pod, got["chosen"])


def test_vector_files_are_complete():
    assert len(vectors.load("fuzz_public")) == 1480
    assert len(vectors.load("seed_examples")) == 88
    assert len(vectors.load("default_spread_public")) == 200
    assert len(vectors.load("volumes_public")) == 800
    assert len(vectors.traces()) == 20
    assert len(vectors.preemptions()) == 600 + 7
    assert sum(len(vectors.chunk(number)) for number in range(vectors.CHUNKS)) == 2568 + 30


def test_a_difference_names_field_plugin_and_node():
    got = {"filters": {"NodePorts": {"n1": ["busy"]}}, "message": None}
    want = {"filters": {"NodePorts": {"n1": ["taken"]}}, "message": None, "best": ["n2"]}
    assert vectors.differences(got, want) == [
        "best: got '(absent)', want ['n2']",
        "filters.NodePorts.n1: got ['busy'], want ['taken']",
    ]
