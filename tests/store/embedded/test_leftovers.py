"""What a start may find in a data folder: files that lie, half-made databases, other versions."""

import os
import shutil
import subprocess
import sys

import pytest

from service.store.embedded import (
    FolderUnusableError,
    VersionMismatchError,
    binaries,
    layout as data_folder,
    os_account,
)
from tests.store.embedded.conftest import query, quick, server_pid


@pytest.fixture
def innocent():
    """A process that has nothing to do with PostgreSQL."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def write_pid_file(folder, content):
    path = folder / "postgres" / "postmaster.pid"
    path.write_text(content)
    status = (folder / "postgres").stat()
    os.chown(path, status.st_uid, status.st_gid)


def lines(pid, folder):
    return f"{pid}\n{folder}/postgres\n1764000000\n5432\n{folder}/run\n\n  123456 789\nready   \n"


@pytest.mark.parametrize("content", ["", "4", "-1\n", "nonsense\n", "99999999999\n"])
def test_an_unreadable_pid_file_is_ignored(folder, content):
    write_pid_file(folder, content)
    with quick(folder) as postgres:
        assert query(postgres.url, "SELECT 1") == 1


def test_the_pid_file_of_a_dead_server_is_ignored(folder, innocent):
    innocent.kill()
    innocent.wait()
    write_pid_file(folder, lines(innocent.pid, folder))
    with quick(folder) as postgres:
        assert query(postgres.url, "SELECT 1") == 1


def test_a_pid_file_with_a_reused_id_is_ignored_and_that_process_left_alone(folder, innocent):
    write_pid_file(folder, lines(innocent.pid, folder))
    (folder / "server.lock").write_text(f"{innocent.pid}\n")
    (folder / "run" / ".s.PGSQL.5432.lock").write_text(lines(innocent.pid, folder))
    with quick(folder) as postgres:
        assert query(postgres.url, "SELECT 1") == 1
    assert innocent.poll() is None


def test_a_server_whose_pid_file_was_truncated_is_taken_over(folder, other_process):
    user = other_process(folder)
    user.answer()
    pid = server_pid(folder)
    (folder / "postgres" / "postmaster.pid").write_text("")
    (folder / "server.lock").write_text("")
    with quick(folder) as postgres:
        user.kill()
        assert query(postgres.url, "SELECT 1") == 1
        assert server_pid(folder) == pid
    assert server_pid(folder) is None


def test_a_server_started_by_hand_elsewhere_is_replaced(folder, monkeypatch):
    monkeypatch.setattr("service.store.embedded.readiness.FOREIGN_SECONDS_MAX", 0.2)
    postgres = quick(folder)
    owner = os_account.choose(data_folder.owner(folder))
    programs = binaries.find(owner, data_folder.SYSTEM_DIR)
    by_hand = subprocess.Popen(
        [programs.path("postgres"), "-D", folder / "postgres", "-h", "", "-k", ""],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **owner.identity(),
    )
    with postgres:
        assert query(postgres.url, "SELECT 1") == 1
        assert server_pid(folder) != by_hand.pid
    by_hand.wait()


@pytest.mark.parametrize(
    ("version", "way_out"),
    [
        ("16", "/pginstall/bin -B"),  # the wheel holds that one as well
        ("14", "-b /usr/lib/postgresql/14/bin -B"),
        ("19", "Use a Moorage that runs PostgreSQL 19"),
        ("9.6", "Use a Moorage that runs PostgreSQL 9.6"),
    ],
)
def test_a_database_of_another_version_is_refused_with_what_to_do(skeleton, version, way_out):
    (skeleton / "postgres" / "PG_VERSION").write_text(f"{version}\n")
    with pytest.raises(VersionMismatchError) as refusal:
        quick(skeleton).start()
    assert f"is of PostgreSQL {version}" in str(refusal.value)
    assert way_out in str(refusal.value)
    assert server_pid(skeleton) is None


def test_what_an_interrupted_initdb_left_is_not_used(empty):
    (empty / "postgres.new-x" / "global").mkdir(parents=True)
    (empty / "postgres.new-x" / "PG_VERSION").write_text("18\n")
    (empty / "postgres" / "base" / "1").mkdir(parents=True)
    (empty / "postgres" / "PG_VERSION").touch()
    if os.geteuid() == 0:
        shutil.chown(empty / "postgres", "nobody")
        empty.chmod(0o755)
    with quick(empty) as postgres:
        assert query(postgres.url, "SELECT 1") == 1
    assert not (empty / "postgres.new-x").exists()
    (aside,) = empty.glob("postgres.incomplete-*/postgres")
    assert (aside / "base" / "1").is_dir()


def test_a_damaged_database_is_refused_and_not_replaced(skeleton):
    (skeleton / "postgres" / "global" / "pg_control").unlink()
    with pytest.raises(FolderUnusableError, match="damaged"):
        quick(skeleton).start()
    assert (skeleton / "postgres" / "base" / "5").is_dir()
