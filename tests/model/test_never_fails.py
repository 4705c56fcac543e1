"""Whatever arrives is either read or refused as the client's error; nothing else ever happens."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import msgspec
from hypothesis import given, settings, strategies as st

from service.model.configuration.config import parse_config
from service.model.errors import InvalidManifest, MalformedJSON, MoorageError
from service.model.json_and_patches.patches import apply_patch
from service.model.manifests.manifest import TemplateCache, load_any, parse_any
from tests import strategies
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
