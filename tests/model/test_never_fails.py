"""Whatever arrives is either read or refused as the client's error; nothing else ever happens."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from service.api.resources.objects.registry import RESOURCES
from service.model.cluster.cluster_config import parse_config
from service.model.core.errors import InvalidManifest, MalformedJSON, MoorageError
from service.model.json.patch import apply_patch
from service.model.registry.manifests import TemplateCache, load_any, parse_any
from tests import strategies
from tests.paths import ROOT
from tests.seeds import examples

WORDS = (
    "name",
    "key",
    "operator",
    "Exists",
    "cpu",
    "1",
    "-1",
    "",
    "*",
    "a b",
    "x" * 70,
    "nodeName",
)
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.sampled_from(WORDS)
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner),
    max_leaves=6,
)
SETTINGS = st.sampled_from(("profiles", "limitedResources", "priorityClasses", "semantics"))


API_VERSIONS = {each.kind: each.example["apiVersion"] for each in RESOURCES} | {
    "PriorityClass": "scheduling.k8s.io/v1"
}
ODD_VALUES = ({}, [], 0, "x" * 300)
"""What is sent in place of any value: most fields are something else, and some of it has no hash."""


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    document = msgspec.json.decode((ROOT / "openapi" / "openapi.json").read_bytes())
    return document["components"]["schemas"]


def filled(schemas: dict[str, Any], schema: dict[str, Any], within: tuple[str, ...] = ()) -> Any:
    """A value with every property that a schema declares; a schema within itself is left empty."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return {} if name in within else filled(schemas, schemas[name], (*within, name))
    if "anyOf" in schema:
        return filled(schemas, schema["anyOf"][0], within)
    if "properties" in schema:
        properties = schema["properties"].items()
        return {name: filled(schemas, each, within) for name, each in properties}
    match schema:
        case {"enum": [first, *_]}:
            return first
        case {"type": "object", "additionalProperties": dict(inner)}:
            return {"example.com/a": filled(schemas, inner, within)}
        case {"type": "array", "items": inner}:
            return [filled(schemas, inner, within)]
        case {"type": "integer" | "number"}:
            return schema.get("minimum", 1)
    return True if schema.get("type") == "boolean" else "x"


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of a JSON value with every key or index in it."""
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for at, inner in items:
        found.append((value, at))
        if isinstance(inner, dict | list):
            found.extend(places(inner))
    return found


def refusal(call: Callable[[], object]) -> MoorageError | None:
    """Why a call is refused, if it is; any other exception is a bug and goes through."""
    try:
        call()
    except (InvalidManifest, MalformedJSON) as refused:
        return refused
    return None


@settings(max_examples=examples(80))
@given(st.data())
def test_a_manifest_with_anything_anywhere_is_read_or_refused(data):
    world = data.draw(strategies.worlds())
    kind, drawn = data.draw(
        st.tuples(st.just("Pod"), strategies.pods(world, "p"))
        | st.tuples(st.just("Node"), strategies.nodes(world))
    )
    manifest = deepcopy({"kind": kind, **drawn})
    for _ in range(data.draw(st.integers(1, 3))):
        container, at = data.draw(st.sampled_from(places(manifest)))
        container[at] = data.draw(ANYTHING)
    raw = msgspec.json.encode(manifest)
    refused = refusal(lambda: parse_any(raw, TemplateCache()))
    if refused is None:
        read = msgspec.structs.replace(parse_any(raw, TemplateCache()), resource_version="")
        assert load_any(read.kind, read.render(), TemplateCache()) == read
    elif isinstance(refused, InvalidManifest):
        assert msgspec.json.encode(refused.errors)


@pytest.mark.parametrize("kind", API_VERSIONS)
def test_any_field_of_any_kind_may_hold_an_odd_value(kind, schemas):
    manifest = {**filled(schemas, schemas[kind]), "apiVersion": API_VERSIONS[kind], "kind": kind}
    templates = TemplateCache()
    for container, at in places(manifest):
        usual = container[at]
        for odd in ODD_VALUES:
            container[at] = odd
            assert refusal(lambda: parse_any(manifest, templates)) is not None
        container[at] = usual


def test_any_setting_may_hold_an_odd_value(schemas):
    settings_ = filled(schemas, schemas["ClusterConfig"])
    for container, at in places(settings_):
        usual = container[at]
        for odd in ODD_VALUES:
            container[at] = odd
            refusal(lambda: parse_config(settings_))
        container[at] = usual


@given(st.binary(max_size=60) | ANYTHING.map(msgspec.json.encode))
def test_bytes_of_any_kind_are_refused_if_they_name_no_kind(raw):
    assert refusal(lambda: parse_any(raw, TemplateCache())) is not None


@given(st.dictionaries(SETTINGS | st.sampled_from(WORDS), ANYTHING) | ANYTHING)
def test_settings_of_any_kind_are_read_or_refused(sent):
    refused = refusal(lambda: parse_config(sent))
    assert refused is None or refused.code == "InvalidManifest"


@given(st.sampled_from(("merge", "json", "strategic")), ANYTHING, ANYTHING)
def test_patches_of_any_kind_are_applied_or_refused(kind, target, patch):
    whole = {"spec": {"containers": target}}
    refused = refusal(lambda: apply_patch(kind, whole, patch))
    assert refused is None or refused.code == "InvalidManifest"
