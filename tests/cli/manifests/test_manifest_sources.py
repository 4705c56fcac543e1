import gzip
import io
import sys

import pytest

from moorage.cli.exceptions import WrongUsage
from moorage.cli.input.sources import read_document, read_objects


def test_yaml_documents_and_lists_are_read_in_their_order(tmp_path):
    file = tmp_path / "cluster.yaml"
    file.write_text(
        "kind: Node\nmetadata: {name: a}\n---\n---\n"
        "kind: List\nitems:\n- {kind: Node, metadata: {name: b}}\n"
        "- {kind: PodList, items: [{kind: Pod, metadata: {name: c}}]}\n"
    )

    assert [item["metadata"]["name"] for item in read_objects([str(file)])] == ["a", "b", "c"]


def test_dates_in_yaml_stay_as_written(tmp_path):
    file = tmp_path / "pod.yml"
    file.write_text("metadata: {creationTimestamp: 2024-01-01T00:00:00Z}\n")

    [pod] = read_objects([str(file)])

    assert pod["metadata"]["creationTimestamp"] == "2024-01-01T00:00:00Z"


def test_keys_in_yaml_stay_as_written(tmp_path):
    file = tmp_path / "pod.yml"
    file.write_text(
        "a: &a {null: x}\nmetadata: {labels: {<<: *a, on: '1', 2: y, true: z}}\nspec: {hostNetwork: true}\n"
    )

    [pod] = read_objects([str(file)])

    assert pod["metadata"]["labels"] == {"null": "x", "on": "1", "2": "y", "true": "z"}
    assert pod["spec"] == {"hostNetwork": True}


def test_gzipped_json_lines_are_read(tmp_path):
    file = tmp_path / "pods.jsonl.gz"
    file.write_bytes(gzip.compress(b'{"kind": "Pod", "n": 1}\n\n{"kind": "Pod", "n": 2}\n'))

    assert [item["n"] for item in read_objects([str(file)])] == [1, 2]


def test_a_folder_stands_for_its_manifests_in_alphabetical_order(tmp_path):
    (tmp_path / "b.json").write_text('{"n": 2}')
    (tmp_path / "a.yaml").write_text("n: 1")
    (tmp_path / "notes.txt").write_text("not a manifest")

    assert read_objects([str(tmp_path)]) == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize("content", [b'{"n": 1}', b'{"n": 1}\n', b"n: 1\n", b"---\nn: 1\n"])
def test_standard_input_may_be_yaml_or_json(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    assert read_objects(["-"]) == [{"n": 1}]


def test_standard_input_may_be_json_lines(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"n": 1}\n{"n": 2}\n')))

    assert read_objects(["-"]) == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.json", b"{", "truncated"),
        ("a.yaml", b"a: [", "expected"),
        ("a.yaml", b"- 1\n", "expected objects, found list"),
        ("a.jsonl.gz", b"not gzip", "gzip"),
        ("missing.yaml", None, "No such file"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, name, content, complaint):
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(WrongUsage, match=complaint) as error:
        read_objects([str(file)])

    assert str(file) in str(error.value)


def test_a_document_is_exactly_one_object(tmp_path):
    file = tmp_path / "two.yaml"
    file.write_text("a: 1\n---\nb: 2\n")

    with pytest.raises(WrongUsage, match="expected one object"):
        read_document(str(file))
