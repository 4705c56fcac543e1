"""Quotas and what pods are charged, as `pkg/quota/v1/evaluator/core` does it."""

from typing import Any

import pytest

from service.model.core.errors import InvalidManifest
from service.model.core.quantity import NANO, parse_quantity
from service.model.policies.quota import format_amount, pod_charge
from service.model.policies.quota_spec import MatchScope
from service.model.registry.manifests import (
    TemplateCache,
    load_quota,
    parse_any,
    parse_pod,
    parse_quota,
)


def quota(**spec: Any) -> dict[str, Any]:
    return {"kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "shop"}, "spec": spec}


def charge(**spec: Any) -> Any:
    manifest = {"metadata": {"name": "p"}, "spec": spec}
    return pod_charge(parse_pod(manifest, TemplateCache()).pod.spec)


def container(name: str = "c", **resources: dict[str, str]) -> dict[str, Any]:
    return {"name": name, "resources": resources}


def test_a_quota_is_kept_as_it_was_sent_but_for_status_and_names() -> None:
    sent = quota(
        hard={"pods": 3, "requests.cpu": "1500m"},
        scopes=["CrossNamespaceAffinity"],
        scopeSelector={"matchExpressions": [{"scopeName": "PriorityClass"}]},
        mine="kept",
    )
    del sent["spec"]["mine"]
    parsed = parse_quota(sent | {"status": {"used": {"pods": "9"}}, "mine": "kept"})
    body = parsed.render()
    assert b'"status"' not in body
    assert b'"mine":"kept"' in body
    assert b'"scopes":["CrossNamespacePodAffinity"]' in body
    assert b'{"scopeName":"PriorityClass","operator":"Exists"}' in body
    assert load_quota(body) == parsed
    assert parsed.quota.hard == {"pods": 3 * NANO, "requests.cpu": 3 * NANO // 2}


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"hard": {"cows": "1"}}, ["spec.hard[cows]"]),
        ({"hard": {"pods": "-1"}}, ["spec.hard[pods]"]),
        ({"hard": {"pods": "1500m"}}, ["spec.hard[pods]"]),
        ({"hard": {"requests.gpu.io/card": "0.5"}}, ["spec.hard[requests.gpu.io/card]"]),
        ({"hard": {"opportunity.nodes": "0.5"}}, ["spec.hard[opportunity.nodes]"]),
        ({"hard": {"cpu": {}}}, ["spec.hard[cpu]"]),
        ({"hard": []}, ["spec.hard"]),
        ({"scopes": ["All"]}, ["spec.scopes[0]"]),
        ({"scopes": ["Terminating", "NotTerminating"]}, ["spec.scopes"]),
        ({"hard": {"cpu": "1"}, "scopes": ["BestEffort"]}, ["spec.scopes[0]"]),
        ({"hard": {"secrets": "1"}, "scopes": ["PriorityClass"]}, ["spec.scopes[0]"]),
        ({"unknown": 1}, ["spec.unknown"]),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "BestEffort", "operator": "In"}]
                }
            },
            ["spec.scopeSelector.matchExpressions[0].operator"],
        ),
    ],
)
def test_wrong_quotas_name_every_field(spec: dict[str, Any], fields: list[str]) -> None:
    with pytest.raises(InvalidManifest) as caught:
        parse_any(quota(**spec), TemplateCache())
    assert [each.field for each in caught.value.errors] == fields


def test_quotas_on_what_moorage_does_not_hold_are_accepted() -> None:
    hard = {"services": "1", "count/deployments.apps": "2", "requests.storage": "1Gi"}
    assert parse_quota(quota(hard=hard)).quota.sent == hard


def test_requests_and_limits_have_the_names_that_quotas_give_them() -> None:
    """Init containers count as the greatest, sidecars and overhead on top."""
    charged = charge(
        containers=[
            container(
                requests={"cpu": "1", "ephemeral-storage": "1Gi"},
                limits={"cpu": "2", "gpu.io/card": "1", "hugepages-2Mi": "2Mi"},
            )
        ],
        initContainers=[
            container("init", requests={"cpu": "3"}, limits={"cpu": "3"}),
            container("side", requests={"memory": "1Gi"}) | {"restartPolicy": "Always"},
        ],
        overhead={"cpu": "100m", "memory": "1Gi"},
    )
    told = {name: format_amount(name, nanos) for name, nanos in charged.amounts.items()}
    assert told == {
        "pods": "1",
        "count/pods": "1",
        "cpu": "3100m",
        "requests.cpu": "3100m",
        "limits.cpu": "3100m",
        "memory": "2Gi",
        "requests.memory": "2Gi",
        "ephemeral-storage": "1Gi",
        "requests.ephemeral-storage": "1Gi",
        "hugepages-2Mi": "2Mi",
        "requests.hugepages-2Mi": "2Mi",
        "requests.gpu.io/card": "1",
    }


def test_containers_that_are_silent_are_named() -> None:
    silent = charge(
        containers=[container("b", requests={"cpu": "1"}), container("a", limits={"memory": "1Gi"})]
    ).silent
    assert silent == {
        "cpu": ("a",),
        "requests.cpu": ("a",),
        "memory": ("b",),
        "requests.memory": ("b",),
        "limits.cpu": ("a", "b"),
        "limits.memory": ("b",),
    }


def test_what_is_said_for_the_whole_pod_is_said_for_every_container() -> None:
    spec = {"resources": {"requests": {"cpu": "1"}}, "containers": [container()]}
    assert "requests.cpu" not in charge(**spec).silent


@pytest.mark.parametrize(
    ("operator", "values", "inside"),
    [
        ("Exists", (), (True, False)),
        ("DoesNotExist", (), (False, True)),
        ("In", ("high", "higher"), (True, False)),
        ("In", ("low",), (False, False)),
        ("NotIn", ("high",), (False, True)),
    ],
)
def test_priority_classes_as_a_scope(
    operator: Any, values: tuple[str, ...], inside: tuple[bool, bool]
) -> None:
    scope = MatchScope(scope_name="PriorityClass", operator=operator, values=values)
    pods = [charge(containers=[container()], priorityClassName=name) for name in ("high", "")]
    assert tuple(each.is_in(scope, empty_list_means_all=False) for each in pods) == inside


@pytest.mark.parametrize(
    ("resource", "sent", "shown"),
    [
        ("memory", "2048Mi", "2Gi"),
        ("requests.memory", "1500Mi", "1500Mi"),
        ("limits.memory", "1G", "1000000000"),
        ("memory", "0", "0"),
        ("memory", "100m", "100m"),
        ("requests.cpu", "2000m", "2"),
        ("requests.cpu", "1024", "1024"),
        ("pods", "1024", "1024"),
    ],
)
def test_bytes_are_shown_in_the_largest_binary_unit_that_is_exact(
    resource: str, sent: str, shown: str
) -> None:
    assert format_amount(resource, parse_quantity(sent)) == shown
