"""How the engine's cost of a pod grows with the world: nodes, pods, namespaces, templates, terms.

Each point is the median of several rounds of CPU time; after a round everything is undone. For many
templates there is only one round, since the caches have to be cold.
"""

import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time

from bench import worlds
from bench.engine import collecting_as_workers_do, place_one
from bench.figures import Table
from service.engine import Cluster
from service.model.pods.pod import Pod
from service.model.registry.manifests import TemplateCache

NODES, PODS = 5_000, 5_000
ASKED = 201
ROUNDS = 9
NODE_STEPS = (500, 5_000, 50_000, 100_000)
POD_STEPS = (0, 5_000, 50_000, 500_000, 1_000_000)
NAMESPACE_STEPS = (1, 10, 100, 1_000)
TEMPLATE_STEPS = (1, 10, 100, 1_000, 10_000)
TEMPLATE_PODS = 10_000
TERM_STEPS = (1, 2, 5, 10, 20, 50, 100, 200)
TERM_ASKED = 51


@dataclass(frozen=True, kw_only=True)
class Point:
    """The CPU time per pod, in microseconds, if one thing has grown to `value`."""

    dimension: str
    value: int
    shape: str
    micros: float
    low: float
    """The least of the rounds."""
    high: float

    @property
    def pods_per_second(self) -> float:
        """How many pods a processor places that does nothing else."""
        return 1e6 / self.micros


def nodes(steps: Sequence[int] = NODE_STEPS) -> Iterator[Point]:
    """Let nodes grow, with the same number of placed pods."""
    for count in steps:
        cluster, kinds = worlds.empty(count), _kinds()
        worlds.populate(cluster, list(kinds.values()), range(PODS))
        yield from _points("nodes", count, cluster, kinds)


def pods(steps: Sequence[int] = POD_STEPS) -> Iterator[Point]:
    """Let placed pods of all shapes grow, on the same number of nodes."""
    cluster, kinds, placed = worlds.empty(NODES), _kinds(), 0
    for count in steps:
        worlds.populate(cluster, list(kinds.values()), range(placed, count))
        placed = count
        yield from _points("placed pods", count, cluster, kinds)


def namespaces(steps: Sequence[int] = NAMESPACE_STEPS) -> Iterator[Point]:
    """Let namespaces grow, over which pods are spread and which rules select by label."""
    for count in steps:
        names = [f"team-{number}" for number in range(count)]
        templates = TemplateCache()
        cluster = worlds.empty(NODES, names)
        shapes = (worlds.AFFINITY, worlds.PREFERENCE, worlds.ATTRACTION)
        kinds = {
            (shape, name): worlds.parsed(
                worlds.shaped(shape, namespace=name, everywhere=True), templates
            )
            for name in names
            for shape in shapes
        }
        worlds.populate(cluster, list(kinds.values()), range(PODS))
        asked = {shape: kinds[shape, names[0]] for shape in shapes}
        yield from _points("namespaces", count, cluster, asked)


def templates(steps: Sequence[int] = TEMPLATE_STEPS) -> Iterator[Point]:
    """Let the number of templates among the placed pods grow, with cold caches.

    Each template has its own labels and requests. `reading` is the cost of reading such a pod's
    manifest, which is added to that of placing it.
    """
    for count in steps:
        placing, reading = _cold(count)
        yield _point("templates", count, worlds.AFFINITY, [placing])
        yield _point("templates", count, "reading the manifest", [reading])


def terms(steps: Sequence[int] = TERM_STEPS) -> Iterator[Point]:
    """Let the terms of a pod grow, each with its own selector, half by host, half by zone."""
    cluster, cache = worlds.empty(NODES), TemplateCache()
    apps = [f"app-{number}" for number in range(max(steps))]
    placed = [worlds.parsed(worlds.pod("x", labels={"app": app}), cache) for app in apps]
    worlds.populate(cluster, placed, range(PODS))
    for count in steps:
        keys = [(worlds.HOST, worlds.ZONE)[number % 2] for number in range(count)]
        hosts = [worlds.term(f"other-{number}", worlds.HOST) for number in range(count)]
        liked = [worlds.term(app, key) for app, key in zip(apps, keys, strict=False)]
        kinds = {
            "preferred affinity": worlds.preference("podAffinity", *liked),
            "required anti-affinity": worlds.affinity("podAntiAffinity", *hosts),
        }
        asked = {
            shape: worlds.parsed(worlds.pod("asked", rules, labels={"app": "asked"}), cache)
            for shape, rules in kinds.items()
        }
        yield from _points("terms", count, cluster, asked, TERM_ASKED)


DIMENSIONS: dict[str, Callable[[], Iterator[Point]]] = {
    "nodes": nodes,
    "pods": pods,
    "namespaces": namespaces,
    "templates": templates,
    "terms": terms,
}


def run(dimension: str) -> Iterator[Point]:
    """Yield all points of one dimension as they are measured."""
    with collecting_as_workers_do():
        yield from DIMENSIONS[dimension]()


def record(point: Point) -> dict[str, object]:
    """Make a line of JSON of a point."""
    return {"layer": "growth", **asdict(point)}


def read(path: Path) -> list[Point]:
    """Read the points among the JSON lines of a file; of equal points, the last one counts."""
    found: dict[tuple[str, int, str], Point] = {}
    for line in path.read_text().splitlines():
        fields = json.loads(line)
        if fields.pop("layer") == "growth":
            point = Point(**fields)
            found[point.dimension, point.value, point.shape] = point
    return list(found.values())


def table(points: Sequence[Point]) -> Table:
    """Make a row for each shape of each dimension, with the cost at each step."""
    rows = []
    for dimension in dict.fromkeys(point.dimension for point in points):
        of_dimension = [point for point in points if point.dimension == dimension]
        for shape in dict.fromkeys(point.shape for point in of_dimension):
            steps = [point for point in of_dimension if point.shape == shape]
            cells = " · ".join(f"{point.value:,}: {point.micros:,.0f}" for point in steps)
            rows.append([f"{dimension}, {shape}", cells])
    return Table(["what grows, pods with", "µs CPU a pod"], rows)


def _kinds() -> dict[str, Pod]:
    cache = TemplateCache()
    return {shape: worlds.parsed(worlds.shaped(shape), cache) for shape in worlds.SHAPES}


def _points(
    dimension: str, value: int, cluster: Cluster, kinds: dict[str, Pod], count: int = ASKED
) -> Iterator[Point]:
    for shape, kind in kinds.items():
        asked = worlds.replicas(kind, count)
        worlds.cpu_seconds(cluster, asked)
        rounds = [worlds.cpu_seconds(cluster, asked) / (count - 1) for _ in range(ROUNDS)]
        yield _point(dimension, value, shape, rounds)


def _point(dimension: str, value: int, shape: str, rounds: Sequence[float]) -> Point:
    micros = [seconds * 1e6 for seconds in rounds]
    return Point(
        dimension=dimension,
        value=value,
        shape=shape,
        micros=round(statistics.median(micros), 2),
        low=round(min(micros), 2),
        high=round(max(micros), 2),
    )


def _cold(count: int) -> tuple[float, float]:
    """Return CPU seconds per pod for placing and for reading pods of `count` new templates."""
    cluster, cache = worlds.empty(NODES), TemplateCache()
    rules = worlds.affinity("podAffinity", worlds.term("all", worlds.ZONE))
    first = worlds.parsed(worlds.pod("x", rules, labels={"app": "all"}), cache)
    worlds.populate(cluster, [first], range(PODS))
    manifests = []
    for number in range(TEMPLATE_PODS):
        own = number * count // TEMPLATE_PODS
        labels = {"app": "all", "own": f"own-{own}"}
        manifests.append(worlds.pod(f"asked-{number}", rules, labels=labels, millicores=10 + own))
    texts = [json.dumps(each, separators=(",", ":")).encode() for each in manifests]
    began = process_time()
    asked = [worlds.parse(text, cache) for text in texts]
    reading = process_time() - began
    began = process_time()
    for each in asked:
        place_one(cluster, each)
        cluster.commit_until(cluster.mark())
    return (process_time() - began) / len(asked), reading / len(asked)
