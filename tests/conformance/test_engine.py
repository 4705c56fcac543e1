"""The engine against every vector, each state reached in two ways, and along every trace."""

import pytest

from service.engine import explain, place
from tests.conformance import doors, vectors
from tests.engine import objects
from tests.seeds import EXPLORING
from tools.conformance.cases import asks_for_preemption

PUBLIC_SHARE = 2
"""The gate asks for one in this many public cases; part of them is among those of each version."""
WANDERING_SHARE = 4
"""The gate reaches the state of one in so many cases by a winding road."""
VERSION_CHUNKS = 4
"""The cases of each version are dealt to this many tests."""


@pytest.mark.parametrize("number", range(vectors.CHUNKS))
def test_engine_answers_every_field_of_every_case(number):
    cases = vectors.chunk(number)[:: 1 if EXPLORING else PUBLIC_SHARE]
    told = [doors.failure(case, doors.fresh(case)) for case in cases]
    assert not any(told), "\n".join(filter(None, told))


@pytest.mark.parametrize("number", range(vectors.CHUNKS))
def test_engine_answers_alike_by_whatever_road_it_came_to_a_state(number):
    cases = vectors.chunk(number)[:: 1 if EXPLORING else WANDERING_SHARE]
    told = [doors.failure(case, doors.wandering(case)) for case in cases]
    assert not any(told), "\n".join(filter(None, told))


@pytest.mark.parametrize("number", range(vectors.CHUNKS))
def test_engine_chooses_the_victims_of_every_preemption(number):
    cases = vectors.preemptions()[number :: vectors.CHUNKS]
    told = [doors.preemption_failure(case, doors.fresh(case)) for case in cases]
    assert not any(told), "\n".join(filter(None, told))


@pytest.mark.parametrize("number", range(vectors.CHUNKS))
def test_engine_chooses_the_same_victims_where_it_tries_each_node_by_itself(number, monkeypatch):
    monkeypatch.setattr("service.engine.state.pods.importance.DEPTH_MAX", 0)
    cases = vectors.preemptions()[number :: 4 * vectors.CHUNKS]
    told = [doors.preemption_failure(case, doors.fresh(case)) for case in cases]
    assert not any(told), "\n".join(filter(None, told))


@pytest.mark.parametrize("version", vectors.versions())
@pytest.mark.parametrize("number", range(VERSION_CHUNKS))
def test_engine_answers_as_each_version_of_kubernetes(version, number):
    cases = vectors.of_version(version)[number::VERSION_CHUNKS]
    told = [doors.failure(case, doors.fresh(case)) for case in cases]
    told += [
        doors.preemption_failure(case, doors.fresh(case))
        for case in cases
        if asks_for_preemption(case)
    ]
    assert not any(told), "\n".join(filter(None, told))


@pytest.mark.parametrize("version", vectors.versions())
def test_engine_answers_as_each_version_by_whatever_road_it_came_to_a_state(version):
    cases = vectors.of_version(version)[:: 1 if EXPLORING else 2 * WANDERING_SHARE]
    told = [doors.failure(case, doors.wandering(case)) for case in cases]
    assert not any(told), "\n".join(filter(None, told))


@pytest.mark.parametrize("trace", vectors.traces(), ids=lambda trace: trace["name"])
def test_engine_follows_every_trace(trace):
    config = vectors.config_of(trace)
    cluster = objects.cluster(config, trace["namespaces"], trace["nodes"], [])
    for step in trace["steps"]:
        follow(cluster, step)


def follow(cluster, step):
    match step["op"]:
        case "schedule":
            schedule(cluster, step["pod"], step["expect"])
        case "deletePod":
            cluster.delete_pod(step["namespace"], step["name"])
        case "addNode" | "updateNode":
            cluster.put_node(objects.node(step["node"]))
        case "deleteNode":
            cluster.delete_node(step["name"])
        case "updateNamespace":
            cluster.put_namespace(objects.namespace(step["namespace"]))


def schedule(cluster, manifest, want):
    pod = objects.pod(manifest, incoming=True)
    answer = explain(cluster, pod)
    assert answer.feasible == want["feasible"]
    assert answer.best == want["best"]
    assert answer.total == want["total"]
    assert answer.message == want.get("message")
    if want["chosen"] is None:
        return
    assert place(cluster, pod).node_name in want["best"]
    placed = manifest | {"spec": manifest["spec"] | {"nodeName": want["chosen"]}}
    cluster.put_pod(objects.pod(placed))
