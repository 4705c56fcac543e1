"""Commands for an object that is in another namespace than the one where they look say so."""

import pytest

from tests.cli.conftest import CLUSTER, PLACED


def in_namespaces(*namespaces):
    return {"items": [{"metadata": {"name": "web-0", "namespace": each}} for each in namespaces]}


@pytest.mark.parametrize(
    "command",
    [
        ("get", "pod", "web-0"),
        ("describe", "pod/web-0"),
        ("explain", "web-0"),
        ("delete", "pod", "web-0"),
    ],
    ids=" ".join,
)
def test_the_namespace_of_an_object_elsewhere_is_told(moorage, stub, command):
    stub.on("GET", f"{CLUSTER}/pods", in_namespaces("shop"))

    done = moorage(*command)

    assert done.code == 1
    assert "There is one of this name elsewhere: -n shop." in " ".join(done.err.split())
    asked = stub.requests[-1].url.params
    assert asked["fieldSelector"] == "metadata.name=web-0"


def test_a_few_of_many_namespaces_are_told(moorage, stub):
    stub.on("GET", f"{CLUSTER}/pods", in_namespaces(*"abcdef"))

    told = " ".join(moorage("get", "pod", "web-0").err.split())

    assert "-n a, -n b, -n c, -n d, -n e and others." in told


@pytest.mark.parametrize("elsewhere", [in_namespaces(), None], ids=["nowhere", "may not list"])
def test_nothing_is_added_of_an_object_that_is_nowhere(moorage, stub, elsewhere):
    if elsewhere is not None:
        stub.on("GET", f"{CLUSTER}/pods", elsewhere)

    done = moorage("get", "pod", "web-0")

    assert done.code == 1
    assert "pods/web-0" in done.err
    assert "elsewhere" not in done.err


def test_all_stands_for_pods_and_what_controls_them(moorage, stub):
    for kind in ("services", "replicationcontrollers", "replicasets", "statefulsets"):
        stub.on("GET", f"{CLUSTER}/{kind}", {"items": []})
    stub.on("GET", f"{CLUSTER}/pods", {"items": [PLACED]})

    done = moorage("get", "all", "-A")

    assert done.code == 0
    assert "web-0" in done.out
    assert len(stub.requests) == 5
