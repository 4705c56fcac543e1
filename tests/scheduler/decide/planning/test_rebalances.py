"""Plans to rebalance, against all placements of small clusters as the slow reference judges them."""

from itertools import product
from typing import Any

import pytest

from bench.rebalance import GPU, PREFERRED, goal_of, loaded, planned, small, values_of
from service.model.plans.rebalance_objectives import Objective
from service.scheduler.protocol.plans import Planned
from tests.reference.cluster import ReferenceCluster
from tests.reference.violations import violations
from tests.seeds import examples

Manifest = dict[str, Any]
Values = tuple[int, ...]
Known = frozenset[tuple[str, str]]
SEEDS = range(30)
NODES, PODS = 3, 5


def on(pods: list[Manifest], places: tuple[str, ...]) -> list[Manifest]:
    return [
        {**pod, "spec": {**pod["spec"], "nodeName": place}}
        for pod, place in zip(pods, places, strict=True)
    ]


def places_of(pods: list[Manifest]) -> tuple[str, ...]:
    return tuple(each["spec"]["nodeName"] for each in pods)


def broken(nodes: list[Manifest], pods: list[Manifest]) -> Known:
    objects = [*(("Node", each) for each in nodes), *(("Pod", each) for each in pods)]
    view = ReferenceCluster({}, objects).view()
    return frozenset((each.name, each.rule) for each in violations(view))


# What objectives measure, from the manifests alone


def measured(
    objectives: tuple[Objective, ...], nodes: list[Manifest], pods: list[Manifest]
) -> Values:
    found: list[int] = []
    for each in objectives:
        match each:
            case "Violations":
                found.append(len(broken(nodes, pods)))
            case "Skew":
                found.append(skew(nodes, pods))
            case "Preferences":
                found.append(-held(nodes, pods))
            case "Spread":
                found.append(load(nodes, pods))
            case "Packing":
                found += [len({*places_of(pods)}), -load(nodes, pods)]
            case "Fragmentation":
                found += [rests(nodes, pods), -blocks(nodes, pods)]
    return tuple(found)


def requested(node: Manifest, pods: list[Manifest], name: str) -> int:
    return sum(
        int(each["spec"]["containers"][0]["resources"]["requests"].get(name, 0))
        for each in pods
        if each["spec"]["nodeName"] == node["metadata"]["name"]
    )


def has(node: Manifest, name: str) -> int:
    return int(node["status"]["allocatable"][name])


def load(nodes: list[Manifest], pods: list[Manifest]) -> int:
    return sum(
        (requested(node, pods, name) * 1000 // has(node, name)) ** 2
        for node in nodes
        for name in ("cpu", "memory")
    )


def rests(nodes: list[Manifest], pods: list[Manifest]) -> int:
    used = {each["metadata"]["name"]: requested(each, pods, GPU) for each in nodes}
    return sum(
        has(each, GPU) - used[each["metadata"]["name"]]
        for each in nodes
        if used[each["metadata"]["name"]]
    )


def blocks(nodes: list[Manifest], pods: list[Manifest]) -> int:
    most = max(has(each, GPU) for each in nodes) or 1
    return sum(
        ((has(each, GPU) - requested(each, pods, GPU)) * 1000 // most) ** 2 for each in nodes
    )


def domains(nodes: list[Manifest], key: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in nodes:
        name = each["metadata"]["name"]
        found.setdefault(each["metadata"]["labels"][key], set()).add(name)
    return found


def matches(term: Manifest, pod: Manifest) -> bool:
    return term["labelSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()


def skew(nodes: list[Manifest], pods: list[Manifest]) -> int:
    soft = {
        str(each): each
        for pod in pods
        for each in pod["spec"]["topologySpreadConstraints"]
        if each["whenUnsatisfiable"] == "ScheduleAnyway"
    }
    found = 0
    for each in soft.values():
        counts = [
            sum(matches(each, pod) and pod["spec"]["nodeName"] in members for pod in pods)
            for members in domains(nodes, each["topologyKey"]).values()
        ]
        found += sum(max(count - min(counts) - each["maxSkew"], 0) for count in counts)
    return found


def held(nodes: list[Manifest], pods: list[Manifest]) -> int:
    disks = {each["metadata"]["name"]: each["metadata"]["labels"]["disk"] for each in nodes}
    found = 0
    for pod in pods:
        affinity, at = pod["spec"]["affinity"], pod["spec"]["nodeName"]
        for each in affinity.get("nodeAffinity", {}).get(PREFERRED, ()):
            found += each["weight"] * (disks[at] == "ssd")
        for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
            for each in affinity.get(kind, {}).get(PREFERRED, ()):
                term = each["podAffinityTerm"]
                (beside,) = (
                    members
                    for members in domains(nodes, term["topologyKey"]).values()
                    if at in members
                )
                found += sign * sum(
                    each["weight"]
                    for other in pods
                    if other is not pod
                    and matches(term, other)
                    and other["spec"]["nodeName"] in beside
                )
    return found


def fits(nodes: list[Manifest], pods: list[Manifest]) -> bool:
    return all(
        requested(node, pods, name) <= has(node, name)
        for node in nodes
        for name in ("cpu", "memory", GPU)
    )


def is_allowed(new: Known, known: Known, before: list[Manifest], after: list[Manifest]) -> bool:
    """Whether no rule is broken that held, and no pod came to where one does not hold."""
    stayed = {
        one["metadata"]["name"]
        for one, two in zip(before, after, strict=True)
        if one["spec"]["nodeName"] == two["spec"]["nodeName"]
    }
    return new <= known and all(name in stayed for name, _ in new)


@pytest.mark.parametrize("seed", range(examples(15)))
def test_plans_of_small_clusters_keep_every_rule_and_measure_rightly(seed: int) -> None:
    world = small(seed, NODES, PODS)
    replica, templates = loaded([*world.nodes, *world.pods])
    digest = replica.digest()
    plan = planned(replica, templates, goal_of(world))
    assert replica.digest() == digest
    known = broken(world.nodes, world.pods)
    now = world.pods
    for wave in sorted({each.wave for each in plan.steps}):
        moves = {each.name: each.to for each in plan.steps if each.wave == wave}
        now = on(
            now,
            tuple(moves.get(each["metadata"]["name"], each["spec"]["nodeName"]) for each in now),
        )
        assert fits(world.nodes, now)
        assert broken(world.nodes, now) <= known
    for pods, after in ((world.pods, False), (now, True)):
        assert values_of(plan, after=after) == measured(world.objectives, world.nodes, pods)
    assert values_of(plan, after=True) <= values_of(plan, after=False)
    assert bool(plan.steps) == (values_of(plan, after=True) < values_of(plan, after=False))


def optimum(seed: int) -> tuple[Planned, Values]:
    world = small(seed, NODES, PODS)
    replica, templates = loaded([*world.nodes, *world.pods])
    plan = planned(replica, templates, goal_of(world))
    known = broken(world.nodes, world.pods)
    names = [each["metadata"]["name"] for each in world.nodes]
    best = values_of(plan, after=True)
    rest = tuple(each for each in world.objectives if each != "Violations")
    for places in product(names, repeat=len(world.pods)):
        pods = on(world.pods, places)
        if not fits(world.nodes, pods):
            continue
        found = measured(rest, world.nodes, pods)
        counts_rules = rest != world.objectives
        if ((0, *found) if counts_rules else found) >= best:
            continue
        new = broken(world.nodes, pods)
        if is_allowed(new, known, world.pods, pods):
            best = min(best, (len(new), *found) if counts_rules else found)
    return plan, best


def test_plans_of_small_clusters_are_as_good_as_the_best_of_all_placements() -> None:
    worse = []
    for seed in SEEDS:
        plan, best = optimum(seed)
        if values_of(plan, after=True) != best:
            worse.append((seed, values_of(plan, after=True), best))
    assert len(worse) <= 1, worse
