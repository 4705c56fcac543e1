"""Merge, JSON and strategic merge patches, by the examples of their documents."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, strategies as st

from service.model.errors import InvalidManifest
from service.model.json_and_patches.patches import apply_patch, json_patch, merge_patch
from service.model.json_and_patches.strategic_merge_patch import strategic_merge_patch

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), JSON)


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ([1, 2], {"a": "b"}, {"a": "b"}),
    ],
)
def test_a_merge_patch_does_what_rfc_7396_says(target, patch, expected):
    assert merge_patch(target, patch) == expected


def operation(op: str, path: str, **more: Any) -> dict[str, Any]:
    return {"op": op, "path": path} | more


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({"a": 1}, operation("add", "/b", value=2), {"a": 1, "b": 2}),
        ({"a": [1, 3]}, operation("add", "/a/1", value=2), {"a": [1, 2, 3]}),
        ({"a": [1]}, operation("add", "/a/-", value=2), {"a": [1, 2]}),
        ({"a": 1}, operation("remove", "/a"), {}),
        ({"a": [1, 2]}, operation("remove", "/a/0"), {"a": [2]}),
        ({"a": 1}, operation("replace", "/a", value=None), {"a": None}),
        ({"a": [1, 2]}, operation("replace", "/a/1", value=5), {"a": [1, 5]}),
        ({"a": 1}, operation("replace", "", value={}), {}),
        ({"a": 1}, operation("move", "/b", **{"from": "/a"}), {"b": 1}),
        ({"a": {"b": 1}}, operation("copy", "/c", **{"from": "/a"}), {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a/b": {"m~n": 1}}, operation("test", "/a~1b/m~0n", value=1), {"a/b": {"m~n": 1}}),
        ({"m~1n": 1}, operation("remove", "/m~01n"), {}),
        ({"": 1}, operation("remove", "/"), {}),
    ],
)  # fmt: skip
def test_a_json_patch_does_what_rfc_6902_says(target, patch, expected):
    assert json_patch(target, [patch]) == expected


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({}, ""),
        ([5], "[0]"),
        ([{"op": "set"}], "[0].op"),
        ([{"op": ["add"]}], "[0].op"),
        ([operation("add", "/b")], "[0].value"),
        ([operation("remove", "b")], "[0].path"),
        ([operation("remove", "/x")], "[0]"),
        ([operation("add", "/x/y", value=1)], "[0]"),
        ([operation("add", "/list/3", value=1)], "[0]"),
        ([operation("replace", "/list/01", value=1)], "[0]"),
        ([operation("remove", "/list/-")], "[0]"),
        ([operation("remove", "/list/99999999999999999999")], "[0]"),
        ([operation("add", "/a/b", value=1)], "[0]"),
        ([operation("test", "/a", value=True)], "[0]"),
        ([operation("copy", "/b")], "[0].from"),
        ([operation("move", "/list/0/x", **{"from": "/list"})], "[0].path"),
        ([operation("remove", "")], ""),
        ([operation("test", "/a", value=1)] * 1_001, ""),
    ],
)
def test_a_json_patch_that_does_not_fit_is_refused_with_the_operation(patch, field):
    with pytest.raises(InvalidManifest) as refused:
        apply_patch("json", {"a": 1, "list": [1, 2]}, patch)
    assert [error.field for error in refused.value.errors] == [field]


def test_a_patch_that_doubles_the_object_again_and_again_is_stopped():
    doubling = [
        operation("copy", f"/a/{n}", **{"from": "/a"}) for n in "abcdefghijklmnopqrstuvwxyz"
    ]
    with pytest.raises(InvalidManifest, match="copies too much"):
        apply_patch("json", {"a": {}}, doubling)


def test_a_patch_that_nests_the_object_ever_deeper_is_stopped():
    nested = [operation("move", "/a/a", **{"from": "/a"})]
    with pytest.raises(InvalidManifest):
        apply_patch("json", {"a": {}}, nested)
    deeper = [operation("add", "/a" * n, value={}) for n in range(1, 1_000)]
    copied = [*deeper, operation("copy", "/b", **{"from": "/a"})]
    with pytest.raises(InvalidManifest, match="deeply"):
        apply_patch("json", {}, copied)


CONTAINERS = {"spec": {"containers": [{"name": "a", "image": "1", "x": 1}, {"name": "b"}]}}


def merged(target: Any, patch: Any) -> Any:
    return strategic_merge_patch(target, patch)


def test_a_strategic_merge_joins_containers_by_name():
    patch = {"spec": {"containers": [{"name": "a", "image": "2", "x": None}, {"name": "c"}]}}
    assert merged(CONTAINERS, patch)["spec"]["containers"] == [
        {"name": "a", "image": "2"},
        {"name": "b"},
        {"name": "c"},
    ]


def test_a_strategic_merge_replaces_lists_without_a_key():
    target = {"spec": {"tolerations": [{"key": "a"}], "taints": [{"key": "a"}]}}
    patch = {"spec": {"tolerations": [{"key": "b"}], "taints": []}}
    assert merged(target, patch) == patch


def test_a_strategic_merge_joins_sets_and_conditions():
    target = {"metadata": {"finalizers": ["a"]}, "status": {"conditions": [{"type": "Ready"}]}}
    patch = {
        "metadata": {"finalizers": ["b", "a"]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    assert merged(target, patch) == {
        "metadata": {"finalizers": ["a", "b"]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def test_directives_delete_and_replace():
    deleted = {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}
    assert merged(CONTAINERS, deleted)["spec"]["containers"] == [{"name": "b"}]
    replaced = {"spec": {"containers": [{"$patch": "replace"}, {"name": "z"}]}}
    assert merged(CONTAINERS, replaced)["spec"]["containers"] == [{"name": "z"}]
    whole = {"spec": {"$patch": "replace", "a": 1}}
    assert merged(CONTAINERS, whole) == {"spec": {"a": 1}}
    assert merged(CONTAINERS, {"spec": {"$patch": "delete"}}) == {"spec": {}}


def test_directives_order_retain_and_remove_values():
    order = {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}
    assert [c["name"] for c in merged(CONTAINERS, order)["spec"]["containers"]] == ["b", "a"]
    retain = {"spec": {"$retainKeys": ["b"], "b": 1}}
    assert merged({"spec": {"a": 1, "b": 0}}, retain) == {"spec": {"b": 1}}
    target = {"metadata": {"finalizers": ["a", "b"]}}
    removed = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}
    assert merged(target, removed) == {"metadata": {"finalizers": ["b"]}}


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"spec": {"containers": [{"image": "1"}]}}, "spec.containers[0].name"),
        ({"spec": {"containers": [5]}}, "spec.containers[0]"),
        ({"spec": {"$patch": "move"}}, "spec.$patch"),
        ({"spec": {"$retainKeys": 5}}, "spec.$retainKeys"),
        ({"spec": {"$deleteFromPrimitiveList/x": 5}}, "spec.$deleteFromPrimitiveList/x"),
        ([], ""),
    ],
)
def test_a_strategic_merge_that_makes_no_sense_is_refused(patch, field):
    with pytest.raises(InvalidManifest) as refused:
        apply_patch("strategic", deepcopy(CONTAINERS), patch)
    assert [error.field for error in refused.value.errors] == [field]


@given(OBJECTS, OBJECTS, st.sampled_from(["merge", "strategic"]))
def test_patching_twice_changes_nothing_more_and_the_arguments_never(target, patch, kind):
    before, given_patch = deepcopy(target), deepcopy(patch)
    once = apply_patch(kind, target, patch)
    assert apply_patch(kind, once, patch) == once
    assert (target, patch) == (before, given_patch)


@given(OBJECTS)
def test_a_json_patch_leaves_its_target_alone(target):
    before = deepcopy(target)
    assert apply_patch("json", target, [operation("add", "/a", value=1)]) == target | {"a": 1}
    assert target == before
