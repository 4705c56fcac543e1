"""Start, stop and every way of dying, over real processes."""

import os
import signal

import psutil
import pytest

from service.store.embedded import EmbeddedPostgres
from tests.store.embedded.conftest import (
    answering,
    has_ended,
    kill,
    query,
    quick,
    server_pid,
    start_computing,
)
from tests.waiting import eventually

KEPT = ("DROP TABLE IF EXISTS kept", "CREATE TABLE kept AS SELECT 7 AS number", "SELECT 1")


def wardens():
    """The wardens that this process has started and not yet reaped."""
    children = psutil.Process().children()
    running = [child for child in children if child.status() != psutil.STATUS_ZOMBIE]
    return {child.pid for child in running if "idle_shutdown.py" in " ".join(child.cmdline())}


def test_the_first_start_makes_a_durable_and_private_server(empty):
    with EmbeddedPostgres(empty) as postgres:
        settings = ("fsync", "full_page_writes", "synchronous_commit", "data_checksums")
        for name in settings:
            assert query(postgres.url, f"SHOW {name}") == "on", name
        assert query(postgres.url, "SHOW listen_addresses") == ""
        assert query(postgres.url, "SHOW timezone") == "UTC"
        described = "SELECT (pg_encoding_to_char(encoding), datlocprovider, datlocale)::text"
        locale = query(postgres.url, f"{described} FROM pg_database WHERE datname = 'moorage'")
        assert locale == "(UTF8,b,C)"
        methods = "SELECT string_agg(DISTINCT auth_method, ',') FROM pg_hba_file_rules"
        assert query(postgres.url, methods) == "peer"
        assert (empty / "run").stat().st_mode & 0o777 == 0o700
        assert (empty / "postgres").stat().st_mode & 0o777 == 0o700


def test_a_stop_leaves_no_process_and_the_next_start_has_the_data(folder):
    postgres = quick(folder)
    others = wardens()
    query(postgres.start(), *KEPT)
    pid = server_pid(folder)
    (warden,) = wardens() - others
    postgres.stop()
    assert has_ended(warden)
    assert has_ended(pid)
    assert server_pid(folder) is None
    with postgres:
        assert query(postgres.url, "SELECT number FROM kept") == 7


def test_the_log_of_a_running_server_keeps_to_its_bound(folder, monkeypatch):
    monkeypatch.setattr("service.store.embedded.supervisor.LOG_CHECK_SECONDS", 0)
    monkeypatch.setattr("service.store.embedded.serverlog.BYTES_MAX", 10)
    older = folder / "postgres.log.1"
    older.unlink(missing_ok=True)
    with quick(folder) as postgres:
        query(postgres.url, "SELECT 1")
        eventually(older.exists)


def test_stopping_twice_is_stopping_once(folder):
    postgres = quick(folder)
    postgres.stop()
    postgres.start()
    postgres.stop()
    postgres.stop()
    assert server_pid(folder) is None


def test_a_killed_server_is_started_again_with_all_that_was_acknowledged(folder):
    with quick(folder) as postgres:
        query(
            postgres.url, "DROP TABLE IF EXISTS kept", "CREATE TABLE kept (number int)", "SELECT 1"
        )
        for number in range(3):
            query(postgres.url, f"INSERT INTO kept VALUES ({number})", "SELECT 1")
            killed = server_pid(folder)
            kill(killed)
            eventually(lambda killed=killed: server_pid(folder) not in (None, killed))
            answering(postgres.url)
        assert query(postgres.url, "SELECT count(*) FROM kept") == 3


def test_a_server_that_lost_a_process_ends_and_another_is_started(folder):
    """One way to begin anew: PostgreSQL's own can get stuck where the disk is full."""
    with quick(folder) as postgres:
        query(postgres.url, *KEPT)
        pid = server_pid(folder)
        kill(start_computing(postgres.url))
        eventually(lambda: server_pid(folder) not in (None, pid))
        answering(postgres.url)
        assert query(postgres.url, "SELECT number FROM kept") == 7


def test_what_a_killed_server_left_computing_does_not_hold_up_the_next_one(folder, monkeypatch):
    monkeypatch.setattr("service.store.embedded.postmaster.ORPHANS_SECONDS_MAX", 0.5)
    with quick(folder) as postgres:
        backend = start_computing(postgres.url)
        pid = server_pid(folder)
        kill(pid)
        eventually(lambda: server_pid(folder) not in (None, pid))
        answering(postgres.url)
        assert has_ended(backend)


def test_a_server_whose_only_user_is_killed_ends_by_itself(folder, other_process):
    user = other_process(folder)
    user.answer()
    pid = server_pid(folder)
    user.kill()
    eventually(lambda: has_ended(pid))


@pytest.mark.parametrize("with_server", [False, True], ids=["alone", "with its server"])
def test_nothing_acknowledged_is_lost_when_the_supervising_process_is_killed(
    folder, other_process, with_server
):
    user = other_process(folder)
    url = user.answer()["url"]
    pid = server_pid(folder)
    query(url, *KEPT)
    user.kill()
    if with_server:
        kill(pid)
    with quick(folder) as postgres:
        assert query(postgres.url, "SELECT number FROM kept") == 7
    assert server_pid(folder) is None


def test_an_interrupt_from_the_terminal_reaches_only_us(folder, other_process):
    user = other_process(folder)
    user.answer()
    assert os.getpgid(server_pid(folder)) != os.getpgid(user.process.pid)
    assert user.process.poll() is None
    user.process.send_signal(signal.SIGINT)
    user.close()
    assert server_pid(folder) is None
