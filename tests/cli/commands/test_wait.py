"""`moorage wait`: it looks, then follows the changes, and ends in time."""

import httpx
import msgspec
import pytest

from tests.cli.conftest import CLUSTER

PATH = f"{CLUSTER}/namespaces/shop/pods/web-0"
HEAD = {"name": "default", "revision": 7}


def pod(**spec):
    status = {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]}
    metadata = {"name": "web-0", "namespace": "shop"}
    return {"metadata": metadata, "spec": spec, "status": status}


def events(*changes):
    """A stream of changes that then ends."""
    return httpx.Response(
        200,
        text="".join(
            f"id: {8 + number}\nevent: {name}\n"
            f"data: {msgspec.json.encode({'kind': 'Pod', 'object': item}).decode()}\n\n"
            for number, (name, item) in enumerate(changes)
        ),
    )


@pytest.fixture
def waits(moorage, stub):
    stub.on("GET", CLUSTER, HEAD)
    stub.on("GET", PATH, pod())

    def wait(what, *options):
        return moorage("wait", "pod/shop/web-0", f"--for={what}", *options)

    return wait


def test_what_holds_already_is_told_at_once(waits, stub):
    stub.on("GET", PATH, pod(nodeName="node-1"))

    ended = waits("placed")

    assert (ended.code, ended.out) == (0, "pod/shop/web-0 is on node-1\n")
    assert all(not request.url.path.endswith("/watch") for request in stub.requests)


def test_changes_after_the_first_look_are_followed(waits, stub):
    other = pod(nodeName="node-9") | {"metadata": {"name": "other", "namespace": "shop"}}
    changes = [("ADDED", other), ("MODIFIED", pod()), ("MODIFIED", pod(nodeName="node-2"))]
    stub.on("GET", f"{CLUSTER}/watch", events(*changes))

    ended = waits("placed", "--timeout", "5m")

    assert (ended.code, ended.out) == (0, "pod/shop/web-0 is on node-2\n")
    params = stub.requests[-1].url.params
    assert dict(params) == {"kind": "Pod", "sinceRevision": "7", "timeoutSeconds": "300"}


def test_a_stream_that_ends_or_breaks_is_taken_up_by_looking_again(waits, stub, monkeypatch):
    monkeypatch.setattr("moorage.cli.progress.waiter.RECONNECT_SECONDS", 0)
    compacted = httpx.Response(200, text='event: ERROR\ndata: {"code":"Compacted"}\n\n')
    broken = httpx.ReadError("reset")
    stub.on("GET", PATH, pod(), pod(), pod(), pod(nodeName="node-1"))
    stub.on("GET", f"{CLUSTER}/watch", events(), compacted, broken)

    ended = waits("placed")

    assert (ended.code, ended.out) == (0, "pod/shop/web-0 is on node-1\n")


def test_too_late_is_exit_code_1_and_names_what_is_missing(waits):
    ended = waits("placed", "--timeout", "0")

    assert ended.code == 1
    assert "pod/shop/web-0" in ended.err


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("condition=Ready", {"conditions": [{"type": "Ready", "status": "True"}]}),
        ("condition=ready=unknown", {"conditions": [{"type": "Ready", "status": "Unknown"}]}),
        ("jsonpath={.status.phase}=Running", {"phase": "Running"}),
    ],
)
def test_conditions_and_fields_can_be_waited_for(waits, stub, what, change):
    stub.on("GET", f"{CLUSTER}/watch", events(("MODIFIED", pod() | {"status": change})))

    assert waits(what, "--timeout", "5m").code == 0
    assert waits(what, "--timeout", "0").code == 1


def test_an_end_can_be_waited_for_and_else_is_a_failure(waits, stub):
    stub.on("GET", f"{CLUSTER}/watch", events(("DELETED", pod())))

    gone = waits("delete")
    failed = waits("placed")

    assert (gone.code, gone.out) == (0, "pod/shop/web-0 is gone\n")
    assert failed.code == 1
    assert "deleted meanwhile" in failed.err


def test_what_is_not_there_is_gone_but_never_placed(waits, stub):
    del stub.answers["GET", PATH]

    assert waits("delete").code == 0
    assert waits("placed").code == 1


def test_all_of_a_list_are_waited_for(moorage, stub):
    stub.on("GET", CLUSTER, HEAD)
    stub.on("GET", f"{CLUSTER}/pods", {"items": [pod()], "metadata": {}})
    stub.on("GET", PATH, pod(nodeName="node-1"))

    assert moorage("wait", "pods", "-l", "app=web", "--for=placed").code == 0
    assert stub.requests[0].url.params["labelSelector"] == "app=web"


@pytest.mark.parametrize("what", ["nonsense", "condition=", "jsonpath={.a}"])
def test_a_wait_for_nothing_known_is_wrong_usage(waits, what):
    assert waits(what).code == 2


def test_neither_clusters_nor_events_can_be_waited_for(moorage):
    assert moorage("wait", "cluster/default", "--for=delete").code == 2
    assert moorage("wait", "events", "--for=delete").code == 2
