"""Kubernetes' own gangs between JSON and objects: what is read of them, and that the rest stays."""

from typing import Any

import msgspec
import pytest

from service.model.core.errors import InvalidManifest
from service.model.pods.scheduling_groups import GroupMembership
from service.model.registry.manifests import (
    DeclaredManifest,
    PodGroupManifest,
    TemplateCache,
    load_any,
    load_pod,
    parse_any,
    parse_pod,
)

TEMPLATES = TemplateCache()
METADATA = {"name": "train", "namespace": "shop"}
POLICY = {"schedulingPolicy": {"gang": {"minCount": 2}}}


def manifest(kind: str, version: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": kind,
        "metadata": METADATA,
        "spec": spec,
    }


KEPT = [
    manifest("Workload", "v1alpha1", podGroups=[{"name": "a", "policy": {"basic": {}}}]),
    *(
        manifest("Workload", version, podGroupTemplates=[{"name": "a", **POLICY}])
        for version in ("v1alpha2", "v1alpha3", "v1beta1")
    ),
    *(
        manifest("PodGroup", version, **POLICY, priority=7) | {"status": {"conditions": []}}
        for version in ("v1alpha2", "v1alpha3", "v1beta1")
    ),
]


@pytest.mark.parametrize("sent", KEPT, ids=lambda sent: f"{sent['kind']} {sent['apiVersion']}")
def test_an_object_is_stored_and_read_back_in_its_version(sent: dict[str, Any]) -> None:
    parsed = parse_any(msgspec.json.encode(sent), TEMPLATES)
    assert isinstance(parsed, DeclaredManifest | PodGroupManifest)
    body = parsed.render()
    assert msgspec.json.decode(body) == sent
    assert load_any(parsed.kind, body, TEMPLATES) == parsed


@pytest.mark.parametrize(
    ("spec", "least", "key"),
    [
        ({"schedulingPolicy": {"gang": {"minCount": 3}}}, 3, None),
        ({"schedulingPolicy": {"basic": {}}}, 0, None),
        ({"schedulingPolicy": {"basic": {}}, "schedulingConstraints": {"topology": []}}, 0, None),
        (
            {
                "schedulingPolicy": {"basic": {}},
                "schedulingConstraints": {"topology": [{"key": "r"}]},
            },
            1,
            "r",
        ),
    ],
)
def test_a_group_is_read_as_policy_and_constraint_say(
    spec: dict[str, Any], least: int, key: str | None
) -> None:
    parsed = parse_any(manifest("PodGroup", "v1alpha2", **spec), TEMPLATES)
    assert isinstance(parsed, PodGroupManifest)
    assert (parsed.group.min_member, parsed.group.topology_key) == (least, key)


@pytest.mark.parametrize("version", ["v1alpha2", "v1alpha3", "v1beta1"])
def test_a_group_means_the_same_in_each_version(version: str) -> None:
    constraints = {"topology": [{"key": "rack"}]}
    sent = manifest("PodGroup", version, **POLICY, schedulingConstraints=constraints)
    parsed = parse_any(sent, TEMPLATES)
    assert isinstance(parsed, PodGroupManifest)
    assert (parsed.group.min_member, parsed.group.topology_key) == (2, "rack")
    assert parsed.warnings == ()


POD_GROUP_TEMPLATES = [{"name": "a", **POLICY}]
IN_WORKLOAD = [{"name": "a", "policy": {"basic": {}}}]
REFUSED = {
    "a group of a composite group": (
        manifest("PodGroup", "v1alpha3", **POLICY, parentCompositePodGroupName="all"),
        {"spec.parentCompositePodGroupName": "must not be set"},
    ),
    "a template of a composite group": (
        manifest("Workload", "v1beta1", compositePodGroupTemplates=POD_GROUP_TEMPLATES),
        {"spec.compositePodGroupTemplates": "list the groups in podGroupTemplates"},
    ),
    "a composite group": (
        manifest("CompositePodGroup", "v1alpha3", **POLICY),
        {"kind": "write a PodGroup for each of their groups"},
    ),
    "a PodGroup of a version that has none": (
        manifest("PodGroup", "v1alpha1", **POLICY),
        {"apiVersion": "write scheduling.k8s.io/v1beta1 for a PodGroup"},
    ),
    "templates in a version that has none": (
        manifest("Workload", "v1alpha1", podGroupTemplates=POD_GROUP_TEMPLATES),
        {"spec.podGroupTemplates": "write podGroups, or change apiVersion"},
    ),
    "groups of a Workload in a later version": (
        manifest("Workload", "v1beta1", podGroups=IN_WORKLOAD),
        {"spec.podGroups": "write podGroupTemplates, or change apiVersion"},
    ),
    "a Workload without groups": (
        manifest("Workload", "v1alpha2", controllerRef=None),
        {"spec.podGroupTemplates": "is required"},
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_with_what_to_write_instead(case: str) -> None:
    sent, expected = REFUSED[case]
    with pytest.raises(InvalidManifest) as refused:
        parse_any(msgspec.json.encode(sent), TEMPLATES)
    errors = {error.field: error.message for error in refused.value.errors}
    assert errors.keys() == expected.keys()
    assert all(hint in errors[field] for field, hint in expected.items())


def test_a_stored_group_of_a_composite_group_can_still_be_loaded() -> None:
    """Earlier versions of Moorage accepted it."""
    sent = manifest("PodGroup", "v1alpha3", **POLICY, parentCompositePodGroupName="all")
    loaded = load_any("PodGroup", msgspec.json.encode(sent), TEMPLATES)
    assert msgspec.json.decode(loaded.render()) == sent


def test_the_name_of_a_group_may_be_longer_than_a_label_if_no_label_names_it() -> None:
    """Controllers name groups after their objects; those of scheduler-plugins are named in labels."""
    name = "x" * 64
    upstream = manifest("PodGroup", "v1alpha2", **POLICY) | {"metadata": {"name": name}}
    assert parse_any(upstream, TEMPLATES).name == name
    plugins = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup"}
    with pytest.raises(InvalidManifest) as refused:
        parse_any(plugins | {"metadata": {"name": name}}, TEMPLATES)
    assert [error.field for error in refused.value.errors] == ["metadata.name"]


STATED = {
    "a group": ({"schedulingGroup": {"podGroupName": "g"}}, GroupMembership("g")),
    "a workload": (
        {"workloadRef": {"name": "w", "podGroup": "g"}},
        GroupMembership("g", "w"),
    ),
    "a replica": (
        {"workloadRef": {"name": "w", "podGroup": "g", "podGroupReplicaKey": "0"}},
        GroupMembership("g", "w", "0"),
    ),
    "nothing": ({}, None),
}


@pytest.mark.parametrize("case", STATED)
def test_a_pods_group_is_read_of_its_spec(case: str) -> None:
    """Pods with claims of their own share what is known of their specs, and so their group."""
    stated, membership = STATED[case]
    templates = TemplateCache()
    for name in ("data-0", "data-1"):
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
        spec = {"containers": [{"name": "c"}], "volumes": [volume], **stated}
        sent = {"metadata": {"name": name, "namespace": "shop"}, "spec": spec}
        parsed = parse_pod(msgspec.json.encode(sent), templates)
        assert parsed.template.group == membership
        loaded = load_pod(parsed.render(), TemplateCache())
        assert loaded.template.group == membership
        assert msgspec.json.decode(parsed.render())["spec"].items() >= stated.items()
