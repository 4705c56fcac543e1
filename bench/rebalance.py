"""`python -m bench.rebalance`: how good plans to rebalance are, and how long they take.

Small clusters are compared with the optimum over all placements that CP-SAT of OR-tools finds, which
is not among the dependencies: `pip install ortools`. It knows nothing of the order of moves, so it
may find what no sequence of allowed waves reaches. Times are those of the process on one core.
"""

import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from time import perf_counter, process_time
from typing import Annotated, Any, NamedTuple

import typer

from bench.client import Connection
from bench.figures import quantile
from bench.over_http import CLUSTER
from bench.stack import Server, serving
from bench.trace import CAME, WENT, place, prepared, put_nodes
from bench.verify import broken, broken_by, put
from bench.worlds import HOST, ZONE
from moorage.cli.input.sources import read_objects
from service.engine import Cluster
from service.engine.rules.violations import Inspection
from service.model.cluster.cluster_config import ClusterConfig
from service.model.core.strict_json import encode
from service.model.plans.rebalance_objectives import Objective
from service.model.registry.manifests import TemplateCache, parse_any
from service.scheduler.decide.context import DecisionContext
from service.scheduler.plans.make_plan import make_plan
from service.scheduler.protocol.intents import MakePlan
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.plans import Planned, Rebalance, Selection
from service.scheduler.replica.replica import Replica

Manifest = dict[str, Any]
Values = tuple[int, ...]
BATCH = 100
GPU = "nvidia.com/gpu"
GPU_THOUSANDTHS = "alibabacloud.com/gpu-milli"
IGNORED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
OBJECTIVES: Sequence[tuple[Objective, ...]] = (
    ("Violations", "Skew"),
    ("Violations", "Skew", "Preferences"),
    ("Violations", "Preferences", "Spread"),
    ("Violations", "Skew", "Spread"),
    ("Violations", "Packing"),
    ("Violations", "Fragmentation", "Preferences"),
    ("Skew", "Preferences", "Packing"),
    ("Spread",),
)
NANOS = {"cpu": 1000, "memory": 1, GPU: 1}


class Small(NamedTuple):
    """A small cluster, and what is asked of it."""

    nodes: list[Manifest]
    pods: list[Manifest]
    objectives: tuple[Objective, ...]


def small(seed: int, nodes_max: int = 6, pods_max: int = 12) -> Small:
    """Make a cluster with hard and soft rules in which no node has more pods than fit on it."""
    chance = random.Random(seed)
    count = chance.randint(3, nodes_max)
    nodes = [_node(number, chance) for number in range(count)]
    specs = {app: _spec(chance, app) for app in ("web", "db", "job")}
    left = [dict(each["status"]["allocatable"]) for each in nodes]
    pods = []
    for number in range(chance.randint(5, pods_max)):
        app = chance.choice(("web", "web", "db", "job"))
        asked = {"cpu": chance.choice((1, 1, 2, 3)), "memory": chance.choice((1, 2, 4))}
        asked[GPU] = chance.choice((0, 0, 1, 2)) if app == "job" else 0
        fitting = [
            index
            for index, each in enumerate(left)
            if all(asked[name] <= int(each[name]) for name in asked)
        ]
        if not fitting:
            continue
        # Half of the clusters are crowded on few nodes, as after others have left.
        at = fitting[0] if seed % 2 and chance.random() < 0.5 else chance.choice(fitting)
        for name, amount in asked.items():
            left[at][name] = str(int(left[at][name]) - amount)
        pods.append(_pod(f"{app}-{number}", app, f"n{at}", asked, specs[app]))
    return Small(nodes, pods, chance.choice(OBJECTIVES))


def _node(number: int, chance: random.Random) -> Manifest:
    labels = {HOST: f"n{number}", ZONE: f"z{number % 3}", "disk": chance.choice(("ssd", "hdd"))}
    allocatable = {
        "cpu": str(chance.choice((4, 6, 8))),
        "memory": str(chance.choice((8, 16))),
        GPU: str(chance.choice((0, 4))),
        "pods": "20",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n{number}", "labels": labels},
        "status": {"allocatable": allocatable},
    }


def _pod(name: str, app: str, at: str, asked: dict[str, int], spec: Manifest) -> Manifest:
    requests = {key: str(amount) for key, amount in asked.items() if amount}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": {"app": app}},
        "spec": {
            **spec,
            "nodeName": at,
            "containers": [
                {"name": "main", "resources": {"requests": requests, "limits": requests}}
            ],
        },
    }


def _spec(chance: random.Random, app: str) -> Manifest:
    def term(other: str, key: str) -> Manifest:
        return {"labelSelector": {"matchLabels": {"app": other}}, "topologyKey": key}

    def spread(key: str, when: str, skew: int) -> Manifest:
        selector = {"matchLabels": {"app": app}}
        return {
            "topologyKey": key,
            "whenUnsatisfiable": when,
            "maxSkew": skew,
            "labelSelector": selector,
        }

    affinity: Manifest = {}
    constraints = []
    other = chance.choice([each for each in ("web", "db", "job") if each != app])
    if chance.random() < 0.3:
        affinity["podAntiAffinity"] = {IGNORED: [term(chance.choice((app, other)), HOST)]}
    if chance.random() < 0.25:
        affinity["podAffinity"] = {IGNORED: [term(other, ZONE)]}
    if chance.random() < 0.35:
        constraints.append(spread(ZONE, "DoNotSchedule", chance.choice((1, 2))))
    if chance.random() < 0.6:
        constraints.append(spread(chance.choice((ZONE, HOST)), "ScheduleAnyway", 1))
    if chance.random() < 0.4:
        kind = chance.choice(("podAffinity", "podAntiAffinity"))
        wish = term(chance.choice((app, other)), chance.choice((ZONE, HOST)))
        weighed = {"weight": chance.randint(1, 9), "podAffinityTerm": wish}
        affinity[kind] = {**affinity.get(kind, {}), PREFERRED: [weighed]}
    if chance.random() < 0.4:
        expression = {"key": "disk", "operator": "In", "values": ["ssd"]}
        preference = {
            "weight": chance.randint(1, 9),
            "preference": {"matchExpressions": [expression]},
        }
        affinity["nodeAffinity"] = {PREFERRED: [preference]}
    return {"affinity": affinity, "topologySpreadConstraints": constraints}


def loaded(objects: Sequence[Manifest]) -> tuple[Replica, TemplateCache]:
    """Return a replica with some objects."""
    templates = TemplateCache()
    replica = Replica(templates)
    for each in objects:
        replica.put(parse_any(encode(each), templates))
    replica.settle_all()
    return replica, templates


def planned(
    replica: Replica, templates: TemplateCache, goal: Rebalance, seconds: float | None = None
) -> Planned:
    """Make a plan to rebalance, as a server does."""
    began = perf_counter()
    context = DecisionContext(
        replica=replica,
        now="2026-01-01T00:00:00Z",
        templates=templates,
        ids=_Ids(),
        limits=Limits(),
        attempts=1,
        hints={},
        is_late=lambda: seconds is not None and perf_counter() - began > seconds,
    )
    steps = make_plan(context, MakePlan(goal=goal))
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            answer = ended.value
            assert isinstance(answer, Planned)
            return answer


class _Ids:
    def uid(self) -> str:
        return "00000000-0000-4000-8000-000000000000"

    def commit_id(self) -> bytes:
        return bytes(16)

    def suffix(self) -> str:
        return "abcde"


def goal_of(world: Small) -> Rebalance:
    """Return what is asked of a small cluster."""
    resource = GPU if "Fragmentation" in world.objectives else None
    return Rebalance(pods=Selection(), objectives=world.objectives, resource=resource)


def values_of(planned: Planned, *, after: bool) -> Values:
    """Return what the objectives of a plan measure, with what breaks their ties."""
    totals = (planned.after if after else planned.before).objectives or []
    found: list[int] = []
    for each in totals:
        found.append(sum(each.value.values()))
        if each.tie_break is not None:
            found.append(sum(each.tie_break.values()))
    return tuple(found)


# The optimum


def optimum(world: Small, broken: frozenset[tuple[str, str]], seconds: float = 30) -> Values | None:
    """Return the least values of all placements that break no more rules; None if it is not known.

    `broken` are the rules that are broken at the beginning, each with its pod's name. They may stay
    broken while the pods stay that are concerned: no filter lets any go to where they do not hold.
    """
    from ortools.sat.python import cp_model  # noqa: PLC0415 - it need not be there

    model = _Model(cp_model.CpModel(), world, broken)
    found: list[int] = []
    for figure in model.figures():
        model.cp.minimize(figure)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_time_in_seconds = seconds
        if solver.solve(model.cp) != cp_model.OPTIMAL:
            return None
        value = round(solver.objective_value)
        found.append(value)
        model.cp.add(figure == value)
    return tuple(found)


class _Model:
    """The placements of a small cluster, and what the objectives measure, for CP-SAT."""

    def __init__(self, cp: Any, world: Small, broken: frozenset[tuple[str, str]]) -> None:
        self.cp = cp
        self._world = world
        self._nodes, self._pods = world.nodes, world.pods
        self._at = [
            [cp.new_bool_var(f"{pod}-{node}") for node in range(len(world.nodes))]
            for pod in range(len(world.pods))
        ]
        self._broken: list[Any] = []
        for row in self._at:
            cp.add_exactly_one(row)
        for node, manifest in enumerate(world.nodes):
            for name in ("cpu", "memory", GPU):
                room = int(manifest["status"]["allocatable"][name])
                cp.add(self._requested(node, name) <= room)
        for index, pod in enumerate(world.pods):
            self._rules(index, pod, broken)

    def figures(self) -> Iterator[Any]:
        for name in self._world.objectives:
            match name:
                case "Violations":
                    yield sum(self._broken)
                case "Skew":
                    yield sum(self._skews())
                case "Preferences":
                    yield -sum(self._held())
                case "Spread":
                    yield sum(self._squares())
                case "Packing":
                    yield sum(self._used())
                    yield -sum(self._squares())
                case "Fragmentation":
                    frees = [self._free(node) for node in range(len(self._nodes))]
                    yield sum(rest for rest, _ in frees)
                    yield -sum(square for _, square in frees)

    # What is where

    def _requested(self, node: int, name: str) -> Any:
        return sum(
            int(_requests(pod).get(name, 0)) * self._at[index][node]
            for index, pod in enumerate(self._pods)
        )

    def _domains(self, key: str) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for node, manifest in enumerate(self._nodes):
            found.setdefault(manifest["metadata"]["labels"][key], []).append(node)
        return found

    def _inside(self, pod: int, nodes: Sequence[int]) -> Any:
        return sum(self._at[pod][node] for node in nodes)

    def _stays(self, pod: int) -> Any:
        return self._at[pod][int(self._pods[pod]["spec"]["nodeName"].removeprefix("n"))]

    def _matching(self, term: Manifest) -> list[int]:
        wanted = term["labelSelector"]["matchLabels"]["app"]
        return [
            index
            for index, pod in enumerate(self._pods)
            if pod["metadata"]["labels"]["app"] == wanted
        ]

    def _counts(self, term: Manifest) -> list[Any]:
        matching = self._matching(term)
        return [
            sum(self._inside(pod, nodes) for pod in matching)
            for nodes in self._domains(term["topologyKey"]).values()
        ]

    # Required rules

    def _rules(  # noqa: C901 - one paragraph for each kind of rule
        self, index: int, pod: Manifest, broken: frozenset[tuple[str, str]]
    ) -> None:
        affinity, name = pod["spec"]["affinity"], pod["metadata"]["name"]

        def may_break(path: str) -> Any:
            if (name, path) not in broken:
                return 0
            found = self.cp.new_bool_var(f"{name}-{path}")
            self.cp.add(found <= self._stays(index))
            self._broken.append(found)
            return found

        for number, term in enumerate(affinity.get("podAntiAffinity", {}).get(IGNORED, ())):
            may = may_break(f"spec.affinity.podAntiAffinity.{IGNORED}[{number}]")
            for other in self._matching(term):
                for nodes in self._domains(term["topologyKey"]).values() if other != index else ():
                    both = self._inside(index, nodes) + self._inside(other, nodes)
                    self.cp.add(both <= 1 + may)
                    self.cp.add(both <= 1 + self._stays(other))
        for number, term in enumerate(affinity.get("podAffinity", {}).get(IGNORED, ())):
            may = may_break(f"spec.affinity.podAffinity.{IGNORED}[{number}]")
            counts = self._counts(term)
            for nodes, count in zip(
                self._domains(term["topologyKey"]).values(), counts, strict=True
            ):
                self.cp.add(self._inside(index, nodes) <= count + may)
        for number, each in enumerate(pod["spec"]["topologySpreadConstraints"]):
            if each["whenUnsatisfiable"] == "DoNotSchedule":
                may = may_break(f"spec.topologySpreadConstraints[{number}]")
                most = len(self._pods)
                counts, least = self._level(each)
                domains = self._domains(each["topologyKey"]).values()
                for nodes, count in zip(domains, counts, strict=True):
                    skew = most * (1 - self._inside(index, nodes)) + most * may
                    self.cp.add(count - least <= each["maxSkew"] + skew)

    def _level(self, each: Manifest) -> tuple[list[Any], Any]:
        counts = self._counts(each)
        least = self.cp.new_int_var(0, len(self._pods), "least")
        self.cp.add_min_equality(least, counts)
        return counts, least

    # Objectives

    def _skews(self) -> Iterator[Any]:
        constraints = {
            (
                each["topologyKey"],
                each["maxSkew"],
                each["labelSelector"]["matchLabels"]["app"],
            ): each
            for pod in self._pods
            for each in pod["spec"]["topologySpreadConstraints"]
            if each["whenUnsatisfiable"] == "ScheduleAnyway"
        }
        for each in constraints.values():
            counts, least = self._level(each)
            for count in counts:
                excess = self.cp.new_int_var(0, len(self._pods), "excess")
                self.cp.add_max_equality(excess, [0, count - least - each["maxSkew"]])
                yield excess

    def _held(self) -> Iterator[Any]:
        yield 0
        for index, pod in enumerate(self._pods):
            affinity = pod["spec"]["affinity"]
            for preferred in affinity.get("nodeAffinity", {}).get(PREFERRED, ()):
                fast = [
                    node
                    for node, manifest in enumerate(self._nodes)
                    if manifest["metadata"]["labels"]["disk"] == "ssd"
                ]
                yield preferred["weight"] * self._inside(index, fast)
            for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
                for preferred in affinity.get(kind, {}).get(PREFERRED, ()):
                    term = preferred["podAffinityTerm"]
                    for other in self._matching(term):
                        if other != index:
                            yield sign * preferred["weight"] * self._beside(index, other, term)

    def _beside(self, one: int, other: int, term: Manifest) -> Any:
        found = []
        for nodes in self._domains(term["topologyKey"]).values():
            both = self.cp.new_bool_var("both")
            first, second = self._inside(one, nodes), self._inside(other, nodes)
            self.cp.add(both <= first)
            self.cp.add(both <= second)
            self.cp.add(both >= first + second - 1)
            found.append(both)
        return sum(found)

    def _square(self, amount: Any, whole: int) -> Any:
        share = self.cp.new_int_var(0, 1000, "share")
        self.cp.add_division_equality(share, amount * 1000, whole)
        square = self.cp.new_int_var(0, 1_000_000, "square")
        self.cp.add_multiplication_equality(square, [share, share])
        return square

    def _squares(self) -> Iterator[Any]:
        for node, manifest in enumerate(self._nodes):
            for name in ("cpu", "memory"):
                whole = int(manifest["status"]["allocatable"][name]) * NANOS[name]
                amount = self.cp.new_int_var(0, whole, "amount")
                self.cp.add(amount == self._requested(node, name) * NANOS[name])
                yield self._square(amount, whole)

    def _used(self) -> Iterator[Any]:
        for node in range(len(self._nodes)):
            used = self.cp.new_bool_var("used")
            self.cp.add_max_equality(used, [row[node] for row in self._at])
            yield used

    def _free(self, node: int) -> tuple[Any, Any]:
        """Return what is of no use of the GPUs of a node, and the square of what is free."""
        greatest = max(int(each["status"]["allocatable"][GPU]) for each in self._nodes)
        has = int(self._nodes[node]["status"]["allocatable"][GPU])
        free = self.cp.new_int_var(0, has, "free")
        self.cp.add(free == has - self._requested(node, GPU))
        is_whole = self.cp.new_bool_var("whole")
        self.cp.add(free == has).only_enforce_if(is_whole)
        self.cp.add(free < has).only_enforce_if(is_whole.negated())
        rest = self.cp.new_int_var(0, has, "rest")
        self.cp.add(rest == 0).only_enforce_if(is_whole)
        self.cp.add(rest == free).only_enforce_if(is_whole.negated())
        return rest, self._square(free, max(greatest, 1))


def _requests(pod: Manifest) -> dict[str, str]:
    return pod["spec"]["containers"][0]["resources"]["requests"]


def broken_rules(replica: Replica) -> frozenset[tuple[str, str]]:
    """Return the rules that are broken, each with its pod's name."""
    inspection = Inspection(replica.cluster)
    return frozenset(
        (each.pod.name, each.breach.rule.path)
        for pod_class in inspection.suspects(replica.cluster.placed_classes())
        for each in inspection.of(pod_class)
    )


def compare(seeds: Sequence[int]) -> None:
    """Compare plans of small clusters with the optimum, and print what came of it."""
    equal = known = moves = 0
    times: list[float] = []
    solving: list[float] = []
    worse: dict[tuple[Objective, ...], int] = {}
    for seed in seeds:
        world = small(seed)
        replica, templates = loaded([*world.nodes, *world.pods])
        broken = broken_rules(replica)
        began = process_time()
        plan = planned(replica, templates, goal_of(world))
        times.append(process_time() - began)
        moves += len(plan.steps)
        began = process_time()
        best = optimum(world, broken)
        solving.append(process_time() - began)
        if best is None:
            continue
        known += 1
        found = values_of(plan, after=True)
        if found <= best:
            equal += 1
        else:
            worse[world.objectives] = worse.get(world.objectives, 0) + 1
            before = values_of(plan, after=False)
            print(
                f"{seed}: {world.objectives} {before} -> {found}, optimum {best}", file=sys.stderr
            )
    print(f"{equal} of {known} equal to the optimum ({100 * equal / max(known, 1):.1f} %)")
    print(f"{moves} moves; worse: {worse}")
    for name, each in (("plan", times), ("CP-SAT", solving)):
        each.sort()
        told = [f"{quantile(each, share) * 1e3:.0f}" for share in (0.5, 0.99)]
        print(f"{name}: p50 {told[0]} ms, p99 {told[1]} ms, max {max(each) * 1e3:.0f} ms of CPU")


app = typer.Typer(add_completion=False)


@app.command()
def small_clusters(
    count: Annotated[int, typer.Option(help="How many clusters.")] = 500,
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
) -> None:
    """Compare with the optimum."""
    compare(range(first, first + count))


@app.command()
def trace(
    folder: Annotated[Path, typer.Argument(help="Has nodes.json and pods.jsonl.gz.")],
    resource: Annotated[str, typer.Option(help="Whose free blocks count.")] = GPU_THOUSANDTHS,
    block: Annotated[str, typer.Option(help="What is needed of it at once.")] = "1000",
    moves_max: Annotated[int, typer.Option(help="How many pods may move.")] = 1000,
    leaving: Annotated[
        float | None,
        typer.Option(
            help="The share of the pods that leave after all have come; as in the trace, if absent."
        ),
    ] = None,
) -> None:
    """Replay a production trace over HTTP, and rebalance what is left after all departures."""
    nodes = read_objects([str(folder / "nodes.json")])
    pods = read_objects([str(folder / "pods.jsonl.gz")])
    if leaving is not None:
        pods = _leaving_last(pods, leaving)
    with serving() as server:
        items, plan, seconds = asyncio.run(
            _rebalanced(server, nodes, pods, Fragments(resource, block, moves_max))
        )
    placed = [each for each in items if each["kind"] == "Pod" and not _has_ended(each)]
    print(f"{len(placed)} pods on {len(nodes)} nodes; {len(plan['steps'])} moves", end="")
    print(f" in {len({each['wave'] for each in plan['steps']})} waves, after {seconds:.1f} s")
    for name in ("before", "after"):
        told = {each["objective"]: each["value"] for each in plan[name]["objectives"]}
        print(
            f"{name}: {told}, {_whole_blocks(items, plan, resource, int(block), name)} whole blocks"
        )
    print(f"rules broken after any wave: {len(_broken_on_the_way(items, plan['steps']))}")


def _leaving_last(pods: list[Manifest], share: float) -> list[Manifest]:
    """Have so many of the pods leave before the last batch comes, whoever they are, and nobody else."""
    chance = random.Random(0)
    last = (len(pods) - 1) // BATCH * BATCH

    def times(pod: Manifest, came: int, went: int) -> Manifest:
        annotations = {CAME: str(came), WENT: str(went)}
        return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}

    return [
        times(pod, 2, 3) if index >= last else times(pod, 0, 1 if chance.random() < share else 3)
        for index, pod in enumerate(pods)
    ]


class Fragments(NamedTuple):
    """What is asked about the rests of a resource."""

    resource: str
    block: str
    moves_max: int


async def _rebalanced(
    server: Server, nodes: list[Manifest], pods: list[Manifest], asked: Fragments
) -> tuple[list[Manifest], Manifest, float]:
    """Return what is stored, the plan, and how many seconds it took."""
    await put_nodes(server, nodes)
    await place(server, prepared(pods, BATCH))
    goal = {
        "type": "Rebalance",
        "objectives": ["Violations", "Fragmentation"],
        "resource": asked.resource,
        "block": asked.block,
        "movesMax": asked.moves_max,
    }
    body = {"goal": goal, "bounds": {"seconds": 30}, "explain": "Summary"}
    async with Connection(server.host, server.port) as connection:
        began = perf_counter()
        plan = await connection.post_json(f"{CLUSTER}/plans", body)
        seconds = perf_counter() - began
    return json.loads(server.get(f"{CLUSTER}/export"))["items"], plan, seconds


def _has_ended(pod: Manifest) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _whole_blocks(
    items: list[Manifest], plan: Manifest, resource: str, block: int, when: str
) -> int:
    """Return how many whole blocks are free, counted from the manifests."""
    moved = {(each["namespace"], each["name"]): each["to"] for each in plan["steps"]}
    free = Counter(
        {
            each["metadata"]["name"]: int(each["status"]["allocatable"].get(resource, "0"))
            for each in items
            if each["kind"] == "Node"
        }
    )
    for each in items:
        if each["kind"] != "Pod" or _has_ended(each) or "nodeName" not in each["spec"]:
            continue
        key = (each["metadata"]["namespace"], each["metadata"]["name"])
        node = moved.get(key) if when == "after" else None
        free[node or each["spec"]["nodeName"]] -= int(_requests(each).get(resource, "0"))
    return sum(each // block for each in free.values())


def _broken_on_the_way(items: list[Manifest], steps: list[Manifest]) -> list[str]:
    """Make the moves on a model of its own, and return a line for each rule that is broken.

    After each wave those are looked at who have moved, at the end all: no pod of the trace has a
    rule about others.
    """
    templates, cluster = TemplateCache(), Cluster(ClusterConfig())
    pods = {}
    for each in items:
        put(cluster, each, templates)
        if each["kind"] == "Pod":
            pods[each["metadata"]["namespace"], each["metadata"]["name"]] = each
    found: list[str] = []
    for _, wave in groupby(steps, key=lambda step: step["wave"]):
        moved = [(pods[each["namespace"], each["name"]], each["to"]) for each in wave]
        for pod, _ in moved:
            cluster.delete_pod(pod["metadata"]["namespace"], pod["metadata"]["name"])
        for pod, node in moved:
            put(cluster, {**pod, "spec": {**pod["spec"], "nodeName": node}}, templates)
        for pod, _ in moved:
            now = cluster.pod(pod["metadata"]["namespace"], pod["metadata"]["name"])
            line = None if now is None else broken_by(cluster, now)
            found += [] if line is None else [line]
    return [*found, *broken(cluster)]


if __name__ == "__main__":
    app()
