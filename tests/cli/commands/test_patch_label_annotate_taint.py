from typing import get_args

import httpx
import pytest

from moorage.cli.commands import taint
from service.model.core.primitives import TaintEffect
from tests.cli.conftest import CLUSTER

NODE = f"{CLUSTER}/nodes/n1"
POD = f"{CLUSTER}/namespaces/shop/pods/web-0"


def node(labels=None, taints=None):
    return {
        "kind": "Node",
        "metadata": {"name": "n1", "labels": labels or {}},
        "spec": {"taints": taints or []},
    }


@pytest.fixture
def stored(stub):
    """A node of the stub, which takes each patch."""

    def store(item, *answers):
        stub.on("GET", NODE, httpx.Response(200, json=item, headers={"ETag": '"7"'}))
        stub.on("PATCH", NODE, *(answers or (item,)))

    return store


@pytest.mark.parametrize(
    ("more", "content_type", "sent"),
    [
        (
            ["-p", '{"spec": {"unschedulable": true}}'],
            "application/merge-patch+json",
            {"spec": {"unschedulable": True}},
        ),
        (
            ["--type", "json", "-p", '[{"op": "remove", "path": "/spec/taints/0"}]'],
            "application/json-patch+json",
            [{"op": "remove", "path": "/spec/taints/0"}],
        ),
        (
            ["--type", "strategic", "-p", "spec: {unschedulable: null}"],
            "application/strategic-merge-patch+json",
            {"spec": {"unschedulable": None}},
        ),
    ],
)
def test_a_patch_is_sent_as_what_it_is(moorage, stub, more, content_type, sent):
    stub.on("PATCH", NODE, node())

    ended = moorage("patch", "node", "n1", *more)

    assert (ended.code, ended.out) == (0, "node/n1 patched\n")
    assert stub.sent() == sent
    assert stub.requests[-1].headers["Content-Type"] == content_type


def test_a_patch_comes_from_a_file_too(moorage, stub, tmp_path):
    stub.on("PATCH", POD, {"kind": "Pod"})
    path = tmp_path / "patch.yaml"
    path.write_text("metadata:\n  labels: {tier: '1'}\n", "utf-8")

    ended = moorage("patch", "pod/web-0", "-n", "shop", "--patch-file", str(path), "--dry-run")

    assert (ended.code, ended.out) == (0, "pod/shop/web-0 patched (dry run)\n")
    assert stub.sent() == {"metadata": {"labels": {"tier": "1"}}}


def test_labels_are_set_and_removed_in_one_patch_of_what_was_read(moorage, stub, stored):
    stored(node({"old": "1"}))

    ended = moorage("label", "node", "n1", "disk=ssd", "old-")

    assert (ended.code, ended.out) == (0, "node/n1 labeled\n")
    assert stub.sent() == {"metadata": {"labels": {"disk": "ssd", "old": None}}}
    assert stub.requests[-1].headers["If-Match"] == '"7"'


def test_an_annotation_may_have_any_value(moorage, stub, stored):
    stored(node())

    assert moorage("annotate", "node/n1", "see=https://example.com/a=b").code == 0
    sent = {"metadata": {"annotations": {"see": "https://example.com/a=b"}}}
    assert stub.sent() == sent


def test_another_value_is_replaced_only_if_that_is_said(moorage, stub, stored):
    stored(node({"disk": "hdd"}))

    ended = moorage("label", "node", "n1", "disk=ssd")

    assert ended.code == 2
    assert "n1 has disk=hdd already; --overwrite replaces it." in ended.err
    assert not [each for each in stub.requests if each.method == "PATCH"]
    assert moorage("label", "node", "n1", "disk=ssd", "--overwrite").code == 0


def test_all_that_a_selector_matches_are_labeled(moorage, stub, stored):
    stored(node())
    stub.on("GET", f"{CLUSTER}/nodes", {"items": [node()], "metadata": {}})

    ended = moorage("label", "nodes", "-l", "zone=a", "disk=ssd")

    assert (ended.code, ended.out) == (0, "node/n1 labeled\n")


def test_a_change_is_made_again_of_what_somebody_else_wrote_in_between(moorage, stub, stored):
    refused = httpx.Response(412, json={"code": "PreconditionFailed", "detail": "It changed."})
    stored(node(), refused, node())

    assert moorage("label", "node", "n1", "disk=ssd").code == 0
    assert [each.method for each in stub.requests] == ["GET", "PATCH"] * 2


def test_others_who_are_faster_each_time_end_it(moorage, stub, stored):
    stored(
        node(), httpx.Response(412, json={"code": "PreconditionFailed", "detail": "It changed."})
    )

    assert moorage("label", "node", "n1", "disk=ssd").code == 1
    assert len(stub.requests) == 10


GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
OLD = {"key": "old", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["gpu=yes:NoSchedule"], [OLD, GPU]),
        (["old-"], []),
        (["old:NoExecute-", "gpu=yes:NoSchedule"], [GPU]),
        (["old:NoSchedule"], [OLD, {"key": "old", "effect": "NoSchedule"}]),
    ],
)
def test_taints_are_set_and_removed(moorage, stub, stored, words, left):
    stored(node(taints=[OLD]))

    ended = moorage("taint", "node", "n1", *words)

    assert (ended.code, ended.out) == (0, "node/n1 tainted\n")
    assert stub.sent() == {"spec": {"taints": left}}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["taint", "node", "n1", "gpu-"], "There is no taint gpu to remove."),
        (["taint", "node", "n1", "old=1:NoExecute"], "--overwrite replaces it."),
        (["taint", "node", "n1", "gpu=yes"], "expected KEY=VALUE:EFFECT"),
        (["taint", "node", "n1", "gpu:Never-"], "an effect is one of NoSchedule"),
        (["taint", "pod", "web-0", "gpu-"], "Only a Node can be tainted."),
        (["label", "node", "n1"], "Say what to set or remove"),
        (["label", "node", "n1", "a=b", "n2"], "Name the objects first"),
        (["label", "node", "a=b"], "Name the objects, or give a selector"),
        (["label", "node", "n1", "a:b"], "expected KEY=VALUE or KEY-"),
        (["patch", "node", "n1"], "Give either --patch or --patch-file."),
        (["patch", "node", "n1", "-p", "{"], "--patch: "),
        (["create", "-f", "pod.yaml"], "`moorage apply -f` makes what is in them."),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(moorage, stored, arguments, told):
    stored(node(taints=[OLD]))

    ended = moorage(*arguments)

    assert ended.code == 2
    assert told in ended.err


def test_the_effects_of_taints_are_those_of_the_server():
    assert get_args(TaintEffect) == taint.EFFECTS
