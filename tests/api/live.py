"""A real server process: granian, over a database of the test's own."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

from service.cli.server_options import CLIENT_VARIABLES
from service.server.local_server import is_ready
from service.server.tcp_ports import LOOPBACK, hold_port, port_of
from tests.paths import ROOT
from tests.waiting import PATIENCE_SECONDS, eventually


@contextlib.contextmanager
def live_server(database_url: str, **settings: str) -> Iterator[str]:
    """The URL of a server with these settings (`token="…"`), stopped at the end."""
    variables = {f"MOORAGE_{name.upper()}": value for name, value in settings.items()}
    surroundings = os.environ  # noqa: TID251 - the server's own settings are added to it
    inherited = {name: surroundings[name] for name in surroundings if name not in CLIENT_VARIABLES}
    environment = {**inherited, "MOORAGE_DATABASE_URL": database_url, **variables}
    command = [sys.executable, "-m", "granian", "--interface", "asgi", "--factory"]
    target = "service.app:create_app_from_environment"
    with hold_port() as held:
        port = str(port_of(held))
        options = ["--host", LOOPBACK, "--port", port, "--no-ws", "--log-level", "error"]
        process = subprocess.Popen(
            [*command, *options, target], cwd=ROOT, env=environment, start_new_session=True
        )
        try:
            url = f"http://{LOOPBACK}:{port}"
            _wait_until_ready(url, process)
            yield url
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop the server, by force if it hears nothing: how ours stops is tested where it is run."""
    process.terminate()
    try:
        process.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    eventually(lambda: is_ready(url) or process.poll() is not None)
    assert process.poll() is None, "The server ended while it started."
