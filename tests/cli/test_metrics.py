"""One scrape of a server is the sum over its worker processes, and outlives them."""

import re

import httpx
import psutil

from service.server.local_server import LocalServer, temporary_folder
from tests.processes import PLAIN_HTTP, workers_of
from tests.waiting import eventually

ROUNDS = 40


def looks_at_nodes(url: str) -> float:
    text = httpx.get(f"{url}/metrics", **PLAIN_HTTP).text
    found = re.search(r'_seconds_count\{operation="listNodes",status="200"\} (\S+)', text)
    return float(found[1]) if found else 0.0


def look_at_nodes(url: str, times: int) -> None:
    for _ in range(times):  # a connection each, so that all workers get some
        httpx.get(f"{url}/v1/clusters/default/nodes", **PLAIN_HTTP).raise_for_status()


def counted(url: str, looks: int) -> bool:
    """Whether all say so, as soon as one does: a worker answers before it counts."""
    eventually(lambda: looks_at_nodes(url) == looks)
    return all(looks_at_nodes(url) == looks for _ in range(6))


def listens(worker: psutil.Process) -> bool:
    return any(each.status == psutil.CONN_LISTEN for each in worker.net_connections())


def ready_again(server: LocalServer, dead: int) -> None:
    def both_listen() -> bool:
        workers = workers_of(server)
        pids = [each.pid for each in workers]
        return len(pids) == 2 and dead not in pids and all(map(listens, workers))

    eventually(both_listen)


def test_all_workers_are_counted_and_none_is_forgotten_when_it_dies(database_url: str) -> None:
    environment = {"MOORAGE_DATABASE_URL": database_url}
    with (
        temporary_folder() as folder,
        LocalServer(folder / "data", workers=2, environment=environment, quiet=True) as server,
    ):
        look_at_nodes(server.url, ROUNDS)
        assert counted(server.url, ROUNDS)

        killed = workers_of(server)[0]
        killed.kill()
        ready_again(server, killed.pid)
        look_at_nodes(server.url, ROUNDS)
        assert counted(server.url, 2 * ROUNDS)

        metrics = httpx.get(f"{server.url}/metrics", **PLAIN_HTTP).text
        assert metrics.count("\nmoorage_inbox_requests ") == 1
