"""What a pod asks of a node, rule by rule."""

import msgspec
import pytest

from service.model.pods.pod import PodResize, PodSpec
from service.model.pods.requests import (
    DEFAULT_CPU_MILLI,
    DEFAULT_MEMORY_BYTES,
    host_ports,
    placed_requests,
    pod_requests,
)


def container(cpu=None, memory=None, *, always=False, name="c", **more):
    asked = {"cpu": cpu, "memory": memory} | more
    requests = {key: value for key, value in asked.items() if value is not None}
    made = {"name": name, "resources": {"requests": requests}}
    return made | ({"restartPolicy": "Always"} if always else {})


def spec(*containers, init=(), **fields):
    sent = {"containers": list(containers), "initContainers": list(init)} | fields
    return msgspec.convert(sent, PodSpec)


def cpu(pod):
    return pod_requests(pod).amounts["cpu"]


def test_containers_are_summed_and_rounded_up_once_per_pod():
    assert cpu(spec(container("0.1005"), container("0.1005"))) == 201


def test_init_containers_count_by_the_greatest_not_the_sum():
    assert cpu(spec(container("1"), init=[container("2"), container("3")])) == 3_000
    assert cpu(spec(container("4"), init=[container("2")])) == 4_000


def test_sidecars_run_beside_the_containers():
    assert cpu(spec(container("1"), init=[container("2", always=True)])) == 3_000


def test_an_init_container_runs_beside_the_sidecars_before_it_only():
    before = [container("2", always=True), container("3")]
    after = [container("3"), container("2", always=True)]
    assert cpu(spec(container("1"), init=before)) == 5_000
    assert cpu(spec(container("0"), init=after)) == 3_000


def test_pod_level_requests_replace_the_sum_and_overhead_comes_on_top():
    pod = spec(
        container("3", "1Gi"),
        resources={"requests": {"cpu": "1", "example.com/x": "9"}},
        overhead={"cpu": "250m"},
    )
    assert pod_requests(pod).amounts == {"cpu": 1_250, "memory": 2**30}


def test_zeros_are_kept_and_unknown_names_are_not_counted():
    pod = spec(container("0", **{"example.com/gpu": "2", "pods": "5"}))
    assert pod_requests(pod).amounts == {"cpu": 0, "example.com/gpu": 2}


def scored(pod):
    requests = pod_requests(pod)
    return requests.nonzero_cpu, requests.nonzero_memory


def test_for_scoring_silent_containers_get_a_default_and_explicit_zeros_do_not():
    default = (DEFAULT_CPU_MILLI, DEFAULT_MEMORY_BYTES)
    assert scored(spec(container())) == default
    assert scored(spec(container(), container())) == tuple(2 * amount for amount in default)
    assert scored(spec(container("0", "0"))) == (0, 0)
    assert scored(spec(container("1"))) == (1_000, DEFAULT_MEMORY_BYTES)


def test_a_placed_pod_with_pod_level_requests_has_defaults_for_what_neither_level_mentions():
    pod_level = {"requests": {"memory": "1Gi"}}
    silent = placed_requests(spec(container(), resources=pod_level), None)
    partly = placed_requests(spec(container("1"), container(), resources=pod_level), None)
    zero = placed_requests(spec(container("0"), container(), resources=pod_level), None)
    assert (silent.nonzero_cpu, silent.nonzero_memory) == (DEFAULT_CPU_MILLI, 2**30)
    assert (partly.nonzero_cpu, partly.nonzero_memory) == (1_000, 2**30)
    assert (zero.nonzero_cpu, zero.nonzero_memory) == (0, 2**30)


def test_an_incoming_pod_with_pod_level_requests_has_defaults_for_every_silent_container():
    pod_level = {"requests": {"memory": "1Gi"}}
    partly = spec(container("1"), container(), resources=pod_level)
    assert scored(partly) == (1_000 + DEFAULT_CPU_MILLI, 2**30)


def resize(*, infeasible=False, **quantities):
    status = {
        "name": "c",
        "resources": {"requests": {"cpu": quantities["actual"]}},
        "allocatedResources": {"cpu": quantities["allocated"]},
    }
    return msgspec.convert({"containerStatuses": [status], "infeasible": infeasible}, PodResize)


@pytest.mark.parametrize(
    ("spec_cpu", "actual", "allocated", "infeasible", "expected"),
    [
        ("1", "2", "3", False, 3_000),
        ("1", "4", "3", False, 4_000),
        ("5", "4", "3", False, 5_000),
        ("5", "4", "3", True, 4_000),
    ],
)
def test_a_resizing_container_counts_by_its_greatest_value(
    spec_cpu, actual, allocated, infeasible, expected
):
    state = resize(actual=actual, allocated=allocated, infeasible=infeasible)
    assert placed_requests(spec(container(spec_cpu)), state).amounts["cpu"] == expected


def test_a_status_without_actual_resources_does_not_count():
    status = msgspec.convert(
        {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "9"}}]}, PodResize
    )
    assert placed_requests(spec(container("1")), status).amounts == {"cpu": 1_000}


def test_host_ports_of_containers_and_sidecars_count_with_defaults():
    ports = [{"containerPort": 80}, {"containerPort": 80, "hostPort": 8080}]
    dns = {"containerPort": 53, "hostPort": 53, "hostIP": "10.0.0.1", "protocol": "UDP"}
    pod = spec(
        {"ports": ports},
        init=[{"ports": [dns], "restartPolicy": "Always"}, {"ports": ports}],
    )
    assert host_ports(pod) == (("0.0.0.0", "TCP", 8080), ("10.0.0.1", "UDP", 53))
