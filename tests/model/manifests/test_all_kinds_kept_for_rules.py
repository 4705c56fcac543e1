"""Objects that are kept for rules, between JSON and what rules read of them."""

from typing import Any

import pytest
from msgspec.structs import replace

from service.model.core.errors import InvalidManifest
from service.model.core.primitives import LabelSelector, OwnerReference
from service.model.registry.kinds import DECLARED_KINDS
from service.model.registry.manifests import TemplateCache, load_any, parse_any, parse_declared
from service.model.volumes.volume_kinds import CSIDriverBody
from service.model.workloads.owners import (
    ReplicaSetBody,
    ReplicaSetSpec,
)
from tests.kept_kinds import KINDS, kept

OWNER = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "name": "web",
    "uid": "u",
    "controller": True,
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_is_read_back_from_its_bytes_as_it_was(kind: str) -> None:
    sent = kept(kind, labels={"a": "b"}, annotations={"c": "d"}) | {
        "mine": 1,
        "status": {"x": None},
    }
    parsed = parse_any(sent, TemplateCache()).with_identity("uid", "2026-01-01T00:00:00Z")
    assert load_any(kind, parsed.render(), TemplateCache()) == parsed
    assert b'"mine":1' in parsed.render()
    assert b'"status":{"x":null}' in parsed.render()


def test_rules_read_what_the_kind_declares_and_the_metadata() -> None:
    metadata = {"annotations": {"c": "d"}, "labels": {"a": "b"}, "ownerReferences": [OWNER]}
    sent = kept("ReplicaSet", uid="u", deletionTimestamp="2026-01-01T00:00:00Z", **metadata)
    sent["spec"] = {"selector": {"matchLabels": {"app": "web"}}, "replicas": 3}
    read = parse_declared("ReplicaSet", sent).kept
    selector = LabelSelector(match_labels={"app": "web"})
    assert read.body == ReplicaSetBody(spec=ReplicaSetSpec(selector=selector, replicas=3))
    assert (read.namespace, read.name, read.uid) == ("shop", "kept", "u")
    assert (read.labels, read.annotations, read.terminating) == ({"a": "b"}, {"c": "d"}, True)
    assert read.controller == OwnerReference(
        api_version="apps/v1", kind="Deployment", name="web", uid="u"
    )


@pytest.mark.parametrize(
    ("kind", "fields", "wrong"),
    [
        ("Service", {"spec": {"selector": {"app": "a b"}}}, ["spec.selector[app]"]),
        ("Service", {"spec": {"selector": {"app": None}}}, ["spec.selector[app]"]),
        ("Service", {"spec": []}, ["spec"]),
        ("ReplicationController", {"spec": {"selector": [1]}}, ["spec.selector"]),
        ("ReplicaSet", {"spec": {"selector": {"app": "web"}}}, ["spec.selector.app"]),
        (
            "StatefulSet",
            {"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}},
            ["spec.selector.matchExpressions[0].values"],
        ),
    ],
)
def test_what_rules_read_has_to_be_valid(kind: str, fields: dict[str, Any], wrong: list[str]):
    with pytest.raises(InvalidManifest) as error:
        parse_declared(kind, kept(kind) | fields)
    assert [each.field for each in error.value.errors] == wrong


def test_what_no_rule_refuses_but_the_type_of_its_kind_cannot_hold_is_refused(monkeypatch) -> None:
    stricter = replace(DECLARED_KINDS["Service"], body=CSIDriverBody)
    monkeypatch.setitem(DECLARED_KINDS, "Service", stricter)
    with pytest.raises(InvalidManifest, match="Expected `bool`"):
        parse_declared("Service", kept("Service") | {"spec": {"storageCapacity": "much"}})


@pytest.mark.parametrize(
    ("reference", "field"),
    [
        ({**OWNER, "controller": "yes"}, "metadata.ownerReferences[0].controller"),
        ({**OWNER, "name": 1}, "metadata.ownerReferences[0].name"),
        ("web", "metadata.ownerReferences[0]"),
    ],
)
def test_references_to_owners_have_to_be_valid(reference: Any, field: str):
    with pytest.raises(InvalidManifest) as error:
        parse_declared("ReplicaSet", kept("ReplicaSet", ownerReferences=[reference]))
    assert [each.field for each in error.value.errors] == [field]


def test_an_owner_that_is_no_controller_does_not_count() -> None:
    owners = [{**OWNER, "controller": False}, {**OWNER, "name": "true"}]
    assert parse_declared(
        "ReplicaSet", kept("ReplicaSet", ownerReferences=owners)
    ).kept.controller == (
        OwnerReference(api_version="apps/v1", kind="Deployment", name="true", uid="u")
    )


def test_each_kind_declares_an_example_and_names_of_its_own() -> None:
    names = [name for each in DECLARED_KINDS.values() for name in (each.plural, *each.short_names)]
    assert len(names) == len(set(names))
    for kind in KINDS:
        assert parse_any(kept(kind), TemplateCache()).kind == kind
