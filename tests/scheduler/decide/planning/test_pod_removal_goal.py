"""Which pods go, against a search through all choices that knows nothing of the engine."""

import random
from collections import Counter
from itertools import combinations
from typing import Any

import pytest

from service.model.core.primitives import LabelSelector
from service.model.registry.manifests import TemplateCache, parse_any
from service.scheduler.decide.context import DecisionContext
from service.scheduler.plans.make_plan import make_plan
from service.scheduler.plans.remove import removal as pod_removal_goal
from service.scheduler.protocol.intents import MakePlan
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.plans import Planned, Remove, Selection
from service.scheduler.replica.replica import Replica
from tests.scheduler.decide.planning.test_plan_making import ended
from tests.scheduler.world import CountedIds, encoded

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
WEB = {"matchLabels": {"app": "web"}}
NODES = {f"n{number}": f"z{number % 3}" for number in range(5)}
SEEDS = range(40)

Json = dict[str, Any]
Value = tuple[int, int, int]


def node(name: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {ZONE: NODES[name], HOST: name}},
        "status": {"allocatable": {"cpu": "40", "memory": "8Gi", "pods": "50"}},
    }


def pod(name: str, node_name: str | None, app: str, spec: Json) -> Json:
    placed = {} if node_name is None else {"nodeName": node_name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "labels": {"app": app}},
        "spec": {**spec, **placed, "containers": [{"name": "main"}]},
    }


def spread(key: str, when: str, skew: int = 1) -> Json:
    return {
        "topologyKey": key,
        "whenUnsatisfiable": when,
        "maxSkew": skew,
        "labelSelector": WEB,
    }


def weighed(app: str, key: str, weight: int) -> Json:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {"weight": weight, "podAffinityTerm": term}


def preferring(kind: str, *terms: Json) -> Json:
    return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


WEB_SPECS: list[Json] = [
    {},
    {"topologySpreadConstraints": [spread(ZONE, "ScheduleAnyway")]},
    {
        "topologySpreadConstraints": [
            spread(ZONE, "DoNotSchedule", 2),
            spread(HOST, "ScheduleAnyway"),
        ]
    },
    preferring("podAntiAffinity", weighed("web", HOST, 7)),
    preferring("podAffinity", weighed("db", ZONE, 5), weighed("web", HOST, 2)),
]
NEEDS_WEB = {
    "affinity": {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": WEB, "topologyKey": ZONE}
            ]
        }
    }
}
OTHERS: list[tuple[str, Json]] = [
    ("db", {}),
    ("db", preferring("podAffinity", weighed("web", ZONE, 3))),
    ("guard", NEEDS_WEB),
]


def pods(seed: int) -> list[Json]:
    chance = random.Random(seed)
    specs = chance.sample(WEB_SPECS, 2)
    web = [
        pod(f"web-{number}", chance.choice([*NODES, *NODES, None]), "web", chance.choice(specs))
        for number in range(chance.randint(4, 7))
    ]
    others = [
        pod(f"other-{number}", chance.choice([*NODES]), *chance.choice(OTHERS))
        for number in range(3)
    ]
    return web + others


def planned(all_: list[Json], count: int) -> Planned:
    templates = TemplateCache()
    replica = Replica(templates)
    for each in [*map(node, NODES), *all_]:
        replica.put(parse_any(encoded(each), templates))
    replica.settle_all()
    digest = replica.digest()
    context = DecisionContext(
        replica=replica,
        now="2026-01-01T00:00:00Z",
        templates=templates,
        ids=CountedIds(1),
        limits=Limits(),
        attempts=1,
        hints={},
    )
    selection = Selection(selector=LabelSelector(match_labels={"app": "web"}), namespace="shop")
    plan = ended(make_plan(context, MakePlan(goal=Remove(pods=selection, count=count))))
    assert replica.digest() == digest
    return plan


# The same from the manifests alone


def domain(each: Json, key: str) -> str | None:
    name = each["spec"].get("nodeName")
    return None if name is None else NODES[name] if key == ZONE else name


def matching(term: Json, all_: list[Json]) -> list[Json]:
    app = term["labelSelector"]["matchLabels"]["app"]
    return [each for each in all_ if each["metadata"]["labels"]["app"] == app]


def constraints(all_: list[Json]) -> list[Json]:
    found: dict[str, Json] = {}
    for each in all_:
        for rule in each["spec"].get("topologySpreadConstraints", ()):
            found[rule["topologyKey"]] = rule
    return list(found.values())


def counts(rule: Json, all_: list[Json]) -> Counter[str]:
    placed = [domain(each, rule["topologyKey"]) for each in matching(rule, all_)]
    return Counter(each for each in placed if each is not None)


def unevenness(rules: list[Json], all_: list[Json]) -> int:
    return sum(pods**2 for rule in rules for pods in counts(rule, all_).values())


def preferences(all_: list[Json]) -> int:
    total = 0
    for each in all_:
        for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
            asked = each["spec"].get("affinity", {}).get(kind, {})
            for term in asked.get("preferredDuringSchedulingIgnoredDuringExecution", ()):
                wanted = term["podAffinityTerm"]
                key = wanted["topologyKey"]
                beside = [
                    other
                    for other in matching(wanted, all_)
                    if other is not each and domain(each, key) == domain(other, key) is not None
                ]
                total += sign * term["weight"] * len(beside)
    return total


def broken(all_: list[Json]) -> set[tuple[str, str]]:
    found = set()
    for each in all_:
        name = each["metadata"]["name"]
        asked = each["spec"].get("affinity", {}).get("podAffinity", {})
        for term in asked.get("requiredDuringSchedulingIgnoredDuringExecution", ()):
            others = {domain(other, ZONE) for other in matching(term, all_)}
            if domain(each, ZONE) not in others:
                found.add((name, "affinity"))
        for rule in each["spec"].get("topologySpreadConstraints", ()):
            own = domain(each, rule["topologyKey"])
            if rule["whenUnsatisfiable"] == "DoNotSchedule" and own is not None:
                rest = counts(rule, [other for other in all_ if other is not each])
                least = min(rest[zone] for zone in set(NODES.values()))
                if rest[own] + 1 - least > rule["maxSkew"]:
                    found.add((name, "spread"))
    return found


def value(all_: list[Json], names: set[str]) -> Value:
    """What removing pods costs, from the cluster before and after."""
    rules = constraints([each for each in all_ if each["metadata"]["labels"]["app"] == "web"])
    left = [each for each in all_ if each["metadata"]["name"] not in names]
    gone = [each for each in all_ if each["metadata"]["name"] in names]
    return (
        sum("nodeName" in each["spec"] for each in gone),
        unevenness(rules, left) - unevenness(rules, all_),
        preferences(all_) - preferences(left),
    )


def holds(all_: list[Json], names: set[str]) -> bool:
    left = [each for each in all_ if each["metadata"]["name"] not in names]
    return broken(left) <= broken(all_)


def least(all_: list[Json], count: int) -> Value | None:
    web = [name for each in all_ if (name := each["metadata"]["name"]).startswith("web")]
    choices = [set(names) for names in combinations(web, count) if holds(all_, set(names))]
    return min((value(all_, names) for names in choices), default=None)


def gone(plan: Planned) -> set[str]:
    return {each.name for each in plan.steps}


@pytest.mark.parametrize("seed", SEEDS)
def test_no_other_choice_would_be_better(seed: int) -> None:
    """R08: of all choices, the one that leaves the others spread best."""
    all_ = pods(seed)
    for count in (1, 2, 3):
        best, plan = least(all_, count), planned(all_, count)
        assert holds(all_, gone(plan))
        assert plan.complete == (best is not None)
        if best is not None:
            assert value(all_, gone(plan)) == best
        else:
            assert {each.reason for each in plan.unplaced} == {"BreaksRule"}


@pytest.mark.parametrize("seed", SEEDS)
def test_chosen_one_after_the_other_each_is_the_best_one_then(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_removal_goal, "CHOICES_MAX", 0)
    all_ = pods(seed)
    plan = planned(all_, 2)
    assert holds(all_, gone(plan))
    first = planned(all_, 1)
    best = least(all_, 1)
    assert best is None or value(all_, gone(first)) == best
