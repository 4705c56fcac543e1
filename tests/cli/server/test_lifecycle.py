"""The whole server as its users meet it: started by the command, asked over HTTP, stopped, killed."""

import signal

import httpx
import psutil
import pytest

from moorage.cli.input.sources import read_objects
from moorage.cli.session.client import Client
from service.server.local_server import LocalServer, is_ready, temporary_folder
from service.store.embedded.config import SERVING_ROLE
from tests.paths import ROOT
from tests.processes import PLAIN_HTTP, copy_data, workers_of
from tests.waiting import WAIT_SECONDS, eventually
from tools.conformance.comparison import replay_trace

EXAMPLES = ROOT / "examples"

TOKEN = "a-token-that-nobody-would-guess-4711"


@pytest.fixture
def data_dir():
    with temporary_folder() as folder:
        yield folder / "data"


@pytest.fixture
def database_dir(data_dir, ready_made):
    """A data folder that has been used before."""
    copy_data(ready_made, data_dir)
    return data_dir


@pytest.fixture(scope="module")
def running_folder(ready_made):
    """Where the data of `running` is."""
    with temporary_folder() as folder:
        copy_data(ready_made, folder / "data")
        yield folder


@pytest.fixture(scope="module")
def running(running_folder):
    """A server that several tests share; each uses a cluster of its own."""
    (running_folder / "token").write_text(f"{TOKEN}\n")
    environment = {"MOORAGE_TOKEN_FILE": str(running_folder / "token")}
    with LocalServer(running_folder / "data", environment=environment) as server:
        yield server


@pytest.fixture
def client(running, request):
    """One of the shared server, with a cluster of the test's own."""
    name = request.node.name.replace("_", "-")[:60].strip("-")
    with Client(running.url, token=TOKEN, cluster=name) as made:
        made.put(made.path(), {"config": {}})
        yield made


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


def test_an_empty_folder_becomes_ready_and_a_stop_signal_is_exit_code_0(data_dir):
    server = LocalServer(data_dir)

    server.start()
    supervisor = psutil.Process(server.process.pid)
    family = supervisor.children(recursive=True)

    assert server.stop() == 0
    _, alive = psutil.wait_procs(family, timeout=WAIT_SECONDS)
    assert alive == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_during_the_start_is_exit_code_0_too(data_dir, number):
    server = LocalServer(data_dir)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "wait_until_ready", lambda _deadline: None)
        server.start()
    eventually(data_dir.exists)

    server.process.send_signal(number)

    assert server.wait() == 0


def test_what_was_acknowledged_outlives_a_kill(running, client):
    load_sample(client)
    results = place_workload(client, "1-database.yaml") + place_workload(client, "3-web.yaml")
    placed = {r["name"]: r["nodeName"] for r in results if r["outcome"] == "Placed"}

    running.kill()
    running.start()

    assert placed
    assert stored(client) == placed


def test_a_worker_that_dies_is_replaced_and_nothing_is_lost(running, client):
    load_sample(client)
    place_workload(client, "1-database.yaml")
    before = stored(client)
    [worker] = workers_of(running)

    worker.kill()
    worker.wait(WAIT_SECONDS)
    eventually(lambda: is_ready(running.url))

    assert stored(client) == before


def test_a_second_server_on_the_folder_joins_and_takes_over(database_dir):
    with (
        LocalServer(database_dir) as first,
        LocalServer(database_dir) as second,
        Client(first.url) as before,
        Client(second.url) as after,
    ):
        load_sample(before)
        assert first.stop() == 0

        place_workload(after, "1-database.yaml")

        assert len(stored(after)) == 3


def test_a_token_is_asked_for_below_v1_only(running, client):
    assert httpx.get(f"{running.url}/v1/clusters", **PLAIN_HTTP).status_code == 401
    assert httpx.get(f"{running.url}/livez", **PLAIN_HTTP).status_code == 200

    assert client.get("/v1/clusters")["items"]


def test_no_process_shows_the_token_in_its_command_line_or_environment(running):
    supervisor = psutil.Process(running.process.pid)
    family = [supervisor, *supervisor.children(recursive=True)]

    shown = [
        text
        for process in family
        for text in (*process.cmdline(), *process.environ().values())
        if TOKEN in text
    ]

    assert set(workers_of(running)) <= set(family)
    assert shown == []


def test_no_connection_of_a_server_is_a_superusers(running, running_folder, client):
    client.get("/v1/clusters")
    # By its folder: a server that came after one that was killed may have found it running.
    [pid_file] = running_folder.glob("data/**/postmaster.pid")
    postgres = psutil.Process(int(pid_file.read_text().split()[0]))
    sessions = [child.cmdline()[0].split() for child in postgres.children()]
    users = {words[1] for words in sessions if "[local]" in words}

    assert users == {SERVING_ROLE}


def test_a_simulation_stores_nothing(client):
    node = {
        "metadata": {"name": "n1"},
        "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "9"}},
    }
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
    request = {"config": {}, "namespaces": [], "nodes": [node], "pods": [], "pod": pod}
    [result] = client.post("/v1/simulations", request)["results"]

    assert result["nodeName"] == "n1"
    assert stored(client) == {}


def test_answers_are_kube_schedulers_own(client):
    vectors = read_objects(
        [str(ROOT / "tests" / "conformance" / "vectors" / "traces_public.jsonl.gz")]
    )
    before = [cluster["name"] for cluster in client.get("/v1/clusters")["items"]]

    checks = list(replay_trace(client, vectors[0]))

    assert len(checks) > 50
    assert [check.name for check in checks if check.differences] == []
    assert [cluster["name"] for cluster in client.get("/v1/clusters")["items"]] == before
