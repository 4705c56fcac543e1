"""Pods that may have killed a worker: what is noted, counted and known after a restart."""

import os
import subprocess
import sys

import pytest

from service.runtime.worker_deaths import KEPT_MAX, KEPT_SECONDS, DeathCounts, Suspects
from tests.paths import ROOT

SPEC, OTHER = b'{"containers":[{"name":"c"}]}', b'{"containers":[{"name":"d"}]}'
NOW = 1_700_000_000.0
NOTE = """
import os, sys
from pathlib import Path
from service.runtime.worker_deaths import Suspects
suspects = Suspects(Path(sys.argv[1]))
suspects.deciding(7, "shop", sys.argv[2], sys.argv[3].encode())
if len(sys.argv) > 4:
    suspects.decided()
print(os.getpid(), flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def counts(tmp_path):
    return DeathCounts(tmp_path / "suspects")


@pytest.fixture
def dies(tmp_path):
    """Have a process note a pod and die; return its process id."""

    def run(name="a", spec=SPEC, *decided):
        command = [sys.executable, "-c", NOTE, tmp_path / "suspects", name, spec.decode(), *decided]
        ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        return int(ended.stdout)

    return run


def known(tmp_path):
    return Suspects(tmp_path / "suspects")


def test_a_death_is_counted_for_the_pod_that_was_decided_and_all_that_are_equal(
    tmp_path, counts, dies
):
    for deaths in (1, 2):
        found = counts.count(dies(f"copy-{deaths}"), NOW)
        assert (found.name, found.deaths) == (f"copy-{deaths}", deaths)
        assert known(tmp_path).deaths(7, "shop", SPEC) == deaths
    assert known(tmp_path).deaths(7, "shop", OTHER) == 0
    assert known(tmp_path).deaths(7, "elsewhere", SPEC) == 0
    assert known(tmp_path).deaths(8, "shop", SPEC) == 0


def test_nobody_is_blamed_if_nothing_was_being_decided(counts, dies):
    assert counts.count(dies("a", SPEC, "decided"), NOW) is None
    assert counts.count(12345, NOW) is None
    assert counts.count(None, NOW) is None


def test_workers_that_died_with_their_server_are_counted_at_its_next_start(tmp_path, counts, dies):
    dies("a")
    dies("b", OTHER)
    again = DeathCounts(tmp_path / "suspects")
    assert {each.name for each in again.count_left(NOW)} == {"a", "b"}
    assert again.count_left(NOW) == []


def test_deaths_are_forgotten_in_time(tmp_path, counts, dies):
    counts.count(dies(), NOW)
    counts.count_left(NOW + KEPT_SECONDS - 1)
    assert known(tmp_path).deaths(7, "shop", SPEC) == 1
    counts.count_left(NOW + KEPT_SECONDS + 1)
    assert known(tmp_path).deaths(7, "shop", SPEC) == 0


def test_a_worker_learns_of_the_deaths_of_others(tmp_path, counts, dies):
    suspects = known(tmp_path)
    before = suspects.refresh()
    assert suspects.refresh() == before
    counts.count(dies(), NOW)
    assert suspects.refresh() != before
    assert suspects.deaths(7, "shop", SPEC) == 1
    suspects.close()


def test_a_worker_that_ends_in_good_order_leaves_nothing(tmp_path, counts):
    suspects = known(tmp_path)
    suspects.deciding(7, "shop", "a", SPEC)
    suspects.close()
    assert counts.count(os.getpid(), NOW) is None


def test_a_damaged_file_names_nobody(tmp_path, counts, dies):
    (tmp_path / "suspects" / "suspects.json").write_bytes(b"[{")
    assert known(tmp_path).deaths(7, "shop", SPEC) == 0
    assert counts.count(dies(), NOW).deaths == 1


def test_without_a_folder_nothing_is_noted():
    suspects = Suspects(None)
    suspects.deciding(7, "shop", "a", SPEC)
    suspects.decided()
    suspects.close()
    assert suspects.deaths(7, "shop", SPEC) == 0


def test_few_are_kept(tmp_path, counts):
    for number in range(KEPT_MAX + 5):
        slot = f"7\n{number}\nshop\np{number}\0".encode()
        (tmp_path / "suspects" / f"{number}.deciding").write_bytes(slot + bytes(100))
    counts.count_left(NOW)
    assert len(counts.known()) == KEPT_MAX
