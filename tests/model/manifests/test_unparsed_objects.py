"""Plain objects take a short way through parsing, and end where the thorough way ends."""

import json
from typing import Any

import msgspec
import pytest

from service.model.core.errors import InvalidManifest, MalformedJSON
from service.model.core.fast_parse import compact, cut
from service.model.registry.manifests import TemplateCache, load_any, parse_any

SPEC = {
    "containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}],
    "tolerations": [{"key": "a", "operator": "Exists"}],
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-0", "namespace": "shop", "labels": {"app": "web"}},
    "spec": SPEC,
}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n"}},
    "spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}


def raw(manifest: Any) -> bytes:
    return msgspec.json.encode(manifest)


def warm() -> TemplateCache:
    """A cache that knows the spec and the shape above."""
    templates = TemplateCache()
    for known in (POD, NODE):
        parse_any(raw(known), templates)
    return templates


def metadata(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x-1"} | fields}


PLAIN = [
    POD | metadata(),
    POD | metadata(labels={"app": "web"}),
    POD | metadata(namespace="shop", annotations={"a": '},"spec":{'}),
    POD | {"metadata": {"labels": {"name": "b"}, "name": "x-1", "namespace": "shop"}},
    POD | {"metadata": {"name": "x-1", "namespace": "shop", "creationTimestamp": None}},
    POD | metadata() | {"status": {}},
    POD | metadata() | {"status": {"phase": "Succeeded"}},
    POD | metadata() | {"spec": {"nodeName": "n1", **SPEC}, "status": {"phase": "Running"}},
    POD | metadata() | {"spec": {"nodeName": "n1", **SPEC}},
    POD | metadata() | {"spec": {**SPEC, "nodeName": "n1"}},
    POD | metadata() | {"spec": {"containers": SPEC["containers"], "nodeName": "n1", **SPEC}},
    {"kind": "Pod", "apiVersion": "v1"} | metadata() | {"spec": SPEC},
    {"kind": "Pod"} | metadata() | {"spec": SPEC},
    NODE | metadata(),
    NODE | metadata(labels={"kubernetes.io/hostname": "x-1"}, annotations={"a": "b"}),
    {"kind": "Node", "apiVersion": "v1"} | metadata() | {"spec": {}, "status": NODE["status"]},
    {"kind": "Node"} | metadata() | {"spec": {}, "status": NODE["status"]},
]


@pytest.mark.parametrize("sent", PLAIN, ids=range(len(PLAIN)))
@pytest.mark.parametrize("spell", [raw, lambda sent: json.dumps(sent).encode()])
def test_the_short_way_ends_where_the_thorough_way_does(sent, spell):
    templates = warm()
    first, again = parse_any(spell(sent), templates), parse_any(spell(sent), templates)
    assert cut(compact(spell(sent))) is not None
    assert first == again == parse_any(sent, TemplateCache())
    stored = again.with_identity("1b4e28ba-2fa1-11d2-883f-0016d3cca427", "2026-01-31T12:00:00Z")
    assert load_any(sent["kind"], stored.render(), templates) == stored


BROKEN = [
    raw(POD).replace(b'"web-0"', b'"Web"'),
    raw(POD).replace(b'"web-0"', b'"web-0","name":"web-1"'),
    raw(POD).replace(b'"web-0",', b'"web-0",,'),
    raw(POD).replace(b'"web-0","namespace":"shop","labels":{"app":"web"}', b'"web-0",'),
    raw(POD).replace(b'"app":"web"', b'"app":"web","app":"web"'),
    raw(POD).replace(b'"app":"web"', b'"app":"!"'),
    raw(POD).replace(b'"app":"web"', b'"app":"web\\u0000"'),
    raw(POD).replace(b'"shop"', b'"shop\xff"'),
    raw(POD).replace(b'"spec":', b'"spec":{},"spec":'),
    raw(POD | {"status": []}),
    raw(POD | {"status": {"phase": 5}}),
    raw(POD | {"status": {}})[:-1] + b',"status":{}}',
    raw(POD | {"status": {"conditions": []}}).replace(b"[]", b"[}"),
    raw(POD)[:-1],
    raw(POD) + b"}",
    raw(POD).replace(b'"spec":{', b'"spec":{"nodeName":"n",'),
    raw(POD).replace(b'"spec":{', b'"spec":{"nodeName":"N",'),
    raw(POD).replace(b'"spec":{', b'"spec":{"nodeName":"n'),
    raw(POD).replace(b'"name":"c"', b'"name":"c","nodeName":"n"'),
    raw(NODE).replace(b'"name":"n"', b'"name":"n","namespace":"shop"'),
    raw(NODE).replace(b'"name":"n"', b'"name":"n","name":"n"'),
    raw(NODE).replace(b'"name":"n",', b'"name":"n"},"spec":{},'),
    raw(NODE).replace(b'"status":', b'"kind":"Node","status":'),
    raw(NODE)[:-1],
]


@pytest.mark.parametrize("sent", BROKEN, ids=range(len(BROKEN)))
def test_what_is_known_does_not_excuse_what_is_wrong_around_it(sent):
    def outcome(templates: TemplateCache) -> Any:
        try:
            return parse_any(sent, templates)
        except MalformedJSON as error:
            return type(error)
        except InvalidManifest as error:
            return error.errors

    assert outcome(warm()) == outcome(TemplateCache())


def test_a_node_that_looks_cut_in_the_wrong_place_teaches_nothing():
    templates = TemplateCache()
    tricky = raw(NODE).replace(b'"name":"n",', b'"name":"n","x":{"a":{},"spec":{}},')
    parse_any(tricky, templates)
    plain = cut(tricky)
    assert plain is not None
    assert templates.node_shapes.find(plain.rest) is None


def test_nodes_of_one_pool_share_what_they_have_in_common():
    templates = warm()
    one, other = (parse_any(raw(NODE | metadata(name=n)), templates) for n in ("a", "b"))
    assert one.subject.allocatable is other.subject.allocatable
    assert one.rest is other.rest
