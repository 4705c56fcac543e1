"""The example scripts over real servers."""

import subprocess
import sys

import msgspec
import pytest

from service.cli.local import LocalServer, temporary_folder
from service.cli.sources import read_objects
from tests.paths import ROOT
from tests.seeds import seed
from tests.waiting import WAIT_SECONDS


def run(*arguments):
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(
        command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=2 * WAIT_SECONDS
    )


@pytest.fixture(scope="module")
def server(module_database_url):
    environment = {"MOORAGE_DATABASE_URL": module_database_url}
    with temporary_folder() as folder, LocalServer(folder, environment=environment) as running:
        yield running


@pytest.fixture
def folder(tmp_path):
    """The sample cluster as a folder for a replay."""
    nodes = read_objects([str(ROOT / "examples" / "cluster" / "2-nodes.yaml")])
    pods = read_objects([str(ROOT / "examples" / "workloads")])
    (tmp_path / "nodes.json").write_bytes(msgspec.json.encode({"kind": "List", "items": nodes}))
    (tmp_path / "pods.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, pods)))
    return tmp_path


def test_the_demonstration_can_be_run_again_and_again(server):
    first = run("examples/demo.py", "--url", server.url)
    second = run("examples/demo.py", "--url", server.url)

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert "In all: 15 placed, 2 unschedulable." in first.stdout
    assert "In all: 15 already placed, 2 unschedulable." in second.stdout
    assert f"API documentation: {server.url}/docs" in first.stdout


def test_a_replay_that_kills_everything_loses_nothing_and_doubles_nothing(folder):
    number = seed("the moment of a replay's killing")
    ended = run("examples/replay.py", folder, "--kill", "--seed", number, "--batch", "5", "--json")

    assert ended.returncode == 0, ended.stderr
    report = msgspec.json.decode(ended.stdout)
    assert (report["nodes"], report["pods"]) == (12, 17)
    assert report["placed"] + sum(report["reasons"].values()) == 17
    assert report["restart_seconds"] > 0
    assert report["missing"] == report["unasked"] == report["elsewhere"] == report["twice"] == []


def test_a_replay_says_what_is_wrong_with_its_folder(tmp_path):
    ended = run("examples/replay.py", tmp_path)

    assert ended.returncode == 2
    assert "has no nodes.json" in ended.stderr
