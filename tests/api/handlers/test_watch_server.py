"""Watches of real servers: across processes, cut off, ended by a stop signal, from the command."""

import contextlib
import itertools
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from service.server.local_server import LocalServer, temporary_folder
from tests.api.harness import node
from tests.processes import PLAIN_HTTP, workers_of
from tests.store.embedded.conftest import query
from tests.waiting import WAIT_SECONDS, eventually

KEEP = {
    "MOORAGE_LOG_KEEP_SECONDS": "0.5",
    "MOORAGE_LOG_KEEP_CHANGES": "5",
    "MOORAGE_UPKEEP_SECONDS": "0.3",
}


class Transcript:
    """What one watch gets, read by a thread of its own until it is left."""

    def __init__(self, server: LocalServer, cluster: str, **parameters: object) -> None:
        self.events: list[tuple[str, int | None, dict]] = []
        self.ended = threading.Event()
        self.broken_off: httpx.TransportError | None = None
        self._news = threading.Condition()
        self._client = httpx.Client(base_url=server.url, **PLAIN_HTTP)
        request = self._client.build_request(
            "GET", f"/v1/clusters/{cluster}/watch", params=parameters
        )
        self._answer = self._client.send(request, stream=True)
        assert self._answer.status_code == 200, self._answer.read()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        fields: dict[str, str] = {}
        try:
            for line in self._answer.iter_lines():
                if line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                else:
                    self._take(fields)
                    fields = {}
        except httpx.TransportError as error:
            self.broken_off = error
        self.ended.set()

    def leave(self) -> None:
        """What the thread is reading ends, whatever more the server would send."""
        with contextlib.suppress(OSError):  # the server ended it
            stream = self._answer.extensions["network_stream"]
            stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._client.close()

    def _take(self, fields: dict[str, str]) -> None:
        if "event" not in fields:
            return
        number = int(fields["id"]) if "id" in fields else None
        with self._news:
            self.events.append((fields["event"], number, json.loads(fields["data"])))
            self._news.notify_all()

    def until(self, count: int) -> list[tuple[str, int | None, dict]]:
        """So many events other than bookmarks."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.changes) >= count, WAIT_SECONDS)
        return self.changes

    def begun(self) -> "Transcript":
        """Once the first bookmark has said where it begins."""
        with self._news:
            assert self._news.wait_for(lambda: self.events, WAIT_SECONDS)
        return self

    @property
    def changes(self) -> list[tuple[str, int | None, dict]]:
        return [event for event in self.events if event[0] != "BOOKMARK"]


Follow = Callable[..., Transcript]


@pytest.fixture
def follow() -> Iterator[Follow]:
    """Begins watches, which end with the test."""
    with contextlib.ExitStack() as begun:

        def begin(server: LocalServer, cluster: str, **parameters: object) -> Transcript:
            transcript = Transcript(server, cluster, **parameters)
            begun.callback(transcript.leave)
            return transcript.begun()

        yield begin


def watchers(server: LocalServer) -> float:
    """How many the server says that it has."""
    text = httpx.get(f"{server.url}/metrics", **PLAIN_HTTP).text
    [line] = [each for each in text.splitlines() if each.startswith("moorage_watch_streams ")]
    return float(line.split()[1])


def put_node(server: LocalServer, cluster: str, name: str, **labels: str) -> int:
    """The revision that this made."""
    url = f"{server.url}/v1/clusters/{cluster}/nodes/{name}"
    answer = httpx.put(url, json=node(name, **labels), **PLAIN_HTTP)
    assert answer.status_code in {200, 201}, answer.text
    return int(answer.json()["metadata"]["resourceVersion"])


def big_node(name: str, number: int) -> dict:
    """200 kB, another one for each number."""
    made = {"kind": "Node", **node(name, number=str(number))}
    made["metadata"]["annotations"] = {"big": "x" * 200_000}
    return made


def using(database_url: str) -> dict[str, str]:
    return {"MOORAGE_DATABASE_URL": database_url}


@pytest.fixture(scope="module")
def pair(module_database_url: str) -> Iterator[tuple[LocalServer, LocalServer]]:
    """Two servers on one database; each test has a cluster of its own."""
    with (
        temporary_folder() as folder,
        LocalServer(folder, environment=using(module_database_url)) as one,
        LocalServer(folder, environment=using(module_database_url)) as other,
    ):
        yield one, other


@pytest.fixture
def cluster(pair: tuple[LocalServer, LocalServer], request: pytest.FixtureRequest) -> str:
    name = request.node.name.replace("_", "-")[:60].strip("-")
    answer = httpx.put(f"{pair[0].url}/v1/clusters/{name}", json={"config": {}}, **PLAIN_HTTP)
    assert answer.status_code == 201
    return name


def test_watchers_of_both_processes_see_the_same(pair, cluster, follow):
    transcripts = [follow(server, cluster) for server in pair]
    revisions = [put_node(pair[number % 2], cluster, f"n{number}") for number in range(40)]

    first, second = (transcript.until(40) for transcript in transcripts)

    assert first == second
    assert [revision for _, revision, _ in first] == revisions


@pytest.mark.exploration
def test_p14_another_processes_commit_arrives_long_before_the_next_poll(pair, cluster, follow):
    """Polling comes every 250 ms: whoever waits for that, again and again, waits as long each time.

    A busy machine delays some answers, but not nearly all.
    """
    watch = follow(pair[1], cluster)
    delays = []
    for number in range(15):
        put_node(pair[0], cluster, f"n{number}")
        acknowledged = time.monotonic()
        watch.until(number + 1)
        delays.append(time.monotonic() - acknowledged)

    assert sorted(delays)[3] < 0.1, delays


def test_a_reader_that_stopped_is_cut_off_and_costs_no_memory(pair, cluster):
    server = pair[0]
    [worker] = workers_of(server)
    url = f"{server.url}/v1/clusters/{cluster}"
    eventually(lambda: watchers(server) == 0, WAIT_SECONDS)  # those of tests before
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_SECONDS) as reader:
        reader.sendall(
            f"GET /v1/clusters/{cluster}/watch HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        )
        assert reader.recv(1000)
        eventually(lambda: watchers(server) == 1, WAIT_SECONDS)
        before = worker.memory_info().rss
        for number in range(50):
            body = {"kind": "List", "items": [big_node(f"n{i}", number) for i in range(5)]}
            httpx.post(f"{url}/apply", json=body, **PLAIN_HTTP).raise_for_status()
        grown = worker.memory_info().rss - before
        eventually(lambda: watchers(server) == 0, WAIT_SECONDS)
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := reader.recv(1 << 20):
                received = received[-10:] + piece

    assert grown < 45_000_000  # of 50 MB in the log, the ring keeps 16
    assert not received.endswith(b"0\r\n\r\n")  # cut off, not complete


def test_the_command_follows_a_cluster(pair, cluster):
    put_node(pair[0], cluster, "n1", zone="a")
    command = [sys.executable, "-m", "service.cli", "watch", "Node", "--since", "1", "-l", "zone=a"]
    options = ["--url", pair[1].url, "--cluster", cluster]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        put_node(pair[0], cluster, "n1", zone="b")
        second = process.stdout.readline()
        process.terminate()

    assert first.split() == ["2", "ADDED", "Node", "n1"]
    assert second.split() == ["3", "DELETED", "Node", "n1"]


def test_a_stop_signal_ends_streams_in_good_order(follow, database_url):
    environment = using(database_url)
    with (
        temporary_folder() as folder,
        LocalServer(folder, workers=2, environment=environment) as server,
    ):
        watches = [follow(server, "default") for _ in range(4)]

        code = server.stop()

        assert code == 0
        # Nobody had to be killed, which would break streams off.
        assert all(watch.ended.wait(WAIT_SECONDS) for watch in watches)
        assert [watch.broken_off for watch in watches] == [None] * 4


def test_a_log_beyond_its_bounds_is_compacted_and_late_readers_are_told(follow, database_url):
    environment = KEEP | using(database_url)
    with (
        temporary_folder() as folder,
        LocalServer(folder, workers=2, environment=environment) as server,
    ):
        url = f"{server.url}/v1/clusters/default/watch"
        for number in range(30):
            loaded = put_node(server, "default", f"n{number}")

        numbers = itertools.count()

        def put_again() -> int:
            """A log that does not change is left alone for long."""
            return put_node(server, "default", "again", number=str(next(numbers)))

        def refused() -> httpx.Response | None:
            put_again()
            answer = _since_one(url)
            return None if answer.status_code == 200 else answer

        answer = eventually(refused)

        assert answer.status_code == 410
        assert answer.json()["code"] == "Compacted"

        def compacted_again() -> int:
            """The last revision, once that is so."""
            more = put_again()
            return query(database_url, "SELECT revision FROM floor") >= loaded - 5 and more

        last = eventually(compacted_again)
        kept = follow(server, "default", sinceRevision=last - 5).until(5)
        assert [revision for _, revision, _ in kept] == list(range(last - 4, last + 1))


def _since_one(url: str) -> httpx.Response:
    parameters = {"sinceRevision": 1, "timeoutSeconds": 1}
    return httpx.get(url, params=parameters, **PLAIN_HTTP)
