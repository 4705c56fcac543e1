"""`kill -9` of processes in the middle of deliveries to a receiver that fails, hangs and loses answers."""

import asyncio
import contextlib
import json
import os
import random
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import asyncpg
import psutil
import pytest
from standardwebhooks import Webhook

from moorage import AsyncClient, MoorageError
from service.server.local_server import LocalServer, temporary_folder
from tests.concurrency.faults.site import connect, start_all
from tests.processes import workers_of
from tests.seeds import seed
from tests.waiting import once

KILLS = int(os.environ.get("KILLS", "20"))  # noqa: TID251
SEED = seed("kills during deliveries")
NAMES = ("all", "shop", "late")
ENVIRONMENT = {
    "MOORAGE_WEBHOOK_HTTP": "true",
    "MOORAGE_WEBHOOK_NETWORKS": "127.0.0.0/8",
    "MOORAGE_WEBHOOK_POLL_SECONDS": "0.05",
    "MOORAGE_WEBHOOK_PAUSE_SECONDS_MAX": "0.2",
    "MOORAGE_WEBHOOK_RECORDS_MAX": "4",
    "MOORAGE_WEBHOOK_FAILURES_MAX": "1000",
    "MOORAGE_WEBHOOK_TIMEOUT_SECONDS": "1",
    "MOORAGE_WEBHOOK_MARGIN_SECONDS": "2",
}
KINDS = ("answers", "fails", "hangs", "loses")
WEIGHTS = (80, 10, 3, 7)

Record = dict[str, Any]


@dataclass(frozen=True)
class Message:
    """What a receiver was told, and what it made of it."""

    identifier: str
    body: str
    after: int
    end: int
    records: list[Record]
    was: str


@dataclass
class Receiver:
    """Takes the messages of all webhooks, each under its own path."""

    chance: random.Random
    secrets: dict[str, str] = field(default_factory=dict)
    got: dict[str, list[Message]] = field(default_factory=lambda: {name: [] for name in NAMES})
    open: Counter[str] = field(default_factory=Counter)
    at_once: int = 0
    """The most requests of one webhook that were under way at the same time."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await self._serve(reader, writer)
        writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        name = head[0].split()[1].strip("/")
        headers = {k.lower(): v for k, _, v in (each.partition(": ") for each in head[1:] if each)}
        body = (await reader.readexactly(int(headers["content-length"]))).decode()
        self.open[name] += 1
        self.at_once = max(self.at_once, self.open[name])
        try:
            await self._answer(name, headers, body, reader, writer)
        finally:
            self.open[name] -= 1

    async def _answer(
        self,
        name: str,
        headers: dict[str, str],
        body: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        Webhook(self.secrets[name]).verify(body, headers)
        data = json.loads(body)["data"]
        (was,) = self.chance.choices(KINDS, WEIGHTS)
        records = data.get("records", [])
        self.got[name].append(
            Message(
                headers["webhook-id"], body, data["afterRevision"], data["revision"], records, was
            )
        )
        if was == "loses":
            return
        if was == "hangs":
            await reader.read()  # Until the sender gives up, or is dead.
            return
        await asyncio.sleep(self.chance.uniform(0, 0.05))
        status = 204 if was == "answers" else 500
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()


@pytest.mark.exploration
@pytest.mark.timeout(1200)
async def test_no_record_is_lost_or_overtaken_while_who_delivers_is_killed(database_url: str):
    receiver = Receiver(random.Random(SEED))
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    to = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    environment = {"MOORAGE_DATABASE_URL": database_url, **ENVIRONMENT}
    started = time.monotonic()
    async with server, contextlib.AsyncExitStack() as rest:
        stack = rest.enter_context(ExitStack())
        folder = stack.enter_context(temporary_folder())
        servers = [
            LocalServer(folder / f"d{i}", environment=environment, quiet=True) for i in range(3)
        ]
        await start_all(servers, stack)
        clients = [await rest.enter_async_context(AsyncClient(each.url)) for each in servers]
        database = await connect(database_url)
        rest.push_async_callback(database.close)
        since = await _set_up(clients[0], to, receiver)
        done, cursors = asyncio.Event(), dict[str, list[int]]()
        async with asyncio.TaskGroup() as group:
            group.create_task(_place(clients, done))
            group.create_task(_watch(database_url, done, cursors))
            killed = await _kill(servers, database)
            done.set()
        head = (await clients[0].get_cluster())["revision"]
        await once(lambda: _all_at(database, head))
        truth = await _truth(clients[0], since, head)
    for name in NAMES:
        _check(receiver.got[name], _wanted(name, truth), since)
        assert all(one <= other for one, other in pairwise(cursors[name]))
    assert receiver.at_once == 1
    print(_told(receiver, truth, killed, time.monotonic() - started))


async def _set_up(client: AsyncClient, to: str, receiver: Receiver) -> int:
    """Make nodes and the webhooks; the last revision before any record."""
    for number in range(4):
        allocatable = {"cpu": "100", "memory": "100Gi", "pods": "1000"}
        node = {"kind": "Node", "metadata": {"name": f"n{number}"}, "status": {"allocatable": allocatable}}  # fmt: skip
        await client.apply([node])
    for name in NAMES:
        body = {"url": f"{to}/{name}", "events": "Bindings"}
        body |= {"namespace": "shop"} if name == "shop" else {}
        made = await client.request("PUT", client.path("webhooks", name), body=body)
        receiver.secrets[name] = made["secret"]
    return (await client.get_cluster())["revision"]


async def _place(clients: list[AsyncClient], done: asyncio.Event) -> None:
    """Place and delete the same pods again and again, whoever is killed meanwhile."""

    async def of_one(index: int) -> None:
        number = 0
        while not done.is_set():
            number += 1
            namespace, client = ("shop", "other")[number % 2], clients[number % len(clients)]
            container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": "10m"}}}
            name = f"p{index}-{number % 7}"
            pod = {"metadata": {"name": name, "namespace": namespace}, "spec": {"containers": [container]}}  # fmt: skip
            with contextlib.suppress(MoorageError):
                await client.place([pod])
            with contextlib.suppress(MoorageError):
                await client.pods.delete(name, namespace=namespace)

    await asyncio.gather(*map(of_one, range(4)))


async def _watch(url: str, done: asyncio.Event, cursors: dict[str, list[int]]) -> None:
    """Note how far each webhook is, again and again."""
    database = await connect(url)
    while not done.is_set():
        for name, revision in await database.fetch("SELECT name, revision FROM webhook"):
            cursors.setdefault(name, []).append(revision)
        await asyncio.sleep(0.005)
    await database.close()


async def _kill(servers: list[LocalServer], database: asyncpg.Connection) -> Counter[str]:
    """Kill whoever is in the middle of a delivery, again and again; how many of each webhook."""
    killed = Counter[str]()
    for number in range(KILLS):
        name = NAMES[number % len(NAMES)]

        async def kill(name: str = name) -> bool:
            holder = await database.fetchval(
                "SELECT holder FROM webhook WHERE name = $1 AND batch_end IS NOT NULL", name
            )
            workers = {each.pid: each for server in servers for each in workers_of(server)}
            victim = workers.get(int(holder.split("/")[1])) if holder else None
            if victim is None:
                return False
            with contextlib.suppress(psutil.Error):
                victim.kill()
            return True

        await once(kill)
        killed[name] += 1
    return killed


async def _all_at(database: asyncpg.Connection, head: int) -> bool:
    return bool(await database.fetchval("SELECT min(revision) >= $1 FROM webhook", head))


async def _truth(client: AsyncClient, since: int, head: int) -> list[Record]:
    records = []
    async for record in client.bindings(since=since):
        if "name" in record:
            records.append(dict(record))
        if record["revision"] >= head:
            break
    return records


def _wanted(name: str, truth: list[Record]) -> list[Record]:
    return [each for each in truth if name != "shop" or each["namespace"] == "shop"]


def _check(got: list[Message], wanted: list[Record], since: int) -> None:
    """Whether everything came, in order, and only repetitions came twice."""
    taken, last = list[Record](), None
    for message in got:
        if last is not None and message.after == last.after:
            assert (message.identifier, message.body) == (last.identifier, last.body)
            continue
        assert message.after >= (since if last is None else last.end)
        taken += message.records
        last = message
    assert taken == wanted
    starts = {message.after for message in got if message.was == "answers"}
    assert starts == {message.after for message in got}


def _told(receiver: Receiver, truth: list[Record], killed: Counter[str], seconds: float) -> str:
    messages = [each for name in NAMES for each in receiver.got[name]]
    ways = Counter(each.was for each in messages)
    repeated = len(messages) - len({each.identifier for each in messages})
    acknowledged_twice = sum(
        count - 1
        for count in Counter(e.identifier for e in messages if e.was == "answers").values()
    )
    return (
        f"{sum(killed.values())} kills during deliveries in {seconds:.0f} s: {len(truth)} records, "
        f"{len(messages)} messages ({dict(ways)}), {repeated} repetitions, "
        f"{acknowledged_twice} of them of acknowledged messages; none lost, none overtaken"
    )
