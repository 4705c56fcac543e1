"""Pods of a DaemonSet name a node each; what they share is read once, and nothing else is assumed."""

import gc
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from service.model.core.errors import InvalidManifest
from service.model.pods import template_cache as module
from service.model.pods.template_cache import Json
from service.model.registry.manifests import (
    PodManifest,
    PodTemplate,
    TemplateCache,
    load_pod,
    parse_pod,
)
from tests.builders import (
    IGNORED_DURING_EXECUTION as IGNORED,
    PREFERRED,
    REQUIRED_DURING_EXECUTION,
    requirement,
)

CONTAINERS = [{"name": "c", "image": "agent", "ports": [{"containerPort": 80}]}]
LIMITED = [{"name": "c", "resources": {"limits": {"cpu": "100m", "memory": "1Gi"}}}]
ZONE = requirement("zone", "In", "a", "b")
OTHER_NODE = {"matchFields": [requirement("metadata.name", "In", "far")]}


def fields(*names: str, operator: str = "In") -> dict[str, Any]:
    return {"matchFields": [requirement("metadata.name", operator, *names)]}


def required(*terms: Any, **more: Any) -> dict[str, Any]:
    selector = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {IGNORED: selector} | more}}


def spec(rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"containers": CONTAINERS} | rules | more


def raw(spec: dict[str, Any], labels: dict[str, str] | None = None, **more: Any) -> bytes:
    metadata = {"name": "p", "namespace": "default", "labels": labels or {"app": "agent"}}
    return msgspec.json.encode({"metadata": metadata, "spec": spec} | more)


def affine(**keys: Any) -> dict[str, Any]:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "agent"}}} | keys
    return {"podAffinity": {IGNORED: [term]}}


SHAPES = {
    "the controller's own": lambda name: spec(required(fields(name))),
    "with defaults to fill in": lambda name: spec(required(fields(name)), containers=LIMITED),
    "with members after it": lambda name: spec(
        required(fields(name)), schedulerName="default-scheduler", tolerations=[{"key": "a"}]
    ),
    "with expressions in the term": lambda name: spec(
        required({"matchExpressions": [ZONE], **fields(name)})
    ),
    "with a preference after it": lambda name: spec(
        required(fields(name), **{PREFERRED: [{"weight": 1, "preference": OTHER_NODE}]})
    ),
    "with nodes of its own": lambda name: spec(required(fields(name)), nodeSelector={"os": "x"}),
    "with the name in a selector too": lambda name: spec(
        required(fields(name)), nodeSelector={"kubernetes.io/hostname": name}
    ),
    "with label keys": lambda name: spec(
        {"affinity": required(fields(name))["affinity"] | affine(matchLabelKeys=["version"])}
    ),
    "a preference before it": lambda name: spec(
        {
            "affinity": {
                "nodeAffinity": {
                    PREFERRED: [{"weight": 1, "preference": fields(name)}],
                    IGNORED: {"nodeSelectorTerms": [OTHER_NODE]},
                }
            }
        }
    ),
    "only a preference": lambda name: spec(
        {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": fields(name)}]}}}
    ),
    "in an unknown field": lambda name: spec(
        {"note": fields(name), "affinity": required(OTHER_NODE)["affinity"]}
    ),
    "a key that ends alike": lambda name: spec(
        {
            "note": {'x"matchFields': fields(name)["matchFields"]},
            "affinity": required(fields("far"))["affinity"],
        }
    ),
    "in a text": lambda name: spec(
        required(OTHER_NODE),
        containers=[{"env": [{"name": "A", "value": msgspec.json.encode(fields(name)).decode()}]}],
    ),
    "required during execution": lambda name: spec(
        {
            "affinity": {
                "nodeAffinity": {REQUIRED_DURING_EXECUTION: {"nodeSelectorTerms": [fields(name)]}}
            }
        }
    ),
    "both required": lambda name: spec(
        required(
            fields(name), **{REQUIRED_DURING_EXECUTION: {"nodeSelectorTerms": [fields("far")]}}
        )
    ),
    "several terms": lambda name: spec(required(fields(name), {"matchExpressions": [ZONE]})),
    "several fields": lambda name: spec(
        required({"matchFields": [*fields(name)["matchFields"], *OTHER_NODE["matchFields"]]})
    ),
    "all but one node": lambda name: spec(required(fields(name, operator="NotIn"))),
    "fields in another order": lambda name: spec(
        required({"matchFields": [{"values": [name], "operator": "In", "key": "metadata.name"}]})
    ),
}
DERIVED = list(SHAPES)[:6]
"""Those whose next ones are made from the first."""

LABELS = {"app": "agent", "version": "1"}
NAMES = st.sampled_from(("node-1", "n", "far", "0", "a.b-c.d", "x" * 253)) | st.from_regex(
    r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True
)


def refuse_thorough(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on no template is worked out from the whole spec."""

    def refuse(*_: object) -> PodTemplate:
        raise AssertionError("worked out the thorough way")

    monkeypatch.setattr(module, "build_template", refuse)


def meaning(manifest: PodManifest) -> tuple[object, ...]:
    template = manifest.template
    return manifest, template.spec, template.spec_json, template.label_keys, manifest.render()


def outcome(sent: bytes, templates: TemplateCache) -> tuple[object, ...]:
    try:
        read = parse_pod(sent, templates)
        created = read.created_now(templates)
    except InvalidManifest as error:
        return tuple(error.errors)
    return (*meaning(read), *meaning(created))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@given(st.lists(NAMES, min_size=1, max_size=4))
def test_what_is_read_after_a_sibling_is_what_is_read_without_one(shape, names):
    shared = TemplateCache()
    for name in names:
        sent = raw(shape(name), LABELS)
        assert outcome(sent, shared) == outcome(sent, TemplateCache())
        assert outcome(sent, shared) == outcome(sent, TemplateCache())


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize(
    "bad", ["", "N", "-a", "a-", "a b", "a_b", "ü", 'a"', "a\\", "a\n", "x" * 254, '"]}]', "a/b"]
)
def test_a_bad_name_is_refused_as_ever(shape, bad):
    templates = TemplateCache()
    for first in ("node-1", "node-2"):
        parse_pod(raw(shape(first)), templates)
    sent = raw(shape(bad))
    assert outcome(sent, templates) == outcome(sent, TemplateCache())


@pytest.mark.parametrize("shape", DERIVED)
def test_the_next_pods_of_a_daemon_are_made_from_the_first(shape, monkeypatch):
    templates = TemplateCache()
    parse_pod(raw(SHAPES[shape]("node-1")), templates)
    refuse_thorough(monkeypatch)
    one = parse_pod(raw(SHAPES[shape]("node-2")), templates)
    again = parse_pod(raw(SHAPES[shape]("node-2")), templates)
    loaded = load_pod(one.render(), templates)
    assert one.pod.spec is again.pod.spec
    assert one.pod.spec is loaded.pod.spec
    other = parse_pod(raw(SHAPES[shape]("node-3")), templates)
    assert other.pod.spec != one.pod.spec
    assert other.pod.spec.containers is one.pod.spec.containers


@pytest.mark.parametrize("shape", DERIVED)
def test_pods_that_are_loaded_are_made_from_the_first_too(shape, monkeypatch):
    bodies = [
        parse_pod(raw(SHAPES[shape](f"node-{i}")), TemplateCache()).placed(f"node-{i}").render()
        for i in range(3)
    ]
    templates = TemplateCache()
    load_pod(bodies[0], templates)
    refuse_thorough(monkeypatch)
    for body in bodies:
        assert load_pod(body, templates).render() == body


def test_a_pod_with_a_priority_is_made_from_the_first_with_it(monkeypatch):
    templates = TemplateCache()
    shape = SHAPES["the controller's own"]
    parse_pod(raw(shape("node-1")), templates).with_fields({"priority": 7}, templates)
    thorough = parse_pod(raw(shape("node-2")), TemplateCache()).with_fields(
        {"priority": 7}, TemplateCache()
    )
    refuse_thorough(monkeypatch)
    derived = parse_pod(raw(shape("node-2")), templates).with_fields({"priority": 7}, templates)
    assert meaning(derived) == meaning(thorough)


BEFORE_AND_AFTER = spec(required(fields("node-1")), tolerations=[])
MEMBER = b'"nodeName":"n1"'


def test_the_node_of_a_placed_one_may_stand_between_any_two_members():
    whole = raw(spec(required(fields("a-" + "x" * 240)), tolerations=[]))
    templates = TemplateCache()
    parse_pod(raw(BEFORE_AND_AFTER), templates)
    begin = whole.index(b'"spec":') + len(b'"spec":')
    for at in range(begin, len(whole)):
        for inserted in (MEMBER + b",", b"," + MEMBER):
            sent = whole[:at] + inserted + whole[at:]
            assert read(sent, templates) == read(sent, TemplateCache()), sent


def read(sent: bytes, templates: TemplateCache) -> object:
    try:
        return parse_pod(sent, templates)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the same
        return type(error), str(error)


def test_the_node_of_a_placed_one_is_found_where_the_api_server_puts_it(monkeypatch):
    templates = TemplateCache()
    shape = SHAPES["with members after it"]
    parse_pod(raw(shape("node-1")), templates)
    refuse_thorough(monkeypatch)
    members = shape("node-22")
    for position in range(len(members) + 1):
        items = list(members.items())
        items.insert(position, ("nodeName", "node-22"))
        assert parse_pod(raw(dict(items)), templates).pod.node_name == "node-22"


def test_a_member_is_known_as_long_as_a_pod_has_it_and_takes_no_room():
    templates = TemplateCache(bytes_max=40_000)
    plain = parse_pod(raw({"containers": CONTAINERS}), templates).pod.spec
    shape = SHAPES["the controller's own"]
    held = [parse_pod(raw(shape(f"node-{i}")), templates) for i in range(200)]
    assert all(
        parse_pod(raw(shape(f"node-{i}")), templates).pod.spec is each.pod.spec
        for i, each in enumerate(held)
    )
    assert parse_pod(raw({"containers": CONTAINERS}), templates).pod.spec is plain
    del held
    gc.collect()
    assert templates.families.members <= 1


def test_families_are_bounded_in_bytes_and_the_least_recently_used_goes_first(monkeypatch):
    templates = TemplateCache(bytes_max=200_000)

    def of(image: str, node: str) -> Json:
        return spec(required(fields(node)), containers=[{"image": image}])

    for number in range(20):
        parse_pod(raw(of(f"other-{number}", "node-1")), templates)
        parse_pod(raw(of("kept", f"node-{number}")), templates)
    families = templates.families
    assert families.size_in_bytes == sum(families.sizes) <= 25_000
    assert 1 < len(families.sizes) < 10
    refuse_thorough(monkeypatch)
    parse_pod(raw(of("kept", "node-99")), templates)
    with pytest.raises(AssertionError, match="thorough"):
        parse_pod(raw(of("other-0", "node-99")), templates)


def test_a_sibling_that_was_forgotten_is_read_again():
    templates = TemplateCache(bytes_max=16_000)
    sent = raw(SHAPES["with defaults to fill in"]("node-2"))
    for number in range(10):
        parse_pod(raw(SHAPES["with defaults to fill in"]("node-1")), templates)
        parse_pod(raw(spec(required(fields("n")), containers=[{"image": str(number)}])), templates)
        assert outcome(sent, templates) == outcome(sent, TemplateCache())


def test_a_derived_template_is_a_value_like_any():
    templates = TemplateCache()
    shape = SHAPES["the controller's own"]
    parse_pod(raw(shape("node-1")), templates)
    derived = parse_pod(raw(shape("node-2")), templates).template
    assert derived == replace(derived)
    assert derived.decoded() == shape("node-2")
