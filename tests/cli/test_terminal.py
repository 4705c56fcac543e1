"""Commands in a real terminal, and Ctrl-C: it reaches every process of the foreground at the same moment."""

import asyncio
import random
import re
import signal
import socket
import sys

import asyncpg
import psutil
import pytest

from examples.movement import JOBS
from moorage.cli.render.output import wrapped
from moorage.cli.session.client import Client
from service.server.local_server import temporary_folder
from service.server.tcp_ports import hold_port, port_of
from service.store.db.connector import STARTERS_LOCK, data_source_name
from service.store.schema.migrate import is_current
from tests.paths import ROOT
from tests.processes import copy_data
from tests.seeds import seed
from tests.terminals import CTRL_C, Terminal
from tests.waiting import WAIT_SECONDS, eventually, once

MOORAGE = [sys.executable, "-m", "service.cli"]
DEMO = [sys.executable, "examples/demo.py", "--serve", "--data-dir"]
WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
PRESSED_TIMES = 40
CODES = re.compile("\x1b\\[[0-9;]*m")
"""What a terminal takes for colours."""


@pytest.fixture
def data_dir(ready_made):
    with temporary_folder() as folder:
        copy_data(ready_made, folder / "data")
        yield folder / "data"


def assert_nothing_is_left(processes):
    _, alive = psutil.wait_procs(processes, timeout=WAIT_SECONDS)
    assert alive == []


def has_moved(url):
    """Whether pods have come that nobody asked for by hand."""
    with Client(url) as client:
        path = client.path("namespaces", "shop", "pods")
        return bool(client.get(path, {"labelSelector": JOBS})["items"])


@pytest.mark.exploration
def test_ctrl_c_ends_the_demonstration_that_moves_and_all_its_processes_in_good_order(data_dir):
    with hold_port() as held:
        port = {"MOORAGE_PORT": str(port_of(held))}
        with Terminal([*DEMO, str(data_dir)], environment=port, cwd=str(ROOT)) as terminal:
            terminal.wait_for("Serving until Ctrl-C.")
            eventually(lambda: has_moved(f"http://127.0.0.1:{port_of(held)}"))
            family = terminal.family()

            terminal.press(CTRL_C)

            assert terminal.exit_code() == 0
            assert_nothing_is_left(family)
            assert "Killing" not in terminal.shown
            assert "Traceback" not in terminal.shown


def test_the_demonstration_asks_nobody_who_listens_at_its_port_already(tmp_path):
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(port_of(other))
        with Terminal(
            [*DEMO, str(tmp_path)], environment={"MOORAGE_PORT": port}, cwd=str(ROOT)
        ) as terminal:
            assert terminal.exit_code() == 2
        other.settimeout(0)

        with pytest.raises(BlockingIOError):
            other.accept()
    assert f"Cannot listen on 127.0.0.1:{port}: Address already in use." in terminal.shown


def test_a_migration_that_waits_for_the_database_says_that_it_was_stopped():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://nobody@127.0.0.1:{port_of(silent)}/none"
        with Terminal([*MOORAGE, "migrate", "--database-url", url], cwd=str(ROOT)) as terminal:
            silent.settimeout(WAIT_SECONDS)
            with silent.accept()[0]:
                terminal.press(CTRL_C)

                assert terminal.exit_code() == 130
    assert "Stopped: the database may not be up to date." in terminal.shown
    assert "is up to date" not in terminal.shown


async def stop_in_the_middle(url, stop):
    """Stop a migration that waits for another one, which never gets on."""
    other = await asyncpg.connect(data_source_name(url))
    try:
        await other.execute(f"SELECT pg_advisory_lock({STARTERS_LOCK})")
        with Terminal([*MOORAGE, "migrate", "--database-url", url], cwd=str(ROOT)) as terminal:

            async def waits():
                return await other.fetchval(WAITING)

            await once(waits)
            stop(terminal)
            return await asyncio.to_thread(terminal.exit_code), terminal.shown
    finally:
        await other.close()


def press(terminal):
    terminal.press(CTRL_C)


def terminate(terminal):
    terminal.process.terminate()


@pytest.mark.parametrize(("stop", "code"), [(press, 130), (terminate, 143)])
def test_a_migration_in_the_middle_says_that_it_was_stopped_and_has_changed_nothing(
    empty_database_url, stop, code
):
    ended, shown = asyncio.run(stop_in_the_middle(empty_database_url, stop))

    assert ended == code
    assert "is up to date" not in shown
    assert "Stopped" in shown
    assert not asyncio.run(is_current(empty_database_url))


@pytest.mark.exploration
@pytest.mark.parametrize("presses", [1, 2, 5])
def test_ctrl_c_at_any_moment_of_a_servers_life_leaves_no_process(data_dir, presses):
    """Also while it starts, and several times within a second: in good order, or at once, but never by the clock."""
    moments = random.Random(seed("the moments of Ctrl-C"))
    for _ in range(PRESSED_TIMES):
        with hold_port() as held:
            options = ["--data-dir", str(data_dir), "--port", str(port_of(held)), "--workers", "2"]
            with Terminal([*MOORAGE, "serve", *options], cwd=str(ROOT)) as terminal:
                if moments.random() < 0.5:
                    terminal.wait_for("Moorage is ready")
                pause = moments.random()
                for _ in range(presses):
                    terminal.look(pause)
                    family = terminal.family()
                    terminal.press(CTRL_C)
                    pause = moments.random() / presses
                # Python itself ends by the signal while it imports the program.
                assert terminal.exit_code() in {0, 130, -signal.SIGINT}, terminal.shown
                assert_nothing_is_left(family)
                assert "Killing" not in terminal.shown


TEXT = "A web tier: evenly over the zones, by preference on a host that runs a cache."
SAID = {
    f"output.prose({TEXT!r})": TEXT,
    f"output.note({TEXT!r})": TEXT,
    f"output.warning({{'field': 'spec.x', 'code': 'Ignored', 'message': {TEXT!r}}})": (
        f"warning (Ignored): spec.x {TEXT}"
    ),
    f"print_error(CliError({TEXT!r}))": f"error: {TEXT}",
}


@pytest.mark.parametrize("columns", [24, 40, 79])
def test_sentences_break_between_words_where_the_terminal_ends(columns):
    said = "; print(); ".join(SAID)
    script = (
        "from moorage.cli.exceptions import CliError; "
        f"from moorage.cli.render.output import Output, print_error; output = Output(); {said}"
    )
    narrow = {"COLUMNS": str(columns)}
    with Terminal([sys.executable, "-c", script], environment=narrow, cwd=str(ROOT)) as terminal:
        assert terminal.exit_code() == 0
    paragraphs = [part.split("\r\n") for part in CODES.sub("", terminal.shown).split("\r\n\r\n")]

    assert max(len(line) for lines in paragraphs for line in lines) <= columns
    assert [" ".join(filter(None, lines)) for lines in paragraphs] == [*SAID.values()]


def test_what_a_sentence_is_indented_by_stays_before_all_of_its_lines():
    assert wrapped(f"  {TEXT}\n- end", 40).splitlines() == [
        "  A web tier: evenly over the zones, by",
        "  preference on a host that runs a",
        "  cache.",
        "- end",
    ]
