"""One scrape of a server is the sum over its worker processes, and outlives them."""

import re
import time

import httpx

from service.cli.local import LocalServer, temporary_folder
from tests.processes import workers_of

ROUNDS = 40


def looks_at_nodes(url: str) -> float:
    text = httpx.get(f"{url}/metrics").text
    found = re.search(r'_seconds_count\{operation="listNodes",status="200"\} (\S+)', text)
    return float(found[1]) if found else 0.0


def look_at_nodes(url: str, times: int) -> None:
    for _ in range(times):  # a connection each, so that all workers get some
        httpx.get(f"{url}/v1/clusters/default/nodes").raise_for_status()


def ready_again(server: LocalServer, dead: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        pids = [each.pid for each in workers_of(server)]
        if len(pids) == 2 and dead not in pids:
            return
        time.sleep(0.05)
    raise AssertionError("The worker did not come back.")


def test_all_workers_are_counted_and_none_is_forgotten_when_it_dies(database_url: str) -> None:
    environment = {"MOORAGE_DATABASE_URL": database_url}
    with (
        temporary_folder() as folder,
        LocalServer(folder / "data", workers=2, environment=environment, quiet=True) as server,
    ):
        look_at_nodes(server.url, ROUNDS)
        assert [looks_at_nodes(server.url) for _ in range(6)] == [ROUNDS] * 6

        killed = workers_of(server)[0]
        killed.kill()
        ready_again(server, killed.pid)
        time.sleep(1)  # until the newcomer listens, the kernel may still choose its predecessor
        look_at_nodes(server.url, ROUNDS)
        assert [looks_at_nodes(server.url) for _ in range(6)] == [2 * ROUNDS] * 6

        metrics = httpx.get(f"{server.url}/metrics").text
        assert metrics.count("\nmoorage_inbox_requests ") == 1
