"""A13 on real processes: after some quiet every replica is what the tables are."""

import asyncio
from contextlib import ExitStack

import httpx

from service.model.registry.manifests import TemplateCache
from service.scheduler.protocol.limits import Limits
from service.scheduler.replica.loading import Loader
from service.scheduler.replica.replica import Replica
from service.server.local_server import LocalServer, temporary_folder
from service.store.postgres import PostgresStore
from tests.concurrency.callers import bearer
from tests.concurrency.faults.site import start_all
from tests.concurrency.racing import TOKEN, load, run_callers, try_out
from tests.processes import PLAIN_HTTP
from tests.waiting import eventually

PROCESSES = 3
GROUPS = 6


async def tables(database_url):
    """Revision and hash of a replica that is loaded now."""
    store = PostgresStore(database_url)
    try:
        loading = Loader(
            await store.clusters.find("default"),
            source=store,
            new_target=lambda: Replica(TemplateCache()),
            limits=Limits(),
        )
        replica, _ = await loading.run()
    finally:
        await store.close()
    return replica.revision, replica.digest()


def told(url):
    answer = httpx.get(f"{url}/debug/replicas", headers=bearer(TOKEN), **PLAIN_HTTP)
    return {
        item["process"]: (item["revision"], item["hash"])
        for item in answer.raise_for_status().json()["items"]
        if item["cluster"] == "default"
    }


def once_all_report(servers):
    """The second worker of a server may come so late that no caller met it."""

    def report():
        for server in servers:
            try_out(server.url)
        return len(told(servers[0].url)) == PROCESSES

    eventually(report)


def once_all_hold(expected, url):
    """What the processes say as soon as that is so: replicas follow the log by themselves."""

    def hold():
        found = told(url)
        return set(found.values()) == {expected} and found

    return eventually(hold)


async def test_all_processes_of_a_database_come_to_hold_what_the_tables_hold(database_url):
    environment = {
        "MOORAGE_DATABASE_URL": database_url,
        "MOORAGE_TOKEN": TOKEN,
        "MOORAGE_DEBUG": "true",
        "MOORAGE_FORWARDING": "false",  # else one worker of a server has the replica
    }
    with temporary_folder() as folder, ExitStack() as stack:
        servers = [
            LocalServer(folder, environment=environment),
            LocalServer(folder, environment=environment, workers=2),
        ]
        await start_all(servers, stack)
        await asyncio.to_thread(load, servers[0].url)
        await run_callers([server.url for server in servers] * 2, groups=GROUPS)

        await asyncio.to_thread(once_all_report, servers)
        expected = await tables(database_url)
        states = await asyncio.to_thread(once_all_hold, expected, servers[1].url)
        assert len(states) == PROCESSES
        assert set(states.values()) == {expected}
        unasked = await asyncio.to_thread(httpx.get, f"{servers[0].url}/debug/replicas")
        assert unasked.status_code == 401
