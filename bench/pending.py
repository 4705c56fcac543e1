"""How soon a waiting pod is placed after a change helps it: `python -m bench.pending`.

This uses a real server and PostgreSQL, with a full cluster and many pods that wait for room. In
turn, a node gets the label that one pod waits for, a pod comes that another one must be beside, and
a pod ends, which makes room for one more. Measured is the time from the answer to that change,
which comes after its commit, to the event of the waiting pod's placement (negative if the event
came first).
"""

import asyncio
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from bench.client import Connection
from bench.over_http import CLUSTER
from bench.stack import Server, serving

console = Console(width=160)

Kind = Literal["equal", "labelled", "different"]
"""The waiting pods: all are equal, or each has its own label, or each has its own requests."""
CHUNK = 5_000
QUIET_SECONDS = 1.0
CHANGES = ("label", "affinity", "room")


@dataclass(frozen=True)
class PendingFigures:
    """One run: milliseconds from a change's answer to the placement that it makes possible."""

    kind: str
    nodes: int
    pending: int
    settle_seconds: float
    """The time from storing the last pod until all pods have been told why they wait."""
    label_p50_ms: float
    label_max_ms: float
    affinity_p50_ms: float
    affinity_max_ms: float
    room_p50_ms: float
    room_max_ms: float
    dry_run_p50_ms: float
    """The latency of dry runs of a placement that a caller asks for meanwhile."""
    dry_run_max_ms: float
    server_cpu_seconds: float


class Placements:
    """Follows the watch: when each pod was first seen with a node, and when the last event came."""

    def __init__(self) -> None:
        self.seen: dict[str, float] = {}
        self.told: set[str] = set()
        """The pods that were told why they wait."""
        self.last = perf_counter()
        self._news = asyncio.Event()

    async def run(self, server: Server) -> None:
        reader, writer = await asyncio.open_connection(server.host, server.port, limit=1 << 24)
        path = f"{CLUSTER}/watch?kind=Pod"
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        kind = b""
        async for line in reader:
            if line.startswith(b"event: "):
                kind = line[7:].strip()
            elif line.startswith(b"data: ") and kind != b"BOOKMARK":
                self._take(json.loads(line[6:])["object"])

    def _take(self, pod: dict[str, Any]) -> None:
        self.last = perf_counter()
        if "conditions" in pod.get("status", {}):
            self.told.add(pod["metadata"]["name"])
        if "nodeName" in pod["spec"]:
            self.seen.setdefault(pod["metadata"]["name"], self.last)
            self._news.set()

    async def of(self, name: str | None, before: set[str]) -> float:
        """Return when this pod was placed, or else any pod that is not in `before`."""
        while True:
            found = [at for each, at in self.seen.items() if each not in before]
            if name in self.seen:
                return self.seen[name]
            if name is None and found:
                return min(found)
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 60)

    async def settled(self, pods: int) -> float:
        """Wait until so many pods were told and events have stopped; return the last one's time."""
        while len(self.told) < pods:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.05)
        while (rest := self.last + QUIET_SECONDS - perf_counter()) > 0:  # noqa: ASYNC110 - no event
            await asyncio.sleep(rest)
        return self.last


async def run(
    server: Server, *, kind: Kind, nodes: int, pending: int, rounds: int
) -> PendingFigures:
    """Fill a cluster, let pods wait, then help one at a time."""
    async with Connection(server.host, server.port) as connection:
        await _apply(connection, [_node(i, nodes) for i in range(nodes)])
        await _apply(connection, [_filler(i) for i in range(nodes)])
        await _apply(connection, [_special(i, change) for i in range(rounds) for change in CHANGES])
        seen = Placements()
        watching = asyncio.create_task(seen.run(server))
        await asyncio.sleep(0.5)
        await _apply(connection, [_waiting(i, kind) for i in range(pending)])
        stored = perf_counter()
        settled = await seen.settled(pending) - stored
        before = server.cpu_seconds()[0]
        asked: list[float] = []
        asking = asyncio.create_task(_ask(server, asked))
        took: dict[str, list[float]] = {change: [] for change in CHANGES}
        for number in range(rounds):
            for change in CHANGES:
                # The server closes connections that were idle for long.
                async with Connection(server.host, server.port) as own:
                    took[change].append(await _help(own, seen, change, number))
                await asyncio.sleep(0.2)
        asking.cancel()
        watching.cancel()
        cpu = server.cpu_seconds()[0] - before
    label, affinity, room = (sorted(took[change]) for change in CHANGES)
    asked.sort()
    return PendingFigures(
        kind=kind,
        nodes=nodes,
        pending=pending,
        settle_seconds=settled,
        label_p50_ms=label[len(label) // 2],
        label_max_ms=label[-1],
        affinity_p50_ms=affinity[len(affinity) // 2],
        affinity_max_ms=affinity[-1],
        room_p50_ms=room[len(room) // 2],
        room_max_ms=room[-1],
        dry_run_p50_ms=asked[len(asked) // 2],
        dry_run_max_ms=asked[-1],
        server_cpu_seconds=cpu,
    )


async def _help(connection: Connection, seen: Placements, change: str, number: int) -> float:
    """Make one change; return the milliseconds until a pod was placed because of it."""
    before = set(seen.seen)
    wanted = f"{change}-{number}" if change != "room" else None
    if change == "label":
        await _apply(connection, [_node(number, 0) | {"kind": "Node"}], wants=f"l{number}")
    elif change == "affinity":
        await _apply(connection, [_beside(number)])
        before.add(f"b-{number}")
    else:
        await _apply(connection, [_filler(1_000 + number, phase="Succeeded")])
        before.add(f"filler-{1_000 + number}")
    answered = perf_counter()
    return (await seen.of(wanted, before) - answered) * 1000


async def _ask(server: Server, took: list[float]) -> None:
    pod = {"metadata": {"name": "asked"}, "spec": {"containers": [{"name": "c"}]}}
    async with Connection(server.host, server.port) as connection:
        while True:
            sent = perf_counter()
            await connection.post_json(
                f"{CLUSTER}/placements", {"pods": [pod], "dryRun": True, "explain": "None"}
            )
            took.append((perf_counter() - sent) * 1000)
            await asyncio.sleep(0.02)


async def _apply(
    connection: Connection, items: list[dict[str, Any]], wants: str | None = None
) -> None:
    for item in items if wants else ():
        item["metadata"]["labels"]["wanted"] = wants
    for start in range(0, len(items), CHUNK):
        body = {"kind": "List", "items": items[start : start + CHUNK]}
        await connection.post_json(f"{CLUSTER}/apply", body)


def _node(number: int, _: int) -> dict[str, Any]:
    name = f"node-{number}"
    return {
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "zone": f"zone-{number % 10}"},
        },
        "status": {"allocatable": {"cpu": "4", "memory": "32Gi", "pods": "110"}},
    }


def _pod(name: str, cpu: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {"app": "web"}},
        "spec": {"containers": containers, **spec},
    }


def _filler(number: int, phase: str = "Running") -> dict[str, Any]:
    """Make a pod that takes all cpu of its node except for a little."""
    filler = _pod(f"filler-{number}", "3900m", nodeName=f"node-{number}")
    return filler | {"status": {"phase": phase}}


def _waiting(number: int, kind: Kind) -> dict[str, Any]:
    """Make a pod that has no room until a filler ends."""
    cpu = f"{3_000 + (number % 900 if kind == 'different' else 0)}m"
    waiting = _pod(f"waiting-{number}", cpu)
    if kind == "different":
        memory = f"{number + 1}Ki"
        waiting["spec"]["containers"][0]["resources"]["requests"]["memory"] = memory
    if kind == "labelled":
        waiting["metadata"]["labels"]["pod"] = str(number)
    return waiting


def _special(number: int, change: str) -> dict[str, Any]:
    """Make a pod that waits for a label, for a pod to be beside, or for room."""
    if change == "label":
        return _pod(f"label-{number}", "1m", nodeSelector={"wanted": f"l{number}"})
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": f"b-{number}"}}}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    if change == "affinity":
        return _pod(f"affinity-{number}", "1m", affinity={"podAffinity": rule})
    return _pod(f"room-{number}", "100", {"app": "room"})


def _beside(number: int) -> dict[str, Any]:
    return _pod(f"b-{number}", "1m", {"app": f"b-{number}"}, nodeName=f"node-{2_000 + number}")


def main(
    *,
    kind: Annotated[str, typer.Option(help="equal, labelled or different.")] = "equal",
    nodes: Annotated[int, typer.Option(help="Nodes.")] = 5_000,
    pending: Annotated[int, typer.Option(help="Pods that wait.")] = 10_000,
    rounds: Annotated[int, typer.Option(help="Changes of each kind.")] = 20,
    out: Annotated[Path | None, typer.Option(help="Append JSON lines here.")] = None,
) -> None:
    """Measure the latency from a change to the placements that it makes possible."""
    with serving() as server:
        figures = asyncio.run(run(server, kind=kind, nodes=nodes, pending=pending, rounds=rounds))  # type: ignore[arg-type]
    for name, value in asdict(figures).items():
        console.print(f"{name:24} {value if isinstance(value, str) else f'{value:,.1f}'}")
    if out is not None:
        with out.open("a") as lines:
            lines.write(json.dumps({"layer": "pending", **asdict(figures)}) + "\n")


if __name__ == "__main__":
    typer.run(main)
