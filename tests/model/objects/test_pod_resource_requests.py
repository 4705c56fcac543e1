"""What a pod asks of a node, rule by rule."""

import msgspec
import pytest

from service.model.core.quantity import NANO
from service.model.pods.defaults import fill_defaults
from service.model.pods.pod import PodResize, PodSpec
from service.model.pods.requests import (
    DEFAULT_CPU_MILLI,
    DEFAULT_MEMORY_BYTES,
    ResizeRules,
    amounts_by_rules,
    host_ports,
    placed_requests,
    pod_requests,
)
from service.model.policies.quota import pod_charge


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


PART, WHOLE = ResizeRules(), ResizeRules(pod_level=True)
SUM = ResizeRules(pod_level=True, by_sum=True)
"""The rules of 1.35, 1.36, and 1.37."""


def status_of(*cpus, infeasible=False, **whole):
    """The status of the containers c and d, with the cpu in use and allocated, and of the pod."""
    containers = [
        {"name": name} | reported(used, given)
        for name, (used, given) in zip("cd", cpus, strict=False)
    ]
    status = {"containerStatuses": containers, "infeasible": infeasible}
    return msgspec.convert(status | reported(whole.get("used"), whole.get("given")), PodResize)


def reported(used, given):
    """Without the resources in use if that is None, and with empty ones if it is empty."""
    resources = {"requests": {"cpu": used}} if used else {}
    return ({} if used is None else {"resources": resources}) | (
        {} if given is None else {"allocatedResources": {"cpu": given}}
    )


def two(*cpus):
    return [container(cpu, name=name) for name, cpu in zip("cd", cpus, strict=True)]


@pytest.mark.parametrize(
    ("status", "by_container", "by_sum"),
    [
        # One grows, the other shrinks: 3 and 3 at most, but never both at the same time.
        (status_of(("1", "1"), ("3", "3")), 6_000, 4_000),
        (status_of(("1", "2"), ("3", "1")), 6_000, 4_000),
        # What is missing counts as specified, or as allocated.
        (status_of((None, "5"), (None, None)), 4_000, 6_000),
        (status_of(("", "5"), ("3", None)), 8_000, 8_000),
        # Nothing that is specified counts of a resize that never happens.
        (status_of(("1", "1"), ("3", "3"), infeasible=True), 4_000, 4_000),
        (status_of(("1", "2"), ("3", "1"), infeasible=True), 5_000, 4_000),
        (status_of(("", None), infeasible=True), 1_000, 0),
    ],
)
def test_the_sum_of_maxima_counts_and_from_1_37_on_the_maximum_of_sums(
    status, by_container, by_sum
):
    pod = spec(*two("3", "1"))
    counted = [placed_requests(pod, status, rules).amounts.get("cpu", 0) for rules in (PART, SUM)]
    assert counted == [by_container, by_sum]


def test_the_status_of_an_ordinary_init_container_counts_from_1_37_on():
    pod = spec(container("1"), init=[container("2", name="d")])
    status = msgspec.convert(
        {"initContainerStatuses": [{"name": "d", "resources": {"requests": {"cpu": "4"}}}]},
        PodResize,
    )
    counted = [placed_requests(pod, status, rules).amounts["cpu"] for rules in (PART, SUM)]
    assert counted == [2_000, 4_000]


@pytest.mark.parametrize(
    ("status", "counted"),
    [
        (status_of(used="5", given="4"), [3_000, 5_000, 5_000]),
        (status_of(used="2", given="1"), [3_000, 3_000, 3_000]),
        (status_of(used="2", given="1", infeasible=True), [3_000, 2_000, 2_000]),
        (status_of(given="9"), [3_000, 3_000, 3_000]),
    ],
)
def test_a_pod_that_is_resized_as_a_whole_counts_so_from_1_36_on(status, counted):
    pod = spec(*two("1", "1"), resources={"requests": {"cpu": "3"}})
    assert [
        placed_requests(pod, status, rules).amounts["cpu"] for rules in (PART, WHOLE, SUM)
    ] == counted


def test_what_the_pod_as_a_whole_uses_stands_for_its_containers_from_1_37_on():
    pod = spec(*two("1", "1"))
    status = status_of(("9", "9"), used="4", given="3")
    counted = [placed_requests(pod, status, rules).amounts["cpu"] for rules in (PART, WHOLE, SUM)]
    assert counted == [10_000, 10_000, 4_000]


def test_a_request_that_an_infeasible_resize_alone_has_is_zero_in_1_36_only():
    pod = spec(*two("1", "1"), resources={"requests": {"cpu": "3", "memory": "1Gi"}})
    status = status_of(used="2", given="1", infeasible=True)
    whole, by_sum = (placed_requests(pod, status, rules).amounts for rules in (WHOLE, SUM))
    assert whole == {"cpu": 2_000, "memory": 0}
    assert by_sum == {"cpu": 2_000}


def test_a_pod_may_use_what_it_or_its_status_names():
    pod = spec(container("1"))
    status = msgspec.convert(
        {"containerStatuses": [{"name": "c", "allocatedResources": {"memory": "1Gi"}}]}, PodResize
    )
    assert [amounts.keys() for amounts in amounts_by_rules(pod, None)] == [{"cpu"}] * 3
    assert {"cpu", "memory"} in [amounts.keys() for amounts in amounts_by_rules(pod, status)]


def test_quotas_charge_limits_while_containers_are_resized_but_not_the_pod_as_a_whole():
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    pod = spec({"name": "c", "resources": resources})
    in_use = {"requests": {"cpu": "3"}, "limits": {"cpu": "5"}}
    status = msgspec.convert(
        {
            "containerStatuses": [{"name": "c", "resources": in_use}],
            "resources": {"requests": {"cpu": "7"}},
            "allocatedResources": {"cpu": "7"},
        },
        PodResize,
    )
    for rules in (PART, WHOLE, SUM):
        charged = pod_charge(pod, status, rules).amounts
        assert (charged["requests.cpu"], charged["limits.cpu"]) == (3 * NANO, 5 * NANO)
    shrinking = msgspec.structs.replace(status, infeasible=True)
    assert pod_charge(pod, shrinking, SUM).amounts["limits.cpu"] == 5 * NANO


def test_host_ports_of_containers_and_sidecars_count_with_defaults():
    ports = [{"containerPort": 80}, {"containerPort": 80, "hostPort": 8080}]
    dns = {"containerPort": 53, "hostPort": 53, "hostIP": "10.0.0.1", "protocol": "UDP"}
    pod = spec(
        {"ports": ports},
        init=[{"ports": [dns], "restartPolicy": "Always"}, {"ports": ports}],
    )
    assert host_ports(pod) == (("0.0.0.0", "TCP", 8080), ("10.0.0.1", "UDP", 53))


@pytest.mark.parametrize(
    ("whole", "requests", "limits"),
    [
        (
            {"requests": {"memory": "8Gi"}},
            {"memory": "8Gi", "hugepages-2Mi": "12582912", "cpu": "1"},
            {"hugepages-2Mi": "12582912"},
        ),
        (
            {"limits": {"memory": "8Gi", "hugepages-2Mi": "64Mi"}},
            {"memory": "8Gi", "hugepages-2Mi": "64Mi", "cpu": "1"},
            {"memory": "8Gi", "hugepages-2Mi": "64Mi"},
        ),
        ({}, None, None),
    ],
)
def test_huge_pages_of_containers_limit_a_pod_that_asks_for_anything_as_a_whole(
    whole, requests, limits
):
    """And with limits, requests that are missing as a whole are those of the containers."""
    huge = {"hugepages-2Mi": "4Mi"}
    spec = {
        "containers": [{"resources": {"limits": huge, "requests": {"cpu": "1", **huge}}}],
        "initContainers": [{"resources": {"limits": {"hugepages-2Mi": "12Mi"}}}],
        "resources": whole,
    }
    fill_defaults(spec)
    assert spec["resources"].get("requests") == requests
    assert spec["resources"].get("limits") == limits
