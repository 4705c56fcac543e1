"""Where the time goes: stacks sampled by py-spy, as a table and as a flame graph.

py-spy is no dependency: it is run if it is installed, or else by `uv tool run`. It samples from
outside, so functions that are called often do not look more expensive than they are.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from xml.sax.saxutils import escape

from bench import over_http
from bench.figures import Table
from bench.stack import Postgres, Server
from bench.workloads import Workload
from service.runtime import compiled_engine

RATE = 400
CHECKOUT = Path(__file__).resolve().parents[1]
PLACING = "place_one"
"""The function of `bench.engine` below which the engine's own time is."""
ROWS = 25
WIDTH, ROW_HEIGHT, CHARACTER = 1200, 18, 6.6
SHARE_MIN = 0.002
"""Frames with a smaller share are left out of the picture."""

Stacks = Mapping[tuple[str, ...], int]
"""How many samples each stack has; a stack begins with the outermost function."""


def of_engine(workload: Workload, pods: int) -> Stacks:
    """Profile the engine alone, in a process of its own, and only below the placing of a pod.

    The engine runs from its sources, since py-spy sees no frames of compiled code.
    """
    measured = [sys.executable, "-m", "bench", "engine", workload.name, "--runs", "1"]
    chosen = ["--size", str(workload.size), "--pods", str(pods)]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "stacks"
        command = [*_py_spy(), *_options(file), "--", *measured, *chosen]
        interpreted = {**os.environ, compiled_engine.VARIABLE: compiled_engine.INTERPRETED}  # noqa: TID251
        subprocess.run(command, check=True, cwd=CHECKOUT, capture_output=True, env=interpreted)
        return below(PLACING, _read(file))


def of_server(
    postgres: Postgres, workload: Workload, *, batch: int, clients: int, pods: int
) -> Stacks:
    """Profile a worker while it places pods over HTTP."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "stacks"

        @contextmanager
        def sampled(server: Server) -> Iterator[None]:
            with _attached(server.workers()[0].pid, file):
                yield

        over_http.run(postgres, workload, batch=batch, clients=clients, pods=pods, during=sampled)
        return busy(_read(file))


def table(stacks: Stacks) -> Table:
    """Make a table of the functions that take most time: alone, and with what they call."""
    own, whole = Counter[str](), Counter[str]()
    for stack, samples in stacks.items():
        own[stack[-1]] += samples
        whole.update(dict.fromkeys(stack, samples))
    total = sum(stacks.values())
    rows = [
        [name, f"{samples / total:.1%}", f"{whole[name] / total:.1%}"]
        for name, samples in own.most_common(ROWS)
    ]
    return Table(["function", "itself", "with what it calls"], rows)


def flame_graph(title: str, stacks: Stacks) -> str:
    """Draw stacks as SVG: a frame's width is its share of the samples, and callers are below."""
    depth = max(map(len, stacks))
    height = (depth + 2) * ROW_HEIGHT
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="ui-monospace, monospace" font-size="11">'
    )
    body = [
        head,
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="4" y="13" fill="#333">{escape(title)}</text>',
        *_frames(stacks, 0, 0.0, sum(stacks.values()), height),
    ]
    return "\n".join([*body, "</svg>", ""])


def _frames(stacks: Stacks, level: int, start: float, total: int, height: int) -> Iterator[str]:
    """Yield the frames from one level on, of stacks that are equal below that level."""
    children: dict[str, dict[tuple[str, ...], int]] = {}
    for stack, samples in stacks.items():
        if len(stack) > level:
            children.setdefault(stack[level], {})[stack] = samples
    for name, own in sorted(children.items()):
        share = sum(own.values()) / total
        if share >= SHARE_MIN:
            yield _frame(name, start, share, height - (level + 1) * ROW_HEIGHT)
            yield from _frames(own, level + 1, start, total, height)
        start += share


def _frame(name: str, start: float, share: float, y: int) -> str:
    x, width = start * WIDTH, share * WIDTH
    hue = 20 + sum(name.encode()) % 35
    shown = name[: int(width / CHARACTER)] if width > 4 * CHARACTER else ""
    return (
        f'<g><title>{escape(name)}: {share:.1%}</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" '
        f'height="{ROW_HEIGHT - 1}" fill="hsl({hue},85%,70%)"/>'
        f'<text x="{x + 2:.1f}" y="{y + 12}">{escape(shown)}</text></g>'
    )


def _py_spy() -> list[str]:
    if installed := shutil.which("py-spy"):
        return [installed, "record"]
    if uv := shutil.which("uv", path=f"{CHECKOUT / '.uv' / 'bin'}:{os.environ['PATH']}"):  # noqa: TID251
        return [uv, "tool", "run", "py-spy", "record"]
    raise RuntimeError("neither py-spy nor uv is installed: `make setup` brings uv")


def _options(file: Path) -> list[str]:
    return ["--rate", str(RATE), "--format", "raw", "--function", "--output", str(file)]


@contextmanager
def _attached(pid: int, file: Path) -> Iterator[None]:
    """Sample a process for the duration of the context."""
    command = [*_py_spy(), *_options(file), "--duration", "600", "--pid", str(pid)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "Sampling process" in line:
                break
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
            process.stdout.read()
            process.wait(60)


def _read(file: Path) -> Stacks:
    stacks = Counter[tuple[str, ...]]()
    for line in file.read_text().splitlines():
        stack, _, samples = line.rpartition(" ")
        stacks[tuple(stack.split(";"))] += int(samples)
    return stacks


def busy(stacks: Stacks) -> Stacks:
    """Leave out threads that wait for work, and those that do not run Python."""
    return {
        stack: samples
        for stack, samples in stacks.items()
        if stack[-1] and not stack[-1].startswith("_worker (concurrent/futures")
    }


def below(function: str, stacks: Stacks) -> Stacks:
    """Return the stacks that contain a function, from that function on."""
    found = Counter[tuple[str, ...]]()
    for stack, samples in stacks.items():
        for depth, name in enumerate(stack):
            if name.split(" ")[0] == function:
                found[stack[depth:]] += samples
                break
    return found
