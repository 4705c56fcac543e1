"""How fast records reach a receiver, and what that costs placements: `python -m bench.webhooks`.

This uses a real server and PostgreSQL, with all settings as by default. The receiver answers at
once; it and the clients share this process, so what they need is in the latencies, too.
"""

import asyncio
import json
from contextlib import ExitStack
from time import perf_counter
from typing import Annotated

import typer
from rich.console import Console

from bench.client import Connection
from bench.figures import quantile
from bench.lists import load
from bench.over_http import CLUSTER
from bench.stack import Server, postgres, server

console = Console(width=160)
LOCAL = {"MOORAGE_WEBHOOK_HTTP": "true", "MOORAGE_WEBHOOK_NETWORKS": "127.0.0.0/8"}
ANSWER = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"
BATCH = 500


class Receiver:
    """Takes all messages at once, and notes when each pod's record came first."""

    def __init__(self) -> None:
        self.came: dict[str, float] = {}
        self.records = 0
        self.messages = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        body = await reader.readexactly(length)
        writer.write(ANSWER)
        await writer.drain()
        writer.close()
        now, records = perf_counter(), json.loads(body)["data"].get("records", [])
        for record in records:
            self.came.setdefault(record["name"], now)
        self.records += len(records)
        self.messages += 1

    async def all_of(self, count: int) -> None:
        """Wait for so many records."""
        while self.records < count:  # noqa: ASYNC110 - nothing is to be done for each record
            await asyncio.sleep(0.005)


def _pods(prefix: str, count: int) -> bytes:
    spec = {"containers": [{"name": "c", "image": "c"}]}
    pods = [{"metadata": {"name": f"{prefix}-{n}"}, "spec": spec} for n in range(count)]
    return json.dumps({"pods": pods}).encode()


async def _place(
    serving: Server, prefix: str, seconds: float, answered: dict[str, float]
) -> list[float]:
    """Place one pod after the other, and return how long each took, in ms."""
    took, number, end = list[float](), 0, perf_counter() + seconds
    async with Connection(serving.host, serving.port) as connection:
        while (began := perf_counter()) < end:
            number += 1
            status, answer = await connection.post(
                f"{CLUSTER}/placements", _pods(f"{prefix}-{number}", 1)
            )
            assert status == 200, answer[:500]
            answered[f"{prefix}-{number}-0"] = perf_counter()
            took.append((perf_counter() - began) * 1000)
    return took


async def _webhooks(connection: Connection, url: str, count: int, **settings: object) -> None:
    """Make as many webhooks, and let no other be."""
    _, found = await connection.get(f"{CLUSTER}/webhooks")
    for each in json.loads(found)["items"]:
        await connection.delete(f"{CLUSTER}/webhooks/{each['name']}")
    for number in range(count):
        body = json.dumps({"url": url, "events": "Bindings", **settings}).encode()
        status, answer = await connection.put(f"{CLUSTER}/webhooks/w{number}", body)
        assert status == 201, answer[:500]


async def _measure(serving: Server, nodes: int, pods: int, seconds: float, runs: int) -> None:
    since = await load(serving, nodes, 0, 0)
    receiver = Receiver()
    listening = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
    async with listening, Connection(serving.host, serving.port) as connection:
        for number in range(pods // BATCH):
            body = _pods(f"early-{number}", BATCH)
            status, answer = await connection.post(f"{CLUSTER}/placements", body)
            assert status == 200, answer[:500]
        for count in (1, 10):
            receiver.records = receiver.messages = 0
            began = perf_counter()
            await _webhooks(connection, url, count, afterRevision=since)
            await receiver.all_of(count * (pods // BATCH) * BATCH)
            passed = perf_counter() - began
            console.print(
                f"{count} webhooks far behind: {receiver.records / passed:.0f} records a second, "
                f"{receiver.messages} messages"
            )
        for run in range(runs):
            for count in (0, 1, 10):
                await _webhooks(connection, url, count)
                await _beside(serving, receiver, f"run-{run}-{count}", count, seconds)


async def _beside(
    serving: Server, receiver: Receiver, prefix: str, count: int, seconds: float
) -> None:
    """Place pods beside the deliveries to some webhooks, from 8 clients."""
    answered = dict[str, float]()
    clients = (_place(serving, f"{prefix}-{n}", seconds, answered) for n in range(8))
    took = sorted(each for of_one in await asyncio.gather(*clients) for each in of_one)
    told = (
        f"{count:>2} webhooks: {len(took) / seconds:.0f} placements a second, p50 "
        f"{quantile(took, 0.5):.2f} ms, p99 {quantile(took, 0.99):.2f} ms"
    )
    if count:
        while not answered.keys() <= receiver.came.keys():  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.005)
        late = sorted((receiver.came[name] - at) * 1000 for name, at in answered.items())
        told += f"; from answer to delivery p50 {quantile(late, 0.5):.0f} ms, p99 {quantile(late, 0.99):.0f} ms"
    console.print(told)


def main(
    *,
    nodes: Annotated[int, typer.Option(help="Nodes.")] = 1_000,
    pods: Annotated[
        int, typer.Option(help="Pods that are placed before the webhooks are made.")
    ] = 20_000,
    seconds: Annotated[float, typer.Option(help="How long pods are placed each time.")] = 5,
    runs: Annotated[int, typer.Option(help="How often, in turn.")] = 3,
) -> None:
    """Deliver what was placed before, and what is placed meanwhile."""
    with ExitStack() as stack:
        database = stack.enter_context(postgres())
        serving = stack.enter_context(server(database, database.new_database(), variables=LOCAL))
        asyncio.run(_measure(serving, nodes, pods, seconds, runs))


if __name__ == "__main__":
    typer.run(main)
