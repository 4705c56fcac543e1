"""Several processes on one data folder: one server, one supervisor, and never none for long."""

import gc
import os
import warnings

from service.store.embedded.locks import FileLock
from tests.store.embedded.conftest import (
    answering,
    has_ended,
    kill,
    query,
    quick,
    server_pid,
)
from tests.waiting import eventually


def test_two_that_start_at_once_share_one_server(empty, other_process):
    users = [other_process(empty) for _ in range(2)]
    answers = [user.answer() for user in users]
    assert sorted(answer["supervisor"] for answer in answers) == [False, True]
    places = {query(answer["url"], "SELECT pg_postmaster_start_time()::text") for answer in answers}
    assert len(places) == 1


def test_the_server_stays_when_its_supervisor_leaves_and_ends_with_the_last_user(
    folder, other_process
):
    first, second = other_process(folder), None
    url = first.answer()["url"]
    second = other_process(folder)
    assert second.answer() == {"url": url, "supervisor": False}
    pid = server_pid(folder)
    first.leave()
    eventually(second.is_supervisor)
    assert server_pid(folder) == pid
    second.leave()
    assert server_pid(folder) is None


def test_the_supervisor_keeps_the_server_when_another_leaves(folder, other_process):
    with quick(folder) as postgres:
        user = other_process(folder)
        user.answer()
        user.leave()
        assert query(postgres.url, "SELECT 1") == 1
        assert postgres.is_supervisor


def test_one_that_leaves_and_lives_on_says_nothing_of_the_server_that_it_left(
    folder, other_process
):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        postgres = quick(folder)
        postgres.start()
        user = other_process(folder)
        user.answer()
        pid = server_pid(folder)
        postgres.stop()
        del postgres
        gc.collect()
    assert [str(warning.message) for warning in caught] == []
    assert server_pid(folder) == pid
    user.leave()
    assert has_ended(pid)


def test_another_takes_over_from_a_killed_supervisor_and_its_server(folder, other_process):
    first = other_process(folder)
    first.answer()
    with quick(folder) as postgres:
        assert not postgres.is_supervisor
        pid = server_pid(folder)
        first.kill()
        kill(pid)
        eventually(lambda: server_pid(folder) not in (None, pid))
        answering(postgres.url)
        assert postgres.is_supervisor


def test_a_server_that_was_taken_over_is_started_again_too(folder, other_process):
    first = other_process(folder)
    first.answer()
    with quick(folder) as postgres:
        first.kill()
        eventually(lambda: postgres.is_supervisor)
        pid = server_pid(folder)
        kill(pid)
        eventually(lambda: server_pid(folder) not in (None, pid))
        answering(postgres.url)


def test_a_forked_child_holds_no_lock_of_its_parent(tmp_path):
    lock = FileLock(tmp_path / "lock")
    assert lock.try_exclusive()
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(ready[1], b".")
        os.read(go[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    lock.drop()  # without unlocking: as if this process had been killed
    assert FileLock(tmp_path / "lock").try_exclusive()
    os.write(go[1], b".")
    os.waitpid(child, 0)
    for descriptor in (*ready, *go):
        os.close(descriptor)


def test_a_shared_lock_is_given_up_by_who_cannot_have_it_alone(tmp_path):
    first, second = (FileLock(tmp_path / "lock") for _ in range(2))
    assert first.try_shared()
    assert second.try_shared()
    assert not first.try_exclusive()
    assert second.try_exclusive()
    assert not first.try_shared()
    second.release()
