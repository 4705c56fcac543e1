"""How many pods a second can end: `python -m bench.ends`.

This uses a real server and PostgreSQL. Placed pods are deleted, and others report that they
succeeded: one by one on some connections, and many in one request in every form that there is. All
of it happens in one run and in turn, so that the figures can be compared.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Annotated

import typer
from rich.console import Console

from bench.client import Connection
from bench.over_http import CLUSTER
from bench.stack import Server, postgres, server

console = Console(width=160)
NDJSON = "application/x-ndjson"
NAMESPACE = "default"
NODES = 500

Names = Sequence[str]
End = Callable[[Server, Names, str], Awaitable[None]]
"""Ends pods that have these names, and no others the label with this value."""


@dataclass(frozen=True)
class EndFigures:
    """One form of ends: how many a second, and the CPU time of each end in µs."""

    form: str
    ends: int
    ends_per_second: float
    server_cpu_us: float
    postgres_cpu_us: float


async def delete_one_by_one(serving: Server, names: Names, _: str) -> None:
    async def delete(connection: Connection, name: str) -> None:
        status, answer = await connection.delete(_path(name))
        assert status == 200, answer

    await _each(serving, names, delete)


async def report_one_by_one(serving: Server, names: Names, _: str) -> None:
    body = json.dumps({"status": {"phase": "Succeeded"}}).encode()

    async def report(connection: Connection, name: str) -> None:
        status, answer = await connection.patch(_path(name), body)
        assert status == 200, answer

    await _each(serving, names, report)


async def delete_by_label(serving: Server, names: Names, label: str) -> None:
    async with Connection(serving.host, serving.port) as connection:
        path = f"{CLUSTER}/namespaces/{NAMESPACE}/pods?labelSelector=run%3D{label}"
        status, answer = await connection.delete(path)
        assert status == 200, answer[:500]
        assert json.loads(answer)["deleted"] == len(names)


async def delete_by_lines(serving: Server, names: Names, _: str) -> None:
    lines = [{"delete": {"kind": "Pod", "metadata": _named(name)}} for name in names]
    await _post_lines(serving, "apply", lines, "Deleted")


async def report_by_lines(serving: Server, names: Names, _: str) -> None:
    await _post_lines(serving, "pods/statuses", _reports(names), "Changed")


async def report_in_lists(serving: Server, names: Names, _: str) -> None:
    async with Connection(serving.host, serving.port) as connection:
        for start in range(0, len(names), 1_000):
            items = _reports(names[start : start + 1_000])
            answer = await connection.post_json(f"{CLUSTER}/pods/statuses", {"items": items})
            assert {each["result"] for each in answer["results"]} == {"Changed"}


FORMS: dict[str, tuple[End, int]] = {
    "deletions, one by one": (delete_one_by_one, 20),
    "deletions by a label": (delete_by_label, 1),
    "deletions as lines": (delete_by_lines, 1),
    "reports, one by one": (report_one_by_one, 20),
    "reports as lines": (report_by_lines, 1),
    "reports in lists of 1,000": (report_in_lists, 1),
}
"""Each form of ends, and by how much fewer pods it is measured, as it would take too long."""


async def _each(
    serving: Server, names: Names, end: Callable[[Connection, str], Awaitable[None]]
) -> None:
    waiting = iter(names)

    async def client() -> None:
        async with Connection(serving.host, serving.port) as connection:
            for name in waiting:
                await end(connection, name)

    await asyncio.gather(*(client() for _ in range(8)))


async def _post_lines(serving: Server, path: str, lines: Sequence[object], result: str) -> None:
    async with Connection(serving.host, serving.port) as connection:
        body = b"\n".join(json.dumps(line).encode() for line in lines)
        status, answer = await connection.post(f"{CLUSTER}/{path}", body, NDJSON)
        assert status == 200, answer[:500]
        results = {json.loads(line)["result"] for line in answer.splitlines()}
        assert results == {result}, results


def _reports(names: Names) -> list[dict[str, object]]:
    return [_named(name) | {"status": {"phase": "Succeeded"}} for name in names]


def _named(name: str) -> dict[str, object]:
    return {"namespace": NAMESPACE, "name": name}


def _path(name: str) -> str:
    return f"{CLUSTER}/namespaces/{NAMESPACE}/pods/{name}"


async def _create(serving: Server, names: Names, label: str) -> None:
    lines = [
        {
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": "web", "run": label}},
            "spec": {
                "nodeName": f"node-{index % NODES}",
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}],
            },
            "status": {"phase": "Running"},
        }
        for index, name in enumerate(names)
    ]
    await _post_lines(serving, "apply", lines, "Created")


async def measure(serving: Server, form: str, pods: int, run: int) -> EndFigures:
    """Create the pods of one form, and end them."""
    end, fewer = FORMS[form]
    label = f"{run}-{list(FORMS).index(form)}"
    names = [f"pod-{label}-{index}" for index in range(pods // fewer)]
    await _create(serving, names, label)
    before, began = serving.cpu_seconds(), perf_counter()
    await end(serving, names, label)
    seconds, after = perf_counter() - began, serving.cpu_seconds()
    cpu = [
        (later - earlier) * 1e6 / len(names) for earlier, later in zip(before, after, strict=True)
    ]
    return EndFigures(form, len(names), len(names) / seconds, *cpu)


async def _nodes(serving: Server) -> None:
    sizes = {"cpu": "64", "memory": "256Gi", "pods": "1000"}
    lines = [
        {"kind": "Node", "metadata": {"name": f"node-{n}"}, "status": {"allocatable": sizes}}
        for n in range(NODES)
    ]
    await _post_lines(serving, "apply", lines, "Created")


def main(
    *,
    pods: Annotated[int, typer.Option(help="Pods that end in each form.")] = 10_000,
    runs: Annotated[int, typer.Option(help="How often each form is measured, in turn.")] = 3,
) -> None:
    """Measure every form of ends in turn; of the runs of each form the median counts."""
    with ExitStack() as stack:
        database = stack.enter_context(postgres())
        serving = stack.enter_context(server(database, database.new_database()))
        asyncio.run(_nodes(serving))
        for run in range(runs):
            for form in FORMS:
                figures = asyncio.run(measure(serving, form, pods, run))
                told = asdict(figures)
                console.print(f"{told.pop('form'):28}", *(f"{k} {v:,.0f}" for k, v in told.items()))


if __name__ == "__main__":
    typer.run(main)
