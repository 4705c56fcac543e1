"""Ratios of CPU time per pod within one run: what must not cost more, whatever the machine.

The two costs are measured alternately, many times, and each ratio is of two measurements that
follow each other. The ratios' median and quartiles are shown, and beside them the ratio of the
bytecodes that both run, which is free of noise. A scan over pods, namespaces or terms shows as a
ratio far from 1.
"""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from msgspec import structs

from bench import worlds
from bench.bytecodes import bytecodes
from bench.engine import collecting_as_workers_do, loaded
from bench.figures import Table, verdict
from bench.workloads import Manifest, Workload, find
from service.engine import Cluster
from service.model.pods.pod import Pod
from service.model.registry.manifests import TemplateCache

ROUNDS = 41
BYSTANDER_TIMES = 4
"""Comparisons with a limit of 1.02 take so many times as many rounds."""
TRACED = 21
ASKED = 401
NODES = 5_000

Sample = Callable[[], float]
"""A function that runs one round, and returns its CPU seconds."""


@dataclass(frozen=True)
class Case:
    """Pods to be placed on a cluster again and again; it can be called as a `Sample`."""

    cluster: Cluster
    asked: Sequence[Pod]

    def __call__(self) -> float:
        return worlds.cpu_seconds(self.cluster, self.asked)

    def bytecodes(self) -> int:
        """Count the bytecodes that the interpreter runs to place the first few pods."""
        return bytecodes(self.cluster, self.asked[:TRACED])


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """The cost of a pod in one case as a share of that in another."""

    name: str
    median: float
    first_quartile: float
    third_quartile: float
    rounds: int
    limit: float | None = None
    """The greatest ratio that is allowed."""
    bytecodes: float | None = None
    """The ratio of the bytecodes that the interpreter runs."""


def compared(name: str, case: Case, base: Case, rounds: int, limit: float | None) -> Ratio:
    """Measure both alternately, and count the bytecodes of both."""
    run = case.bytecodes() / base.bytecodes()
    return replace(alternated(name, case, base, rounds, limit), bytecodes=round(run, 4))


def alternated(name: str, case: Sample, base: Sample, rounds: int, limit: float | None) -> Ratio:
    """Measure both alternately; each is first as often as second."""
    case(), base()
    ratios = []
    for number in range(rounds):
        if number % 2:
            measured, compared = case(), base()
        else:
            compared, measured = base(), case()
        ratios.append(measured / compared)
    first, median, third = statistics.quantiles(ratios, n=4)
    return Ratio(
        name=name,
        median=round(median, 4),
        first_quartile=round(first, 4),
        third_quartile=round(third, 4),
        rounds=rounds,
        limit=limit,
    )


def sample(cluster: Cluster, kind: Pod, count: int = ASKED) -> Case:
    """Make rounds of placing so many pods of a kind on a cluster."""
    return Case(cluster, worlds.replicas(kind, count))


NAMESPACE_SELECTORS = (
    "SchedulingRequiredPodAffinityWithNSSelector",
    "SchedulingRequiredPodAntiAffinityWithNSSelector",
    "SchedulingPreferredAffinityWithNSSelector",
    "SchedulingPreferredAntiAffinityWithNSSelector",
)


def namespaces(rounds: int = ROUNDS) -> Iterator[Ratio]:
    """Compare placed pods in a hundred namespaces, which a namespace selector selects, with one."""
    for name in NAMESPACE_SELECTORS:
        workload = find(name, NODES)
        many, one = _of_workload(workload), _of_workload(_in_one_namespace(workload))
        title = f"{name}: 100 namespaces ÷ 1"
        yield compared(title, many, one, rounds, limit=1.10)


def bystanders(rounds: int = ROUNDS) -> Iterator[Ratio]:
    """Measure what rules of placed pods cost a pod that has no rules and that none of them matches.

    It is compared with placing the same pod where no placed pod has rules.
    """
    workload = find("MixedSchedulingBasePod", NODES)
    mixed, plain = _of_workload(workload), _of_workload(_without_rules(workload))
    title = "pods without rules: placed pods with affinity ÷ without"
    yield compared(title, mixed, plain, BYSTANDER_TIMES * rounds, limit=1.02)
    spread, bare = (
        _of_world(kinds, worlds.pod("asked", labels={"app": "other"}))
        for kinds in ([worlds.SPREAD], [worlds.PLAIN])
    )
    title = "pods without rules: placed pods with spread ÷ without"
    yield compared(title, spread, bare, BYSTANDER_TIMES * rounds, limit=1.02)


def placed(rounds: int = ROUNDS, many: int = 1_000_000, few: int = 5_000) -> Iterator[Ratio]:
    """Compare a million placed pods of all shapes with five thousand."""
    clusters, kinds = [], _kinds()
    for count in (many, few):
        cluster = worlds.empty(NODES)
        worlds.populate(cluster, list(kinds.values()), range(count))
        clusters.append(cluster)
    for shape, kind in kinds.items():
        case, base = (sample(cluster, kind) for cluster in clusters)
        title = f"{shape}: {many:,} placed pods ÷ {few:,}"
        yield compared(title, case, base, rounds, limit=1.20)


def rules(rounds: int = ROUNDS) -> Iterator[Ratio]:
    """Compare pods with rules with pods that have none; for information."""
    cluster, kinds = worlds.empty(NODES), _kinds()
    worlds.populate(cluster, list(kinds.values()), range(NODES))
    base = sample(cluster, kinds[worlds.PLAIN])
    for shape in worlds.SHAPES[1:]:
        title = f"{shape} ÷ no rules"
        yield compared(title, sample(cluster, kinds[shape]), base, rounds, limit=None)


def keys(rounds: int = ROUNDS) -> Iterator[Ratio]:
    """Compare required anti-affinity by zone with that by node; for information."""
    samples = [sample(*apart_by(key, NODES)) for key in (worlds.ZONE, worlds.HOST)]
    yield compared("required anti-affinity: zone ÷ node", *samples, rounds, limit=None)


def apart_by(key: str, nodes: int) -> tuple[Cluster, Pod]:
    """Place a rival on each node of half of the zones; make a pod that must avoid their domains."""
    cluster, cache = worlds.empty(nodes), TemplateCache()
    rival = worlds.parsed(worlds.pod("rival", labels={"app": "rival"}), cache)
    half = worlds.ZONES // 2
    for number in range(nodes):
        if number % worlds.ZONES < half:
            on = f"node-{number}"
            cluster.put_pod(structs.replace(rival, name=f"rival-{number}", node_name=on))
    cluster.commit_until(cluster.mark())
    rules = worlds.affinity("podAntiAffinity", worlds.term("rival", key))
    return cluster, worlds.parsed(worlds.pod("asked", rules, labels={"app": "apart"}), cache)


COMPARISONS: Mapping[str, Callable[[int], Iterator[Ratio]]] = {
    "namespaces": namespaces,
    "bystanders": bystanders,
    "placed": placed,
    "rules": rules,
    "keys": keys,
}


def run(comparison: str, rounds: int = ROUNDS) -> Iterator[Ratio]:
    """Yield the ratios of one comparison as they are measured."""
    with collecting_as_workers_do():
        yield from COMPARISONS[comparison](rounds)


def record(ratio: Ratio) -> dict[str, object]:
    """Make a line of JSON of a ratio."""
    return {"layer": "ratio", **asdict(ratio)}


def table(ratios: Sequence[Ratio]) -> Table:
    """Make a row for each ratio."""
    return Table(
        ["CPU time a pod", "median", "quartiles", "rounds", "bytecodes", "goal", ""],
        [
            [
                ratio.name,
                f"{ratio.median:.3f}",
                f"{ratio.first_quartile:.3f} to {ratio.third_quartile:.3f}",
                str(ratio.rounds),
                "" if ratio.bytecodes is None else f"{ratio.bytecodes:.3f}",
                f"≤ {ratio.limit:.2f}" if ratio.limit else "",
                _verdict(ratio),
            ]
            for ratio in ratios
        ],
    )


def _verdict(ratio: Ratio) -> str:
    if ratio.limit is None:
        return ""
    return verdict(is_reached=ratio.median <= ratio.limit)


def _kinds() -> dict[str, Pod]:
    cache = TemplateCache()
    return {shape: worlds.parsed(worlds.shaped(shape), cache) for shape in worlds.SHAPES}


def _of_workload(workload: Workload) -> Case:
    """Make rounds of placing pods like the first measured one of a workload."""
    cache = TemplateCache()
    cluster = loaded(workload, cache)
    return sample(cluster, worlds.parsed(next(workload.measured()), cache))


def _of_world(shapes: Sequence[str], asked: Manifest) -> Case:
    """Make rounds of placing such a pod beside placed pods of these shapes, as many as nodes."""
    cache, cluster = TemplateCache(), worlds.empty(NODES)
    kinds = [worlds.parsed(worlds.shaped(shape), cache) for shape in shapes]
    worlds.populate(cluster, kinds, range(NODES))
    return sample(cluster, worlds.parsed(asked, cache))


def _in_one_namespace(workload: Workload) -> Workload:
    """Return the workload with all placed pods in the first of their namespaces."""
    groups = [{**group, "namespaces": group["namespaces"][:1]} for group in workload.row["init"]]
    return replace(workload, row={**workload.row, "init": groups})


def _without_rules(workload: Workload) -> Workload:
    """Return the workload with placed pods that have neither rules nor labels."""
    groups = [{**group, "template": "pod-default"} for group in workload.row["init"]]
    return replace(workload, row={**workload.row, "init": groups})
