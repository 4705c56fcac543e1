"""What a server logs from its start to its end, and while its database is away."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy.engine import make_url

from service.server.local_server import is_ready
from service.server.tcp_ports import LOOPBACK, hold_port, port_of
from tests.paths import ROOT
from tests.processes import PLAIN_HTTP
from tests.waiting import PATIENCE_SECONDS, eventually

STATES = [
    "Moorage starts.",
    "The tables are up to date.",
    "The worker serves.",
    "Moorage is ready.",
    "Moorage stops.",
    "The worker stops.",
    "The worker has stopped.",
    "Moorage has stopped.",
]


class Log:
    """The lines that a process has written so far."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def lines(self) -> list[dict[str, Any]]:
        """All whole lines; it fails if one is not JSON."""
        text = self._path.read_text("utf-8")
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def messages(self) -> list[str]:
        return [line["message"] for line in self.lines()]


@contextlib.contextmanager
def server(database_url: str, log: Path, **settings: str) -> Iterator[str]:
    """The URL of a server that writes a log, stopped in good order at the end."""
    given = {"database_url": database_url, "log_format": "json", **settings}
    variables = {f"MOORAGE_{name.upper()}": value for name, value in given.items()}
    environment = {**os.environ, **variables}  # noqa: TID251 - the child's
    with hold_port() as held, log.open("wb") as stderr:
        command = [sys.executable, "-m", "service.cli", "serve", "--port", str(port_of(held))]
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stderr=stderr, start_new_session=True
        )
        url = f"http://{LOOPBACK}:{port_of(held)}"
        try:
            eventually(lambda: is_ready(url) or process.poll() is not None)
            yield url
            process.terminate()
            assert process.wait(PATIENCE_SECONDS) == 0
        finally:
            process.kill()
            process.wait()


def test_each_line_is_json_and_each_state_and_request_is_told_once(
    database_url: str, tmp_path: Path
) -> None:
    log = Log(tmp_path / "log")
    asked = [f"id-{number}" for number in range(24)]
    together = threading.Barrier(8)

    def ask(request_id: str) -> None:
        together.wait()
        path = f"/v1/clusters/default/nodes/{request_id}"
        httpx.get(url + path, headers={"x-request-id": request_id}, **PLAIN_HTTP)

    with server(database_url, tmp_path / "log", access_log="true") as url:
        with ThreadPoolExecutor(8) as callers:
            list(callers.map(ask, asked))
        eventually(lambda: "Moorage is ready." in log.messages())
    lines = log.lines()
    assert [each["message"] for each in lines if each["message"] in STATES] == STATES
    [migrated] = [each for each in lines if each["message"] == "The tables are up to date."]
    assert migrated["before"] == migrated["migration"], "there was nothing to do"
    fields = ("time", "level", "process", "logger", "message")
    assert [list(each)[:5] for each in lines] == [list(fields)] * len(lines)
    answered = [each for each in lines if each.get("operation") == "getNode"]
    assert Counter(each["request_id"] for each in answered) == Counter(asked)
    assert all(each["path"].endswith("/" + each["request_id"]) for each in answered)


def test_an_outage_is_two_lines_and_no_traceback(
    database_url: str, databases: Any, tmp_path: Path
) -> None:
    log, name = Log(tmp_path / "log"), make_url(database_url).database
    with server(database_url, tmp_path / "log") as url:
        databases.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        try:
            databases.execute(
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
            )
            eventually(lambda: "The database is lost." in log.messages())
            assert httpx.get(url + "/readyz", **PLAIN_HTTP).status_code == 503
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
            path = url + "/v1/clusters/default/nodes/n1"
            assert httpx.put(path, json=node, **PLAIN_HTTP).status_code == 503
            eventually(lambda: is_told_by_metrics(url))
        finally:
            databases.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        eventually(lambda: "The database is back." in log.messages())
        assert (
            "moorage_database_outages_total 1.0" in httpx.get(url + "/metrics", **PLAIN_HTTP).text
        )
        assert httpx.get(url + "/readyz", **PLAIN_HTTP).status_code == 200
    lines = log.lines()
    told = [each for each in lines if each["logger"] == "service.store.db.outages"]
    assert [each["message"] for each in told] == ["The database is lost.", "The database is back."]
    assert told[0]["reason"]
    assert told[1]["after_seconds"] > 0
    assert not any("exception" in each for each in lines)


def is_told_by_metrics(url: str) -> bool:
    """Whether the metrics tell of the outage: the gauges follow about once a second."""
    return "moorage_database_up 0.0" in httpx.get(url + "/metrics", **PLAIN_HTTP).text
