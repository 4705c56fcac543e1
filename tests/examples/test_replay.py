import subprocess
import sys
from collections import Counter

import pytest

from examples.replay import Replay, Report, find, kill_tree, memory_mib, tree, verdict
from moorage.cli.exceptions import WrongUsage
from moorage.cli.render.explanations import reasons_of_refusals
from moorage.cli.session.client import Client
from tests.waiting import WAIT_SECONDS


class StoredPods(Client):
    """A server that stores these pods and says nothing else."""

    def __init__(self, *pods):
        super().__init__("http://stub")
        self.stored = [
            {"metadata": {"namespace": "n", "name": name}, "spec": {"nodeName": node}}
            for name, node in pods
        ]

    def pages(self, path, params=None):
        yield self.stored


def verified(stored, acknowledged):
    report = Report()
    run = Replay(StoredPods(*stored), None, report)
    run.acknowledged = {("n", name): node for name, node in acknowledged}
    run.verify()
    return report


def test_a_replay_is_sound_if_exactly_what_was_acknowledged_is_stored():
    report = verified([("a", "n1"), ("b", "n2")], [("a", "n1"), ("b", "n2")])

    assert report.is_sound
    assert "each once" in verdict(report)


@pytest.mark.parametrize(
    ("stored", "acknowledged", "fault"),
    [
        ([], [("a", "n1")], "1 missing: n/a"),
        ([("a", "n1")], [], "1 stored but never acknowledged: n/a"),
        ([("a", "n2")], [("a", "n1")], "1 on another node: n/a"),
        ([("a", "n1"), ("a", "n1")], [("a", "n1")], "1 stored twice: n/a"),
    ],
)
def test_every_other_state_is_a_fault(stored, acknowledged, fault):
    report = verified(stored, acknowledged)

    assert not report.is_sound
    assert verdict(report) == fault


def test_reasons_are_counted_without_the_numbers_of_nodes():
    def refused(message):
        return {"outcome": "Unschedulable", "message": message}

    results = [
        refused("0/9 nodes are available: 3 Insufficient cpu, 6 node(s) had untolerated taint(s)."),
        refused("0/9 nodes are available: 2 node(s) had untolerated taint(s), 7 Insufficient cpu."),
        {"outcome": "Placed", "message": None},
        {"outcome": "Denied", "reason": "QuotaExceeded", "message": "too many pods"},
    ]

    assert reasons_of_refusals(results) == Counter(
        {"Insufficient cpu, node(s) had untolerated taint(s)": 2, "QuotaExceeded: too many pods": 1}
    )


def test_the_files_of_a_folder_are_found_by_their_stems(tmp_path):
    (tmp_path / "nodes.json").touch()
    (tmp_path / "pods.jsonl.gz").touch()

    assert find(tmp_path, "nodes").endswith("nodes.json")
    assert find(tmp_path, "pods").endswith("pods.jsonl.gz")
    with pytest.raises(WrongUsage, match="has no other"):
        find(tmp_path, "other")


@pytest.mark.skipif(sys.platform != "linux", reason="trees of processes: only Linux has /proc")
def test_a_tree_of_processes_is_seen_measured_and_killed():
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    parent.stdout.readline()  # the child is there

    found = tree(parent.pid)
    assert len(found) == 2
    assert all(memory_mib(pid) > 1 for pid in found)

    kill_tree(parent.pid)

    assert parent.wait(WAIT_SECONDS) < 0
    assert parent.stdout.read() == b""  # the child no longer holds the other end
    parent.stdin.close()
    parent.stdout.close()
