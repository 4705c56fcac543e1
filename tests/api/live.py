"""A real server process: granian, over a database of the test's own."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[2]
START_SECONDS_MAX = 30


@contextlib.contextmanager
def live_server(database_url: str, **settings: str) -> Iterator[str]:
    """The URL of a server with these settings (`token="…"`), stopped at the end."""
    port = _free_port()
    variables = {f"MOORAGE_{name.upper()}": value for name, value in settings.items()}
    inherited = os.environ  # noqa: TID251 - the server's own settings are added to it
    environment = {**inherited, "MOORAGE_DATABASE_URL": database_url, **variables}
    command = [sys.executable, "-m", "granian", "--interface", "asgi", "--factory"]
    options = ["--host", "127.0.0.1", "--port", str(port), "--no-ws", "--log-level", "error"]
    target = "service.app:create_app_from_environment"
    process = subprocess.Popen([*command, *options, target], cwd=ROOT, env=environment)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_ready(url, process)
        yield url
    finally:
        process.terminate()
        process.wait(START_SECONDS_MAX)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{url}/readyz").is_success:
                return
        time.sleep(0.05)
    raise AssertionError("The server did not become ready.")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
