"""Pods of a StatefulSet name claims of their own; what they share is read once, and is one spec."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from service.model.core.errors import InvalidManifest
from service.model.pods import template_cache as module
from service.model.registry.manifests import PodTemplate, TemplateCache, load_pod, parse_pod
from tests.builders import IGNORED_DURING_EXECUTION, requirement

CONTAINERS = [{"name": "c", "image": "db", "resources": {"limits": {"cpu": "1"}}}]
NAMES = st.sampled_from(("data-db-0", "d", "x" * 253)) | st.from_regex(
    r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True
)


def volume(name: str, **source: Any) -> dict[str, Any]:
    return {"name": name, **source}


def claim(name: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": name}}


def spec(*volumes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"containers": CONTAINERS, "volumes": list(volumes), **more}


def raw(spec: dict[str, Any], **metadata: Any) -> bytes:
    named = {"name": "p", "namespace": "default"} | metadata
    return msgspec.json.encode({"metadata": named, "spec": spec})


def two_claims(name: str) -> dict[str, Any]:
    disk = volume("scratch", emptyDir={})
    return spec(volume("data", **claim(name)), disk, volume("log", **claim(f"{name}-log")))


SHAPES = {
    "one claim": lambda name: spec(volume("data", **claim(name))),
    "two claims and a volume of no account": two_claims,
    "with the name of the host": lambda name: spec(
        volume("data", **claim(f"data-{name}"[:253])), hostname=name[:63], subdomain="db"
    ),
    "with a disk and an ephemeral volume": lambda name: spec(
        volume("disk", iscsi={"iqn": "iqn", "lun": 0, "targetPortal": "p"}),
        volume("own", ephemeral={"volumeClaimTemplate": {"spec": {}}}),
        volume("data", **claim(name)),
    ),
    "with members after it": lambda name: spec(volume("data", **claim(name)), tolerations=[]),
    "in a text": lambda name: spec(
        volume("data", **claim("one")),
        containers=[{"env": [{"name": "A", "value": f'"claimName":"{name}"'}]}],
    ),
    "in a selector": lambda name: spec(
        volume("data", **claim("one")), nodeSelector={"claimName": name[:63]}
    ),
    "in an unknown field": lambda name: spec(volume("data", **claim("one")), note=claim(name)),
    "of a daemon": lambda name: spec(
        volume("data", **claim("one")),
        affinity={
            "nodeAffinity": {
                IGNORED_DURING_EXECUTION: {
                    "nodeSelectorTerms": [
                        {"matchFields": [requirement("metadata.name", "In", name)]}
                    ]
                }
            }
        },
    ),
}
DERIVED = list(SHAPES)[:5]
"""Those whose next ones are made from the first and share its spec."""


def refuse_thorough(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on no template is worked out from the whole spec."""

    def refuse(*_: object) -> PodTemplate:
        raise AssertionError("worked out the thorough way")

    monkeypatch.setattr(module, "build_template", refuse)


def outcome(sent: bytes, templates: TemplateCache) -> object:
    try:
        read = parse_pod(sent, templates)
    except InvalidManifest as error:
        return error.errors
    return read, read.template, read.render(), read.pod.claims


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@given(st.lists(NAMES, min_size=1, max_size=4))
def test_what_is_read_after_a_sibling_is_what_is_read_without_one(shape, names):
    shared = TemplateCache()
    for name in names:
        sent = raw(shape(name))
        assert outcome(sent, shared) == outcome(sent, TemplateCache())
        assert outcome(sent, shared) == outcome(sent, TemplateCache())


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("odd", ["", "N", "-a", "a b", "ü", 'a"', "a\\", "a\n", "x" * 254, '"}'])
def test_an_odd_name_is_treated_as_ever(shape, odd):
    templates = TemplateCache()
    for first in ("one-1", "one-2"):
        parse_pod(raw(shape(first)), templates)
    sent = raw(shape(odd))
    assert outcome(sent, templates) == outcome(sent, TemplateCache())


@pytest.mark.parametrize("shape", DERIVED)
def test_the_next_pods_are_made_from_the_first_and_share_its_spec(shape, monkeypatch):
    templates = TemplateCache()
    first = parse_pod(raw(SHAPES[shape]("one-1")), templates)
    refuse_thorough(monkeypatch)
    second = parse_pod(raw(SHAPES[shape]("one-2")), templates)
    assert second.pod.spec is first.pod.spec
    assert second.pod.claims != first.pod.claims
    assert load_pod(second.render(), templates) == second


def test_claims_are_those_of_the_volumes_in_their_order():
    read = parse_pod(raw(two_claims("data-1")), TemplateCache()).pod
    assert read.claims == ("data-1", "data-1-log")
    assert [each.name for each in read.spec.volumes] == ["data", "log"]


def test_the_node_of_a_placed_one_may_stand_between_any_two_members():
    templates = TemplateCache()
    parse_pod(raw(SHAPES["with members after it"]("a")), templates)
    whole = raw(SHAPES["with members after it"]("other"))
    begin = whole.index(b'"spec":') + len(b'"spec":')
    for at in range(begin, len(whole)):
        for inserted in (b'"nodeName":"n1",', b',"nodeName":"n1"'):
            sent = whole[:at] + inserted + whole[at:]
            assert told(sent, templates) == told(sent, TemplateCache()), sent


def told(sent: bytes, templates: TemplateCache) -> object:
    try:
        return parse_pod(sent, templates)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the same
        return type(error), str(error)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"persistentVolumeClaim": {}}, "persistentVolumeClaim.claimName"),
        ({"persistentVolumeClaim": {"claimName": ""}}, "persistentVolumeClaim.claimName"),
        ({"persistentVolumeClaim": "data"}, "persistentVolumeClaim"),
        ({"ephemeral": {}}, "name"),
        ({"gcePersistentDisk": {"readOnly": True}}, "gcePersistentDisk.pdName"),
        ({"awsElasticBlockStore": {"volumeID": 1}}, "awsElasticBlockStore.volumeID"),
        ({"azureDisk": {"diskName": "a"}}, "azureDisk.diskURI"),
        ({"cinder": {"volumeID": ""}}, "cinder.volumeID"),
        ({"portworxVolume": {}}, "portworxVolume.volumeID"),
        ({"iscsi": {"iqn": "a", "readOnly": "yes"}}, "iscsi.readOnly"),
        ({"rbd": {"image": "a", "monitors": []}}, "rbd.monitors"),
        ({"rbd": {"image": "a", "monitors": [1]}}, "rbd.monitors[0]"),
    ],
)
def test_a_volume_that_scheduling_reads_is_checked(wrong, field):
    with pytest.raises(InvalidManifest) as refused:
        parse_pod(raw(spec(wrong)), TemplateCache())
    assert [each.field for each in refused.value.errors] == [f"spec.volumes[0].{field}"]
