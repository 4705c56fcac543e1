"""Whom one sweep evicts for rules between pods, against trying all sets of pods that may leave."""

from datetime import timedelta
from itertools import chain, combinations

import pytest
from hypothesis import given, settings, strategies as st

from service.model.registry.manifests import TemplateCache, parse_any
from service.scheduler.decide.context import DecisionContext
from service.scheduler.decide.evicting import minimal_evictions
from service.scheduler.dispatch import decide
from service.scheduler.protocol.intents import EvictViolating, PatchConfig
from service.scheduler.protocol.limits import Limits
from service.scheduler.replica.replica import Replica
from tests.builders import REQUIRED_DURING_EXECUTION, matching, node, pod, where
from tests.reference.cluster import ReferenceCluster
from tests.reference.evictions import broken_rules, must_go
from tests.reference.violations import violations
from tests.scheduler.world import START, CountedIds, encoded, kinded
from tests.seeds import examples

APPS = ("a", "b", "c")
CONFIG = {
    "antiAffinityVictim": "RuleOwner",
    "evictionsPerMinute": 1000,
    "affinityViolationGraceSeconds": 0,
}
NODES = [node(f"n{i}").label(host=f"n{i}", zone=f"z{i % 2}") for i in range(3)]


@st.composite
def placed_pods(draw, name):
    """A pod somewhere, with a rule against pods of some label or without one."""
    made = pod(name, draw(st.sampled_from(("default", "default", "kube-system"))))
    made = made.label(app=draw(st.sampled_from(APPS))).on(draw(st.sampled_from(("n0", "n1", "n2"))))
    for _ in range(draw(st.integers(0, 2))):
        limit = draw(st.sampled_from(({}, {}, {"maxPerDomain": 1}, {"maxPerDomain": 2})))
        made = made.require_anti_affinity(
            draw(st.sampled_from(("host", "zone"))),
            matching(app=draw(st.sampled_from(APPS))),
            execution=REQUIRED_DURING_EXECUTION,
            namespaces=["default", "kube-system"],
            **limit,
        )
    if not draw(st.integers(0, 2)):
        made = made.require_affinity(
            draw(st.sampled_from(("host", "zone"))),
            matching(app=draw(st.sampled_from(APPS))),
            execution=REQUIRED_DURING_EXECUTION,
            namespaces=["default", "kube-system"],
        )
    made["spec"]["priority"] = draw(st.integers(0, 2))
    made["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{draw(st.integers(0, 2))}Z"
    made["metadata"]["uid"] = f"00000000-0000-4000-8000-00000000000{name[1:]}"
    return made if draw(st.integers(0, 5)) else made.terminating()


def desk_of(replica):
    return DecisionContext(
        replica=replica,
        now="2026-01-01T00:00:00Z",
        templates=TemplateCache(),
        ids=CountedIds(1),
        limits=Limits(),
        attempts=1,
        hints={},
    )


def run(replica, intent):
    for _ in decide(desk_of(replica), intent):
        pass


def swept(pods, config):
    """Keys of the pods that are marked after one sweep, without those marked before."""
    templates = TemplateCache()
    replica = Replica(templates)
    run(replica, PatchConfig(patch_type="merge", patch=config))
    for each in (*NODES, *pods):
        replica.put(parse_any(encoded(kinded(each)), templates))
    before = terminating(replica)
    run(replica, EvictViolating(clock=lambda: START))
    after = terminating(replica)
    run(replica, EvictViolating(clock=lambda: START + timedelta(hours=1)))
    assert terminating(replica) == after, "one sweep is enough"
    return after - before


def terminating(replica):
    return {(pod.namespace, pod.name) for pod in replica.cluster.pods() if pod.terminating}


def fewest(pods, config):
    """Of all sets of pods that may leave, the best of those without which no rule is broken."""
    present = {key_of(each): each for each in pods}
    staying = {k: p for k, p in present.items() if "deletionTimestamp" not in p["metadata"]}
    repelling = [each for each in required(staying, config) if each.conflicts]
    attracting = [
        each
        for each in required(present, config)
        if not each.conflicts and each[:2] in staying and "podAffinity" in each.rule
    ]
    broken = {(*each[:2], each.rule) for each in (*repelling, *attracting)}
    may = {each[:2] for each in (*repelling, *attracting)}
    if config["antiAffinityVictim"] == "LowestPriority":
        may |= {key for each in repelling for key in each.conflicts}
    ordered = sorted(sorted(may), key=lambda key: importance(staying[key]))
    found = []
    for gone in chain.from_iterable(combinations(ordered, n) for n in range(len(ordered) + 1)):
        left = {key: each for key, each in staying.items() if key not in gone}
        if not broken & {(*each[:2], each.rule) for each in required(left, config)}:
            priorities = [staying[key]["spec"]["priority"] for key in gone]
            found.append((sorted(priorities, reverse=True), [*map(ordered.index, gone)], gone))
    return set(min(found)[2])


def required(pods, config):
    """The violations among these pods of rules that are required during execution."""
    return [each for each in violations(reference(pods, config)) if each.execution == "Required"]


def reference(pods, config):
    objects = [("Node", each) for each in NODES] + [("Pod", each) for each in pods.values()]
    return ReferenceCluster(config, objects).view()


def importance(manifest):
    """The least first: low priority, then young."""
    age = int(manifest["metadata"]["creationTimestamp"][-2])
    return manifest["spec"]["priority"], -age


def key_of(manifest):
    return manifest["metadata"]["namespace"], manifest["metadata"]["name"]


@pytest.mark.parametrize("terms", ["SamePod", "PerTerm"])
@pytest.mark.parametrize("victim", ["RuleOwner", "LowestPriority"])
def test_one_sweep_evicts_the_fewest_with_which_every_rule_holds(victim, terms):
    """M11."""
    config = CONFIG | {"antiAffinityVictim": victim, "requiredAffinityTerms": terms}

    @settings(max_examples=examples(30), deadline=None)
    @given(st.tuples(*(placed_pods(f"p{i}") for i in range(5))))
    def holds(pods):
        assert swept(pods, config) == fewest(pods, config)

    holds()


@pytest.mark.parametrize("victim", ["RuleOwner", "LowestPriority"])
def test_who_checks_histories_finds_the_same_fewest(victim):
    config = CONFIG | {"antiAffinityVictim": victim}

    @settings(max_examples=examples(30), deadline=None)
    @given(st.tuples(*(placed_pods(f"p{i}") for i in range(8))))
    def holds(pods):
        view = reference({key_of(each): each for each in pods}, config)
        overdue = {
            (key_of(each), path)
            for each in pods
            for plugin, path in broken_rules(view, each)
            if plugin == "InterPodAffinity" and "deletionTimestamp" not in each["metadata"]
        }
        look = must_go(view, config, overdue)
        assert swept(pods, config) == look.lost | look.chosen

    holds()


def apart(name, app, against, **fields):
    """A pod of one service that may not be with those of some others, for as long as it runs."""
    made = pod(name).label(app=app).on("n0")
    made["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    made["metadata"]["uid"] = f"00000000-0000-4000-8000-{int(name[1:]):012}"
    made["spec"]["priority"] = fields.get("priority", 0)
    rule = {"execution": REQUIRED_DURING_EXECUTION}
    return made.require_anti_affinity("host", where("app", "In", *against), **rule)


def test_one_leaves_rather_than_all_that_it_is_in_conflict_with():
    """M11: the centre of a star; it stays where it is more important than all others."""
    leaves = [apart(f"p{number}", "leaf", ["centre"]) for number in range(5)]
    centre = apart("p9", "centre", ["leaf"])
    assert swept([*leaves, centre], CONFIG) == {key_of(centre)}
    centre = apart("p9", "centre", ["leaf"], priority=1)
    assert swept([*leaves, centre], CONFIG) == set(map(key_of, leaves))


def test_in_a_large_conflict_nobody_leaves_whose_return_would_break_no_rule():
    """M11: a chain of 31, of which every second pod leaves: 15; the least important one at the end stays."""
    chain = [
        apart(f"p{number}", f"a{number}", [f"a{number - 1}", f"a{number + 1}"], priority=number)
        for number in range(31)
    ]
    gone = swept(chain, CONFIG)
    assert len(gone) == 15
    assert key_of(chain[30]) not in gone


def test_of_many_equal_pods_all_leave_but_one():
    pods = [apart(f"p{number}", "a", ["a"], priority=number) for number in range(40)]
    assert swept(pods, CONFIG) == set(map(key_of, pods[:-1]))


def with_a_settled_rule(last):
    """Two pods in conflict, the less important of which has a rule against one that leaves already.

    The other's number decides about the order in which their rules are looked at.
    """
    leaving = apart("p5", "t", ["x"]).terminating()
    return [apart("p4", "a", ["t"]), leaving, apart(last, "b", ["a"], priority=10)]


@pytest.mark.parametrize("last", ["p1", "p9"])
@pytest.mark.parametrize(("victim", "index"), [("RuleOwner", 2), ("LowestPriority", 0)])
def test_a_rule_against_one_that_leaves_already_makes_nobody_a_victim(victim, index, last):
    """M11: with the default, that is whose rule is broken; otherwise, the less important one."""
    pods = with_a_settled_rule(last)
    assert swept(pods, CONFIG | {"antiAffinityVictim": victim}) == {key_of(pods[index])}


def test_rules_against_pods_that_leave_already_bring_no_others_into_conflict():
    """M11: fourteen have such a rule in common; the choice among the few others is the best one."""
    leaving = apart("p99", "t", ["x"]).terminating()
    settled = [apart(f"p{number}", "s", ["t"]) for number in range(50, 64)]
    centre = apart("p9", "centre", ["t"]).require_anti_affinity(
        "host", where("app", "In", "leaf"), execution=REQUIRED_DURING_EXECUTION
    )
    leaves = [apart(f"p{number}", "leaf", ["centre"]) for number in range(5)]
    assert swept([leaving, *settled, centre, *leaves], CONFIG) == {key_of(centre)}


@pytest.mark.parametrize("victim", ["RuleOwner", "LowestPriority"])
def test_telling_many_victims_why_takes_one_look_at_those_who_stay(victim, monkeypatch):
    """A hundred are evicted because of a hundred others, all of which stay."""
    looked_at = []

    def counted(keys):
        looked_at.extend(keys)
        return min(looked_at)

    monkeypatch.setattr(minimal_evictions, "min", counted, raising=False)
    owners = [apart(f"p{number}", "a", ["b"], priority=1) for number in range(100)]
    others = [apart(f"p{number}", "b", ["x"]) for number in range(100, 200)]
    gone = owners if victim == "RuleOwner" else others
    assert swept([*owners, *others], CONFIG | {"antiAffinityVictim": victim}) == {
        *map(key_of, gone)
    }
    assert len(looked_at) == 100
