"""The whole server as its users meet it: started by the command, asked over HTTP, stopped, killed."""

import signal
import socket
from pathlib import Path

import httpx
import psutil
import pytest

from service.cli.client import Client
from service.cli.conformance import replay_trace
from service.cli.local import LocalServer, is_ready, temporary_folder
from service.cli.sources import read_objects
from tests.processes import workers_of
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

pytestmark = pytest.mark.timeout(300)  # several starts of a server, on a busy machine
READY_SECONDS_MAX = 60


@pytest.fixture
def data_dir():
    with temporary_folder() as folder:
        yield folder / "data"


@pytest.fixture(scope="module")
def running():
    """A server that several tests share; each uses a cluster of its own."""
    with temporary_folder() as folder, LocalServer(folder / "data") as server:
        yield server


def load_sample(client):
    objects = read_objects([str(EXAMPLES / "cluster")])
    return client.post_once(client.path("apply"), {"kind": "List", "items": objects})


def place_workload(client, name):
    pods = read_objects([str(EXAMPLES / "workloads" / name)])
    return client.post_once(client.path("placements"), {"pods": pods})["results"]


def stored(client):
    return {
        pod["metadata"]["name"]: pod["spec"]["nodeName"]
        for page in client.pages(client.path("pods"))
        for pod in page
    }


def test_an_empty_folder_is_ready_in_time_and_a_stop_signal_is_exit_code_0(data_dir):
    server = LocalServer(data_dir)

    assert server.start() < READY_SECONDS_MAX
    supervisor = psutil.Process(server.process.pid)
    family = supervisor.children(recursive=True)

    assert server.stop() == 0
    _, alive = psutil.wait_procs(family, timeout=READY_SECONDS_MAX)
    assert alive == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_during_the_start_is_exit_code_0_too(data_dir, number):
    server = LocalServer(data_dir)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "_wait_until_ready", lambda _deadline: None)
        server.start()
    eventually(data_dir.exists)

    server.process.send_signal(number)

    assert server.wait() == 0


def test_what_was_acknowledged_outlives_a_kill(data_dir):
    with LocalServer(data_dir) as server, Client(server.url) as client:
        load_sample(client)
        results = place_workload(client, "1-database.yaml") + place_workload(client, "3-web.yaml")
        placed = {r["name"]: r["nodeName"] for r in results if r["outcome"] == "Placed"}

        server.kill()
        server.start()

        assert placed
        assert stored(client) == placed


def test_a_worker_that_dies_is_replaced_and_nothing_is_lost(data_dir):
    with LocalServer(data_dir) as server, Client(server.url) as client:
        load_sample(client)
        place_workload(client, "1-database.yaml")
        before = stored(client)
        [worker] = workers_of(server)

        worker.kill()
        worker.wait(READY_SECONDS_MAX)
        eventually(lambda: is_ready(server.url))

        assert stored(client) == before


def test_a_second_server_on_the_folder_joins_and_takes_over(data_dir):
    with (
        LocalServer(data_dir) as first,
        LocalServer(data_dir) as second,
        Client(first.url) as before,
        Client(second.url) as after,
    ):
        load_sample(before)
        assert first.stop() == 0

        place_workload(after, "1-database.yaml")

        assert len(stored(after)) == 3


def test_a_token_is_asked_for_below_v1_only(data_dir):
    token = {"MOORAGE_TOKEN": "s3cret"}
    with LocalServer(data_dir, environment=token) as server:
        assert httpx.get(f"{server.url}/v1/clusters").status_code == 401
        assert httpx.get(f"{server.url}/livez").status_code == 200

        with Client(server.url, token="s3cret") as client:
            assert client.get("/v1/clusters")["items"]


def test_headers_that_never_end_are_cut_off(running):
    address = ("127.0.0.1", running.port)
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n")
        while connection.recv(1024):  # TimeoutError: they are not
            pass


def test_a_simulation_stores_nothing(running):
    node = {
        "metadata": {"name": "n1"},
        "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "9"}},
    }
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
    request = {"config": {}, "namespaces": [], "nodes": [node], "pods": [], "pod": pod}
    with Client(running.url) as client:
        [result] = client.post("/v1/simulations", request)["results"]

        assert result["nodeName"] == "n1"
        assert stored(client) == {}


def test_answers_are_kube_schedulers_own(running):
    vectors = read_objects(
        [str(ROOT / "tests" / "conformance" / "vectors" / "traces_public.jsonl.gz")]
    )
    with Client(running.url) as client:
        checks = list(replay_trace(client, vectors[0]))

        assert len(checks) > 50
        assert [check.name for check in checks if check.differences] == []
        assert [cluster["name"] for cluster in client.get("/v1/clusters")["items"]] == ["default"]
