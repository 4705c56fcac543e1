"""Whole clusters: `moorage create` and `moorage export`."""

import gzip

import httpx
import msgspec
import pytest
import yaml

from moorage.cli.input.sources import read_document
from tests.cli.conftest import CLUSTER

EXPORT = {"kind": "List", "items": [{"kind": "Node", "metadata": {"name": "node-1"}}]}


def test_a_cluster_is_created_with_settings_unless_it_is_there(moorage, stub):
    stub.on("PUT", "/v1/clusters/lab", {"name": "lab"})

    created = moorage("create", "cluster", "lab", "hardPodAffinityWeight=5")
    assert (created.code, created.out) == (0, "cluster/lab created\n")
    assert stub.sent() == {"config": {"hardPodAffinityWeight": 5}}

    stub.on("GET", "/v1/clusters/lab", {"name": "lab"})
    stub.requests.clear()
    refused = moorage("create", "cluster", "lab")
    assert refused.code == 1
    assert [request.method for request in stub.requests] == ["GET"]


def test_a_namespace_is_created_and_other_kinds_need_a_file(moorage, stub):
    stub.on("PUT", f"{CLUSTER}/namespaces/shop", {})

    assert moorage("create", "ns", "shop").out == "namespace/shop created\n"
    assert stub.requests[0].headers["If-None-Match"] == "*"
    assert stub.sent() == {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    assert "apply -f" in moorage("create", "pod", "web-0").err


def test_an_export_is_printed_or_written_to_a_file(moorage, stub, tmp_path):
    stub.on("GET", f"{CLUSTER}/export", EXPORT)
    plain, zipped = tmp_path / "cluster.json", tmp_path / "cluster.json.gz"

    assert moorage("export").json == EXPORT
    assert yaml.safe_load(moorage("export", "-o", "yaml").out) == EXPORT
    assert moorage("export", "--to", str(plain)).code == 0
    assert moorage("export", "--to", str(zipped)).code == 0

    assert msgspec.json.decode(plain.read_bytes()) == EXPORT
    assert msgspec.json.decode(gzip.decompress(zipped.read_bytes())) == EXPORT
    assert read_document(str(zipped)) == EXPORT


class _Breaks(httpx.SyncByteStream):
    def __iter__(self):
        yield b'{"kind":'
        raise httpx.ReadError("reset")


@pytest.mark.parametrize("answer", [httpx.Response(200, stream=_Breaks()), httpx.Response(404)])
def test_an_export_that_breaks_leaves_the_file_as_it_was(moorage, stub, tmp_path, answer):
    stub.on("GET", f"{CLUSTER}/export", answer)
    (tmp_path / "cluster.json").write_text("before")

    ended = moorage("export", "--to", str(tmp_path / "cluster.json"))

    assert ended.code in {1, 3}
    assert [each.read_text() for each in tmp_path.iterdir()] == ["before"]
