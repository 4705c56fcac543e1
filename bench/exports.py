"""How soon exports begin, how long they take, and what memory they need: `python -m bench.exports`.

This uses a real server and PostgreSQL. Some clients export the same cluster at once, as it is sent
or compressed; meanwhile the resident size of the worker is looked at again and again.
"""

import asyncio
from contextlib import ExitStack
from time import perf_counter
from typing import Annotated

import typer
from rich.console import Console

from bench.figures import quantile
from bench.lists import load
from bench.over_http import CLUSTER
from bench.stack import Server, postgres, server

console = Console(width=160)
CODINGS = ("identity", "gzip", "zstd")
LOOK_SECONDS = 0.02
READ_BYTES = 1 << 20


async def _export(serving: Server, coding: str) -> tuple[float, float, int]:
    """Return when the first byte of the body came, when the last, in ms, and how many there were."""
    reader, writer = await asyncio.open_connection(serving.host, serving.port, limit=READ_BYTES)
    head = f"GET {CLUSTER}/export HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    began = perf_counter()
    writer.write(f"{head}Accept-Encoding: {coding}\r\n\r\n".encode())
    status = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0]
    assert status.endswith(b"200 OK"), status
    count = len(await reader.read(READ_BYTES))
    first = perf_counter() - began
    while piece := await reader.read(READ_BYTES):
        count += len(piece)
    writer.close()
    return first * 1000, (perf_counter() - began) * 1000, count


async def _measure(serving: Server, coding: str, at_once: int) -> None:
    before = most = serving.megabytes()
    exports = [asyncio.create_task(_export(serving, coding)) for _ in range(at_once)]
    while not all(each.done() for each in exports):
        await asyncio.sleep(LOOK_SECONDS)
        most = max(most, serving.megabytes())
    done = [each.result() for each in exports]
    first, whole = sorted(each[0] for each in done), sorted(each[1] for each in done)
    console.print(
        f"{coding:9} {at_once} at once: first byte p50 {quantile(first, 0.5):.0f} ms, whole p50 "
        f"{quantile(whole, 0.5):.0f} ms, {done[0][2] / 1e6:.1f} MB; resident {before:.0f} MB before, "
        f"at most {most:.0f} MB during it"
    )


def main(
    *,
    nodes: Annotated[int, typer.Option(help="Nodes.")] = 5_000,
    pods: Annotated[int, typer.Option(help="Pods on nodes.")] = 50_000,
    runs: Annotated[int, typer.Option(help="How often, in turn.")] = 2,
) -> None:
    """Export a cluster, alone and several times at once."""
    with ExitStack() as stack:
        database = stack.enter_context(postgres())
        serving = stack.enter_context(server(database, database.new_database()))
        asyncio.run(load(serving, nodes, pods, 0))
        for _ in range(runs):
            for coding in CODINGS:
                for at_once in (1, 4):
                    asyncio.run(_measure(serving, coding, at_once))


if __name__ == "__main__":
    typer.run(main)
