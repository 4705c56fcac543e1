"""The example scripts over real servers."""

import subprocess
import sys
from itertools import islice

import msgspec
import pytest

from examples.movement import JOBS, JOBS_AT_ONCE, ROUND, job, movements
from moorage.cli.input.sources import read_objects
from moorage.cli.session.client import Client
from service.server.local_server import LocalServer, temporary_folder
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
    assert "In all: 15 placed, 2 queued." in first.stdout
    assert "In all: 15 placed, 2 queued." in second.stdout
    assert f"Look at it: {server.url}/" in first.stdout
    assert f"Read about it: {server.url}/docs" in first.stdout


def test_a_demonstration_starts_anew_but_leaves_what_is_not_its_own(server):
    with Client(server.url) as client:
        own = client.path("namespaces", "shop", "pods", "mine")
        client.put(own, {**job(0), "metadata": {"name": "mine", "namespace": "shop"}})
        hello = client.path("namespaces", "shop", "pods", "hello")
        client.put(hello, {**job(0), "metadata": {"name": "hello", "namespace": "shop"}})
        for _ in islice(movements(client), 4):
            pass
        assert run("examples/demo.py", "--url", server.url).returncode == 0
        names = {
            pod["metadata"]["name"]
            for pod in client.get(client.path("namespaces", "shop", "pods"))["items"]
        }

    assert {"mine", "web-0"} <= names
    assert not {"intruder", "job-0", "hello"} & names


def test_a_cluster_goes_on_moving_if_somebody_deletes_what_it_breaks_a_rule_with(server):
    run("examples/demo.py", "--url", server.url)
    with Client(server.url) as client:
        client.delete(client.path("namespaces", "shop", "pods", "cache-0"))
        told = [*islice(movements(client), len(ROUND))]

    assert any("nothing can be broken" in each for each in told)
    assert told[-1].endswith("came")


def test_the_sample_cluster_moves_and_breaks_a_rule_once_in_a_while(server):
    run("examples/demo.py", "--url", server.url)
    pods, broken = [], []
    with Client(server.url) as client:
        for _ in islice(movements(client), 3 * len(ROUND)):
            listed = client.get(client.path("namespaces", "shop", "pods"), {"labelSelector": JOBS})
            pods.append({pod["metadata"]["name"] for pod in listed["items"]})
            broken.append(bool(client.get(client.path("violations"))["items"]))

    assert [now for now, before in zip(broken, [None, *broken], strict=False) if now != before] == [
        *[False, True] * 3,
        False,
    ]
    assert len(pods[-1]) == JOBS_AT_ONCE
    assert pods[-1] - pods[0]
    assert pods[0] - pods[-1]


@pytest.mark.slow
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
