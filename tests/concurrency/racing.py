"""Groups of pods whose first members are placed at the same time, and what must be true of them."""

import asyncio
import contextlib
import itertools
import os
import signal
from collections import Counter, defaultdict

import httpx
import msgspec
import psutil

from tests.builders import matching, node, pod
from tests.concurrency.callers import PATH, Caller, Notebook, bearer
from tests.processes import PLAIN_HTTP, workers_of

CALLERS = 16
NODES = 30
ZONES = 3
TOKEN = "canary-that-no-log-may-show-anywhere"
SETUP = 1 + NODES
"""The revision after the cluster and its nodes were made."""


def nodes():
    return [
        {"apiVersion": "v1", "kind": "Node"}
        | node(f"n{i}").label(zone=f"z{i % ZONES}", host=f"n{i}").allocatable(pods="5000")
        for i in range(NODES)
    ]


def member(number, index):
    """A pod of the group of this number: the three kinds take turns."""
    app = f"{('together', 'apart', 'even')[number % 3]}-{number}"
    made, others = pod(f"{app}-{index}").label(app=app), matching(app=app)
    match number % 3:
        case 0:
            return made.require_affinity("zone", others)
        case 1:
            return made.require_anti_affinity("host", others)
        case _:
            return made.spread(1, "zone", others)


def load(url, items=None):
    items = {"apiVersion": "v1", "kind": "List", "items": nodes() if items is None else items}
    httpx.post(
        f"{url}{PATH}/apply", json=items, headers=bearer(TOKEN), **PLAIN_HTTP
    ).raise_for_status()


def try_out(url):
    """A dry run on a connection of its own: whichever worker gets it has a replica then."""
    body = {"dryRun": True, "pods": [dict(member(10**6, 0))]}
    httpx.post(
        f"{url}{PATH}/placements", json=body, headers=bearer(TOKEN), **PLAIN_HTTP
    ).raise_for_status()


async def place_group(callers, number):
    """All callers place the first pods of one group at the same time."""
    await asyncio.gather(
        *(caller.place([dict(member(number, i))]) for i, caller in enumerate(callers))
    )


async def run_callers(urls, groups, *, between=None, enough=None):
    """So many groups, one after the other, and then more until the calls so far are `enough`."""
    notebook, numbers = Notebook(), itertools.count()
    callers = [
        Caller(notebook, f"caller-{i}", [*urls[i % len(urls) :], *urls[: i % len(urls)]], TOKEN)
        for i in range(CALLERS)
    ]
    try:
        while (number := next(numbers)) < groups or (enough and not enough(notebook.calls)):
            if between is not None:
                await between(number)
            await place_group(callers, number)
    finally:
        await asyncio.gather(*(caller.close() for caller in callers))
    return notebook.calls


def zones_and_hosts(history):
    """By group: the zones and hosts of its pods, as PostgreSQL has them."""
    where = {n["metadata"]["name"]: n["metadata"]["labels"] for n in nodes()}
    zones, hosts = defaultdict(Counter), defaultdict(Counter)
    for (kind, _, _), (_, body) in history.rows.items():
        if kind == "Pod":
            manifest = msgspec.json.decode(body)
            labels = where[manifest["spec"]["nodeName"]]
            app = manifest["metadata"]["labels"]["app"]
            zones[app][labels["zone"]] += 1
            hosts[app][labels["host"]] += 1
    return zones, hosts


def broken_groups(history):
    zones, hosts = zones_and_hosts(history)
    for app in zones:
        if app.startswith("together") and len(zones[app]) > 1:
            yield app, zones[app]
        if app.startswith("apart") and max(hosts[app].values()) > 1:
            yield app, hosts[app]
        if app.startswith("even"):
            counts = [zones[app][f"z{i}"] for i in range(ZONES)]
            if max(counts) - min(counts) > 1:
                yield app, counts


def assert_every_answer_is_stored(history):
    stored = {
        (key[1], key[2]): msgspec.json.decode(body)
        for key, (_, body) in history.rows.items()
        if key[0] == "Pod"
    }
    placed = 0
    for call in history.calls:
        for result in call.body["results"] if call.outcome == "ok" else ():
            assert result["outcome"] == "Placed", call
            manifest = stored[result["namespace"], result["name"]]
            told = (result["uid"], result["nodeName"])
            assert (manifest["metadata"]["uid"], manifest["spec"]["nodeName"]) == told
            placed += 1
    return placed


def worker_of(server):
    """A worker process of a server; None while there is none."""
    return next(iter(workers_of(server)), None)


def kill_worker(server):
    """`kill -9`; nothing if it is dead and not there again yet."""
    worker = worker_of(server)
    if worker is not None:
        with contextlib.suppress(psutil.Error):
            worker.kill()


def postmaster_pid(data_dir):
    """The embedded PostgreSQL's; None while there is none."""
    for pid_file in data_dir.rglob("postmaster.pid"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            return int(pid_file.read_text().split()[0])
    return None


def kill_postgres(data_dir):
    """`kill -9` of the postmaster."""
    pid = postmaster_pid(data_dir)
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
