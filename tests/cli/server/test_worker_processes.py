"""The supervisor over real processes, with an application that only says its process id."""

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress

import httpx
import psutil
import pytest

from service.api.telemetry.exposition import DIRECTORY_VARIABLE, exposition_of
from service.server.tcp_ports import hold_port, port_of
from tests.paths import ROOT
from tests.processes import PLAIN_HTTP
from tests.waiting import WAIT_SECONDS, eventually

APPLICATION = """
import asyncio, os, pathlib, sys

SUSPECTS = pathlib.Path(__file__).parent / "suspects"

def create():
    from service.server.worker import end_with_parent
    from service.runtime.worker_deaths import Suspects
    end_with_parent()
    Suspects(SUSPECTS).deciding(7, "shop", "deadly", b"{}")
    return app

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    if scope["path"] == "/slow":
        folder = pathlib.Path(__file__).parent
        (folder / "begun").touch()
        while not (folder / "released").exists():
            await asyncio.sleep(0.01)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})

if __name__ == "__main__":
    from service.server.supervisor import run_workers
    from service.server.signals import StopRequest
    from service.api.telemetry.worker_starts import starts_told_by_supervisor
    from service.runtime.worker_deaths import DeathCounts
    port, workers, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    request = StopRequest()
    request.number = int(sys.argv[4]) if len(sys.argv) > 4 else None
    was_asked = run_workers(
        "application:create",
        host="127.0.0.1",
        port=port,
        workers=workers,
        header_timeout_seconds=seconds,
        stop_request=request,
        starts=starts_told_by_supervisor(),
        deaths=DeathCounts(SUSPECTS),
    )
    sys.exit(0 if was_asked else 3)
"""


class Server:
    def __init__(self, folder, workers, header_seconds, stopped_by=None):
        self._held = hold_port()
        self.port = port = port_of(self._held)
        self.url = f"http://127.0.0.1:{port}"
        (folder / "application.py").write_text(APPLICATION)
        self.metrics = folder / "metrics"
        self.metrics.mkdir()
        environment = {
            "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
            DIRECTORY_VARIABLE: str(self.metrics),
        }
        command = [sys.executable, str(folder / "application.py")]
        options = [str(port), str(workers), str(header_seconds)]
        if stopped_by is not None:
            options.append(str(int(stopped_by)))
        self._log = folder / "log"
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *options], env=environment, start_new_session=True, stderr=log
            )

    def worker(self):
        """The process that answers now."""
        return eventually(self._answering)

    def _answering(self):
        """None while nobody answers."""
        with suppress(httpx.TransportError):
            return int(httpx.get(self.url, **PLAIN_HTTP).text)

    def refuses_connections(self):
        """Whether nobody listens any more: whoever is being stopped no longer does."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) != 0

    def log(self):
        return self._log.read_text()

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._held.close()


@pytest.fixture
def start(tmp_path):
    started = []

    def server(workers=1, header_seconds=WAIT_SECONDS, stopped_by=None):
        """A server that answers, or one that was told to stop before it listened to signals."""
        started.append(Server(tmp_path, workers, header_seconds, stopped_by))
        if stopped_by is None:
            started[-1].worker()
        return started[-1]

    yield server
    for one in started:
        one.end()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_ends_the_server_with_exit_code_0(start, number):
    server = start(workers=2)

    os.killpg(server.process.pid, number)  # as a terminal does: to all of its processes

    assert server.process.wait(WAIT_SECONDS) == 0


def test_a_stop_signal_that_came_before_the_server_listened_to_signals_ends_it_too(start):
    server = start(stopped_by=signal.SIGTERM)

    assert server.process.wait(WAIT_SECONDS) == 0


@pytest.fixture
def in_flight(start, tmp_path):
    """A server with one request that lasts until the file `released` is there; who asked prints its status."""
    server = start()
    asker = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import httpx; print(httpx.get('{server.url}/slow', timeout=None, verify=False).status_code)",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    worker = psutil.Process(server.worker())
    eventually((tmp_path / "begun").exists)
    return server, worker, asker


def test_a_request_in_flight_is_answered_before_the_end_although_the_worker_is_told_twice(
    in_flight, tmp_path
):
    server, worker, asker = in_flight

    server.process.terminate()
    eventually(server.refuses_connections)
    worker.terminate()  # as systemd does: it tells every process of a service
    worker.send_signal(signal.SIGINT)
    (tmp_path / "released").touch()

    assert asker.communicate(timeout=WAIT_SECONDS)[0].strip() == b"200"
    assert server.process.wait(WAIT_SECONDS) == 0
    assert "Killing" not in server.log()


def test_a_second_ctrl_c_waits_for_no_request(in_flight):
    server, worker, asker = in_flight

    server.process.send_signal(signal.SIGINT)
    eventually(server.refuses_connections)
    server.process.send_signal(signal.SIGINT)

    assert server.process.wait(WAIT_SECONDS) == 0
    assert not worker.is_running()
    assert "Killing" not in server.log()  # which is what happens when the time is up
    assert asker.communicate(timeout=WAIT_SECONDS)[0] == b""


def test_a_worker_has_nothing_to_do_with_its_servers_terminal(start):
    server = start()

    assert os.getsid(server.worker()) != os.getsid(server.process.pid)


def test_headers_that_never_end_are_cut_off(start):
    address = ("127.0.0.1", start(header_seconds=0.3).port)

    with socket.create_connection(address, timeout=WAIT_SECONDS) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        while connection.recv(1024):  # TimeoutError: they are not
            pass


def test_a_worker_that_dies_is_started_again_however_often(start):
    server = start()
    seen = {server.worker()}

    for _ in range(3):
        worker = psutil.Process(server.worker())
        worker.kill()
        psutil.wait_procs([worker], timeout=WAIT_SECONDS)
        seen.add(server.worker())

    assert len(seen) == 4
    assert server.process.poll() is None
    told = re.findall(
        r"A worker ended, and is started again\. pid=(\d+) signal=SIGKILL", server.log()
    )
    assert len(told) == 3
    assert {int(pid) for pid in told} < seen
    counted = exposition_of(str(server.metrics)).decode()
    assert 'moorage_worker_starts_total{reason="server"} 1.0' in counted
    assert 'moorage_worker_starts_total{reason="death"} 3.0' in counted


def test_a_death_is_counted_for_the_pod_that_the_worker_was_deciding(start):
    server = start()
    for deaths in (1, 2):
        worker = psutil.Process(server.worker())
        worker.kill()
        psutil.wait_procs([worker], timeout=WAIT_SECONDS)
        told = f"The worker was deciding a pod. pod=shop/deadly cluster_id=7 deaths={deaths}"
        eventually(lambda told=told: told in server.log())
    counted = exposition_of(str(server.metrics)).decode()
    assert "moorage_pods_set_aside_total 1.0" in counted


def test_workers_do_not_outlive_a_killed_supervisor(start):
    server = start(workers=2)
    server.worker()
    started = psutil.Process(server.process.pid).children(recursive=True)

    server.process.kill()

    _, alive = psutil.wait_procs(started, timeout=WAIT_SECONDS)
    assert [each for each in alive if each.status() != psutil.STATUS_ZOMBIE] == []


def test_workers_do_not_outlive_a_supervisor_that_is_killed_while_its_fork_server_starts_anew(
    start,
):
    server = start(workers=2)
    server.worker()
    supervisor = psutil.Process(server.process.pid)
    [before] = fork_servers(supervisor)
    started = supervisor.children(recursive=True)

    before.kill()
    eventually(lambda: fork_servers(supervisor) not in ([], [before]))
    started += supervisor.children(recursive=True)
    server.process.kill()

    _, alive = psutil.wait_procs(started, timeout=WAIT_SECONDS)
    assert [each for each in alive if each.status() != psutil.STATUS_ZOMBIE] == []


def fork_servers(supervisor):
    """Those that run; a process that ends meanwhile has no command line."""
    found = []
    for each in supervisor.children():
        with suppress(psutil.Error):
            if "multiprocessing.forkserver" in " ".join(each.cmdline()):
                found.append(each)
    return found


ORPHAN = """
import os, time
from service.server import worker

parent = os.getpid()
os.environ[worker.SUPERVISOR_VARIABLE] = str(parent)
if not os.fork():
    while os.getppid() == parent:
        time.sleep(0.01)
    {tie}
    print("outlived its parent", flush=True)
"""


@pytest.mark.parametrize(
    "tie",
    [
        pytest.param("worker.end_with_parent()", id="worker"),
        pytest.param("import service.server.preload", id="fork server"),
    ],
)
def test_a_process_whose_parent_died_before_it_could_tie_itself_ends(tie):
    ended = subprocess.run(
        [sys.executable, "-c", ORPHAN.format(tie=tie)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )  # it is read to the end, so until the forked process has ended, too
    assert ended.stdout == ""


FORKS = """
import gc, os
from service.server import worker
os.environ[worker.SUPERVISOR_VARIABLE] = str(os.getppid())
import service.server.preload

def frozen_by_forking() -> bool:
    before = gc.get_freeze_count()
    if not (child := os.fork()):
        os._exit(0)
    os.waitpid(child, 0)
    return gc.get_freeze_count() > before

print(frozen_by_forking())
if not (worker := os.fork()):
    print(frozen_by_forking(), flush=True)
    os._exit(0)
os.waitpid(worker, 0)
"""


def test_only_the_fork_server_freezes_its_memory_when_it_forks():
    ended = subprocess.run(
        [sys.executable, "-u", "-c", FORKS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.split() == ["True", "False"]
