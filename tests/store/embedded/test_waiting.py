"""When a server counts as ready, as getting on, and as hopeless."""

import pytest

from service.store.embedded import (
    EmbeddedPostgres,
    FolderUnusableError,
    StartFailedError,
    os_account,
)
from service.store.embedded.layout import DataFolder
from service.store.embedded.probe import ProbeAnswer, ask, meaning_of
from service.store.embedded.serverlog import progress
from tests.store.embedded.conftest import quick, server_pid


def error(state):
    return b"E\0\0\0\x40SFATAL\0VFATAL\0C" + state + b"\0Msome message\0\0"


@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        (b"R\0\0\0\x08\0\0\0\0", ProbeAnswer.READY),
        (b"R\0\0\0\x08\0\0\0\x03", ProbeAnswer.REFUSED),  # asks for a password
        (b"R", ProbeAnswer.REFUSED),
        (error(b"57P03"), ProbeAnswer.NOT_YET),  # cannot_connect_now
        (error(b"53300"), ProbeAnswer.READY),  # too_many_connections
        (error(b"53200"), ProbeAnswer.NOT_YET),  # out_of_memory
        (error(b"28000"), ProbeAnswer.REFUSED),  # invalid_authorization_specification
        (error(b"3D000"), ProbeAnswer.REFUSED),  # invalid_catalog_name
        (b"", ProbeAnswer.NOT_YET),
    ],
)
def test_the_answer_to_a_request_for_a_session(answer, meaning):
    assert meaning_of(answer) is meaning


def test_where_nobody_listens_there_is_no_answer(tmp_path):
    assert ask(tmp_path / "socket") is ProbeAnswer.SILENT
    (tmp_path / "file").touch()
    assert ask(tmp_path / "file") is ProbeAnswer.SILENT


def recovery(clock, elapsed, position):
    return (
        f"2026-01-01 00:00:{clock} UTC [77] LOG:  redo in progress, "
        f"elapsed time: {elapsed} s, current LSN: {position}\n"
        f"2026-01-01 00:00:{clock} UTC [{clock}] FATAL:  the database system is starting up\n"
    )


def test_recovery_gets_on_when_its_position_changes_not_when_time_passes(tmp_path):
    folder = DataFolder(tmp_path)
    folder.log.write_text(recovery("01.000", "1.00", "0/100"))
    before = progress(folder)
    folder.log.write_text(recovery("02.123", "2.12", "0/100"))
    assert progress(folder) == before
    folder.log.write_text(recovery("02.123", "2.12", "0/200"))
    assert progress(folder) != before


def test_a_server_that_never_comes_up_is_reported_with_its_log(folder, monkeypatch):
    monkeypatch.setattr("service.store.embedded.supervisor.PATIENCE_SECONDS", 0.3)
    with pytest.raises(StartFailedError, match="invalid value for parameter") as failure:
        EmbeddedPostgres(folder, settings={"max_connections": "many"}).start()
    assert "It ended" in str(failure.value)
    assert server_pid(folder) is None
    with quick(folder) as postgres:
        assert postgres.is_supervisor


def test_a_server_that_lacks_our_role_is_hopeless_at_once(folder, monkeypatch):
    monkeypatch.setattr("service.store.embedded.supervisor.PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr("service.store.embedded.probe.ROLE", "stranger")
    with pytest.raises(StartFailedError, match="does not let us in"):
        quick(folder).start()
    assert server_pid(folder) is None


def test_without_an_account_to_run_as_the_way_out_is_said(monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(os_account, "DEDICATED_NAME", "moorage-absent")
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(FolderUnusableError, match="MOORAGE_DATABASE_URL"):
        os_account.choose(None)


def test_a_user_without_a_name_is_told_what_postgresql_wants(monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 54321)
    with pytest.raises(FolderUnusableError, match="54321 has no name"):
        os_account.choose(None)
