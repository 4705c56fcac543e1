"""Merge, JSON and strategic merge patches, by the examples of their documents."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, strategies as st

from service.model.core.errors import InvalidManifest
from service.model.json import patch as patches
from service.model.json.patch import apply_patch, json_patch, merge_patch
from service.model.json.strategic_merge import strategic_merge_patch

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


def doubling(times):
    return [
        operation("add", "/a", value=["x"]),
        *[operation("copy", "/a/-", **{"from": "/a"})] * times,
    ]


def count(value):
    if isinstance(value, dict):
        return 1 + sum(map(count, value.values()))
    return 1 + sum(map(count, value)) if isinstance(value, list) else 1


def test_a_patch_that_doubles_the_object_again_and_again_is_refused_before_it_costs_much(
    monkeypatch,
):
    copied = []

    def counting(value):
        copied.append(count(value))
        return deepcopy(value)

    monkeypatch.setattr(patches, "deepcopy", counting)
    with pytest.raises(InvalidManifest, match=r"copies too much") as refused:
        apply_patch("json", {"a": {}}, doubling(18))
    assert [error.field for error in refused.value.errors] == ["[13]"]
    assert sum(copied) < patches.COPIED_ITEMS_MAX


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ([0] * 4_999, True),
        ([0] * 5_000, False),
        ({"k" * 1024: "v" * 1024 * 1535}, True),
        ({"k" * 1024: "v" * 1024 * 1536}, False),
        ("\u00e9" * 768 * 1024, True),
        ("\u00e9" * 769 * 1024, False),
    ],
    ids=["items", "too many", "text", "too much", "bytes", "too many bytes"],
)
def test_two_copies_together_may_have_so_many_items_and_bytes(value, fits):
    target = {"a": value}
    patch = [operation("copy", f"/{n}", **{"from": "/a"}) for n in "bc"]
    if fits:
        assert apply_patch("json", target, patch) == {"a": value, "b": value, "c": value}
        return
    with pytest.raises(InvalidManifest, match=r"copies too much") as refused:
        apply_patch("json", target, patch)
    assert [error.field for error in refused.value.errors] == ["[1]"]


def test_a_large_object_may_be_patched_but_for_copies_of_all_of_it():
    target = {"a": list(range(50_000)), "b": {"c": 1}}
    patch = [
        operation("copy", "/d", **{"from": "/b"}),
        operation("move", "/e", **{"from": "/a"}),
        operation("test", "/e/0", value=0),
    ]
    assert apply_patch("json", target, patch) == {"b": {"c": 1}, "d": {"c": 1}, "e": target["a"]}


class Compared(str):
    """A string that counts how often one like it is compared."""

    __slots__ = ()
    times = 0

    def __eq__(self, other):
        Compared.times += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_all_items_of_a_key_are_deleted():
    twice = {"spec": {"containers": [{"name": "a", "x": 1}, {"name": "b"}, {"name": "a"}]}}
    patch = {"spec": {"containers": [{"name": "a", "$patch": "delete"}, {"name": "a", "y": 2}]}}
    assert apply_patch("strategic", twice, patch) == {
        "spec": {"containers": [{"name": "b"}, {"name": "a", "y": 2}]}
    }


@pytest.mark.parametrize(
    "patch",
    [
        lambda names: {"spec": {"containers": [{"name": each} for each in names]}},
        lambda names: {
            "spec": {"containers": [{"name": each, "$patch": "delete"} for each in names]}
        },
        lambda names: {"spec": {"$setElementOrder/containers": [{"name": n} for n in names]}},
        lambda names: {"metadata": {"finalizers": names}},
        lambda names: {"metadata": {"$deleteFromPrimitiveList/finalizers": names}},
        lambda names: {"spec": {"$retainKeys": names}},
    ],
    ids=["merge", "delete", "order", "add to a set", "take from a set", "retain"],
)
def test_a_long_list_costs_no_more_for_each_item_than_a_short_one(patch):
    """A body holds a list of 60,000 items; comparing each pair would take minutes."""
    length = 500
    target = {
        "metadata": {"finalizers": [Compared(f"n{n}") for n in range(length)]},
        "spec": {
            "containers": [{"name": Compared(f"n{n}")} for n in range(length)],
            **{Compared(f"f{n}"): n for n in range(length)},
        },
    }
    sent = patch([Compared(f"n{n}") for n in reversed(range(length))])
    Compared.times = 0
    apply_patch("strategic", target, sent)
    assert Compared.times < 20 * length


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
