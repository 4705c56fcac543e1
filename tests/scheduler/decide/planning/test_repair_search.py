"""Repairs of pods that fit nowhere, against a search through all sets of changes by the slow reference."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import combinations
from typing import Any, NamedTuple

import msgspec
import pytest

from service.model.registry.manifests import TemplateCache, parse_any
from service.scheduler.decide.context import DecisionContext
from service.scheduler.plans.repair.search import find_repairs
from service.scheduler.protocol.intents import FindRepairs
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.repairs import RepairsAnswer
from service.scheduler.replica.replica import Replica
from tests.reference.cluster import ReferenceCluster
from tests.scheduler.decide.planning.test_plan_making import ended
from tests.scheduler.world import CountedIds, encoded

Json = dict[str, Any]
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
IGNORED = "requiredDuringSchedulingIgnoredDuringExecution"
TAINTS = [
    {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
    {"key": "old", "effect": "NoExecute"},
]
APPS = ("web", "db", "bus")


class World(NamedTuple):
    nodes: list[Json]
    pods: list[Json]
    wanted: Json


def term(chance: random.Random) -> Json:
    app = chance.choice(APPS)
    key = chance.choice([ZONE, HOST, HOST])
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def affinity(chance: random.Random, kind: str, most: int) -> Json:
    return {kind: {IGNORED: [term(chance) for _ in range(chance.randint(1, most))]}}


def node(chance: random.Random, name: str) -> Json:
    labels = {"disk": chance.choice(["ssd", "hdd"])}
    if chance.random() < 0.9:
        labels[HOST] = name
    if chance.random() < 0.9:
        labels[ZONE] = chance.choice("ab")
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "unschedulable": chance.random() < 0.25,
            "taints": [each for each in TAINTS if chance.random() < 0.25],
        },
        "status": {"allocatable": {"cpu": "4", "memory": "4Gi", "pods": chance.choice(["2", "9"])}},
    }


def placed(chance: random.Random, number: int, node_name: str) -> Json:
    made = pod(f"pod-{number}", chance.choice(APPS), str(chance.randint(1, 2)))
    made["spec"]["nodeName"] = node_name
    if chance.random() < 0.2:
        made["spec"]["affinity"] = affinity(chance, "podAntiAffinity", 1)
    if chance.random() < 0.2:
        made["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    return made


def pod(name: str, app: str, cpu: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": {"app": app}},
        "spec": {
            "containers": [
                {"name": "main", "image": "main", "resources": {"requests": {"cpu": cpu}}}
            ]
        },
    }


def waiting(chance: random.Random) -> Json:
    made = pod("wanted", "web", str(chance.choice([1, 2, 3, 5])))
    spec = made["spec"]
    rules: Json = {}
    if chance.random() < 0.4:
        spec["nodeSelector"] = {"disk": chance.choice(["ssd", "nvme"])}
    if chance.random() < 0.2:
        wanted = {"key": ZONE, "operator": "In", "values": [chance.choice("abc")]}
        rules["nodeAffinity"] = {IGNORED: {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}}
    if chance.random() < 0.5:
        rules |= affinity(chance, "podAntiAffinity", 2)
    if chance.random() < 0.2:
        rules |= affinity(chance, "podAffinity", 1)
    if rules:
        spec["affinity"] = rules
    if chance.random() < 0.3:
        spec["topologySpreadConstraints"] = [
            {
                "topologyKey": chance.choice([ZONE, HOST]),
                "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ]
    if chance.random() < 0.2:
        spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    return made


def drawn(seed: int) -> World:
    """Draw worlds until the pod fits nowhere."""
    chance = random.Random(seed)
    while True:
        nodes = [node(chance, f"n{number}") for number in range(chance.randint(2, 4))]
        names = [each["metadata"]["name"] for each in nodes]
        pods = [placed(chance, number, chance.choice(names)) for number in range(4)]
        world = World(nodes, pods, waiting(chance))
        if not fits(world):
            return world


def fits(world: World) -> bool:
    return bool(feasible(world, world.wanted))


def feasible(world: World, pod: Json) -> Any:
    objects = [("Node", each) for each in world.nodes] + [("Pod", each) for each in world.pods]
    return ReferenceCluster({}, objects).evaluate(pod)["feasible"]


# What can be changed, from the manifests alone

Atom = tuple[str, ...]
Edit = Callable[[World], object]


def atoms(world: World) -> Iterator[tuple[Atom, Edit]]:
    """Yield every change that repairs may be made of, with what makes it."""
    yield from of_wanted(world.wanted["spec"])
    for index, each in enumerate(world.nodes):
        yield from of_node(index, each, world.wanted["spec"].get("nodeSelector", {}))
        yield ("AddNodes", each["metadata"]["name"]), _adding(each)
    for each in world.pods:
        name = each["metadata"]["name"]
        yield ("RemovePods", name), _removing(name)


def of_wanted(spec: Json) -> Iterator[tuple[Atom, Edit]]:
    yield ("LowerRequest", "cpu"), lambda w: _main(w)["resources"]["requests"].pop("cpu")
    for key in spec.get("nodeSelector", {}):
        yield ("DropRule", f"spec.nodeSelector[{key}]"), _dropping("nodeSelector", key)
    for kind, rules in spec.get("affinity", {}).items():
        yield from of_affinity(kind, rules[IGNORED])
    for index in range(len(spec.get("topologySpreadConstraints", ()))):
        path = f"spec.topologySpreadConstraints[{index}]"
        yield ("DropRule", path), _dropping("topologySpreadConstraints")
    if "ports" in spec["containers"][0]:
        path = "spec.containers[0].ports[0].hostPort"
        yield ("DropRule", path), lambda w: _main(w).pop("ports")
    for taint in (*TAINTS, {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}):
        yield ("AddToleration", taint["key"]), _tolerating(taint)


def of_affinity(kind: str, rules: Any) -> Iterator[tuple[Atom, Edit]]:
    path = f"spec.affinity.{kind}.{IGNORED}"
    if kind == "nodeAffinity":
        yield ("DropRule", path), _dropping("affinity", kind)
        return
    for index, rule in enumerate(rules):
        yield ("DropRule", f"{path}[{index}]"), _without_term(kind, rule)


def of_node(index: int, node: Json, selector: Json) -> Iterator[tuple[Atom, Edit]]:
    name = node["metadata"]["name"]
    yield ("UncordonNodes", name), _uncordoning(index)
    for taint in node["spec"]["taints"]:
        yield ("SetTaints", name, taint["key"]), _untainting(index, taint["key"])
    for key, value in selector.items():
        yield ("SetLabels", name, key), _labelling(index, key, value)


def _main(world: World) -> Json:
    return world.wanted["spec"]["containers"][0]


def _dropping(*path: str) -> Edit:
    def drop(world: World) -> None:
        at = world.wanted["spec"]
        for part in path[:-1]:
            at = at[part]
        del at[path[-1]]

    return drop


def _without_term(kind: str, rule: Json) -> Edit:
    def drop(world: World) -> None:
        terms = world.wanted["spec"]["affinity"][kind][IGNORED]
        terms.remove(rule)

    return drop


def _tolerating(taint: Json) -> Edit:
    toleration = {"key": taint["key"], "operator": "Exists", "effect": taint["effect"]}
    return lambda world: world.wanted["spec"].setdefault("tolerations", []).append(toleration)


def _uncordoning(index: int) -> Edit:
    return lambda world: world.nodes[index]["spec"].update(unschedulable=False)


def _untainting(index: int, key: str) -> Edit:
    def untaint(world: World) -> None:
        spec = world.nodes[index]["spec"]
        spec["taints"] = [each for each in spec["taints"] if each["key"] != key]

    return untaint


def _labelling(index: int, key: str, value: str) -> Edit:
    return lambda world: world.nodes[index]["metadata"]["labels"].update({key: value})


def _adding(like: Json) -> Edit:
    """Return the edit that one more node comes, by what a node or a template says."""

    def add(world: World) -> None:
        added = deepcopy(like)
        added |= {"apiVersion": "v1", "kind": "Node"}
        added["spec"].pop("unschedulable", None)
        added["metadata"]["name"] = "added-0"
        if HOST in added["metadata"]["labels"]:
            added["metadata"]["labels"][HOST] = "added-0"
        world.nodes.append(added)

    return add


def _removing(name: str) -> Edit:
    def remove(world: World) -> None:
        world.pods[:] = [each for each in world.pods if each["metadata"]["name"] != name]

    return remove


def minimal_sets(world: World, most: int) -> list[frozenset[Atom]]:
    """Return all sets of at most so many changes that help, and of which no proper subset does.

    Nodes come alone: what else would have to change beside them is not searched.
    """
    possible = dict(atoms(world))
    found: list[frozenset[Atom]] = []
    for size in range(1, most + 1):
        for some in combinations(possible, size):
            chosen = frozenset(some)
            if size > 1 and any(each[0] == "AddNodes" for each in some):
                continue
            if not any(each < chosen for each in found) and fits(changed(world, some, possible)):
                found.append(chosen)
    return found


def changed(world: World, some: Any, possible: dict[Atom, Edit]) -> World:
    twin = deepcopy(world)
    for each in some:
        possible[each](twin)
    return twin


# What is told


def told(world: World, most: int) -> RepairsAnswer:
    templates = TemplateCache()
    replica = Replica(templates)
    for each in [*world.nodes, *world.pods, world.wanted]:
        replica.put(parse_any(encoded(each), templates))
    replica.settle_all()
    digest = replica.digest()
    context = DecisionContext(
        replica=replica,
        now="2026-01-01T00:00:00Z",
        templates=templates,
        ids=CountedIds(1),
        limits=Limits(repair_removals_max=1000, repair_nodes_max=100),
        attempts=1,
        hints={},
    )
    intent = FindRepairs(namespace="shop", name="wanted", changes_max=most, repairs_max=1000)
    answer = ended(find_repairs(context, intent))
    assert replica.digest() == digest
    return answer


def atoms_of(repair: Json, world: World) -> frozenset[Atom]:
    found: set[Atom] = set()
    for change in repair["changes"]:
        match change["op"]:
            case "LowerRequest":
                found.add(("LowerRequest", change["resource"]))
            case "DropRule":
                found.add(("DropRule", change["path"]))
            case "AddToleration":
                found.add(("AddToleration", change["toleration"]["key"]))
            case "UncordonNodes":
                found.add(("UncordonNodes", change["names"][0]))
            case "SetLabels":
                found.add(("SetLabels", change["names"][0], *change["labels"]))
            case "SetTaints":
                name = change["names"][0]
                (each,) = [n for n in world.nodes if n["metadata"]["name"] == name]
                left = {taint["key"] for taint in change["taints"]}
                gone = {taint["key"] for taint in each["spec"]["taints"]} - left
                found |= {("SetTaints", name, key) for key in gone}
            case "AddNodes":
                found.add(("AddNodes", json.dumps(change["template"])))
            case "RemovePods":
                found |= {("RemovePods", name) for name in change["names"]}
    return frozenset(found)


def shape(some: frozenset[Atom]) -> frozenset[Atom]:
    """Leave out which node or pod it is that changes."""
    of_nodes = {"UncordonNodes", "SetLabels", "SetTaints", "AddNodes", "RemovePods"}
    return frozenset(each[:1] + each[2:] if each[0] in of_nodes else each for each in some)


def of_pod_and_nodes(sets: list[frozenset[Atom]]) -> set[frozenset[Atom]]:
    return {shape(some) for some in sets if not any(each[0] == "RemovePods" for each in some)}


def check_moves(repair: Json, world: World, after: World) -> None:
    """Check where the pods that go find room; a request that is lowered leaves more room than it has to."""
    if any(each["op"] == "LowerRequest" for each in repair["changes"]):
        return
    after.wanted["spec"]["nodeName"] = repair["places"]
    after.pods.append(after.wanted)
    by_name = {each["metadata"]["name"]: each for each in world.pods}
    for move in repair.get("moves", ()):
        moved = deepcopy(by_name[move["name"]])
        del moved["spec"]["nodeName"]
        nodes = feasible(after, moved)
        assert move["to"] in nodes if move["to"] else not nodes, (repair, nodes)
        if move["to"]:
            moved["spec"]["nodeName"] = move["to"]
            after.pods.append(moved)


class Comparison(NamedTuple):
    least: bool
    """Whether the least repair has as few changes as there can be."""
    kinds: bool
    """Whether all repairs are found in which no pod goes, up to the node that is changed."""


def compare(seed: int, most: int) -> Comparison:
    """Check that each repair that is told is one, and say whether all were found."""
    world = drawn(seed)
    answer = told(world, most)
    assert answer.complete
    assert not answer.fits
    repairs = msgspec.to_builtins(answer)["repairs"]
    found = [atoms_of(each, world) for each in repairs]
    assert len(found) == len({*found})
    possible = dict(atoms(world))
    added = {each for some in found for each in some if each[0] == "AddNodes"}
    possible |= {each: _adding(json.loads(each[1])) for each in added}
    for repair, some in zip(repairs, found, strict=True):
        after = changed(world, some, possible)
        assert fits(after), some
        check_moves(repair, world, after)
        less = [len(some) - 1] if len(some) > most else range(1, len(some))
        for size in less:
            for part in combinations(some, size):
                assert not fits(changed(world, part, possible)), (some, part)
    wanted = minimal_sets(world, most)
    small = [each for each in found if len(each) <= most]
    least = min(map(len, wanted), default=0) == min(map(len, small), default=0)
    return Comparison(least, of_pod_and_nodes(wanted) == of_pod_and_nodes(small))


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_no_smaller_set_of_changes_would_do(first: int) -> None:
    for seed in range(first, first + 20):
        assert compare(seed, 2) == Comparison(least=True, kinds=True), seed


def test_what_comes_in_the_way_after_a_change_is_done_away_with_as_well() -> None:
    """Without its node affinity or selector, a pod has domains over which it has to be spread."""
    for seed in (1477, 1559, 1689, 1871):
        assert compare(seed, 2) == Comparison(least=True, kinds=True), seed


@pytest.mark.exploration
def test_no_smaller_set_of_changes_would_do_in_more_worlds() -> None:
    counted = count_equal(range(100, 500), 2)
    assert counted["least"] == counted["kinds"] == counted["worlds"]


def count_equal(seeds_: range, most: int) -> Counter[str]:
    """Count in how many worlds the answers are equal: `python -m tests.scheduler.decide.planning.test_repair_search`."""
    counted: Counter[str] = Counter()
    for seed in seeds_:
        compared = compare(seed, most)
        counted["worlds"] += 1
        counted["least"] += compared.least
        counted["kinds"] += compared.kinds
    return counted


if __name__ == "__main__":
    print(count_equal(range(2_000), 2))
