"""Whom one sweep evicts for anti-affinity, against choosing one victim at a time from scratch."""

from datetime import timedelta

import pytest
from hypothesis import given, settings, strategies as st

from service.model.manifest import TemplateCache, parse_any
from service.scheduler.decide import decide
from service.scheduler.decide.context import DecisionContext
from service.scheduler.protocol.intents import EvictViolating, PatchConfig
from service.scheduler.protocol.limits import Limits
from service.scheduler.replica.replica import Replica
from tests.builders import REQUIRED_DURING_EXECUTION, matching, node, pod
from tests.reference.cluster import ReferenceCluster
from tests.reference.violations import violations
from tests.scheduler.world import START, CountedIds, encoded, kinded
from tests.seeds import examples

APPS = ("a", "b", "c")
NODES = [node(f"n{i}").label(host=f"n{i}", zone=f"z{i % 2}") for i in range(3)]


@st.composite
def placed_pods(draw, name):
    """A pod somewhere, with a rule against pods of some label or without one."""
    made = pod(name, draw(st.sampled_from(("default", "default", "kube-system"))))
    made = made.label(app=draw(st.sampled_from(APPS))).on(draw(st.sampled_from(("n0", "n1", "n2"))))
    for _ in range(draw(st.integers(0, 2))):
        made = made.require_anti_affinity(
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


def chosen(pods, config):
    """One victim at a time; everything is worked out anew without those that go."""
    left = {key_of(each): each for each in pods}
    gone = set()
    while True:
        staying = {k: p for k, p in left.items() if "deletionTimestamp" not in p["metadata"]}
        in_conflict = conflict(staying, config)
        if not in_conflict:
            return gone
        victim = min(sorted(in_conflict), key=lambda key: importance(left[key]))
        gone.add(victim)
        del left[victim]


def conflict(staying, config):
    objects = [("Node", each) for each in NODES] + [("Pod", each) for each in staying.values()]
    found = violations(ReferenceCluster(config, objects).view())
    anybody = config["antiAffinityVictim"] == "LowestPriority"
    owned = [each for each in found if each.namespace != "kube-system"]
    return {key for each in owned for key in [each[:2], *(each.conflicts if anybody else ())]}


def importance(manifest):
    """The least first: low priority, then young."""
    age = int(manifest["metadata"]["creationTimestamp"][-2])
    return manifest["spec"]["priority"], -age


def key_of(manifest):
    return manifest["metadata"]["namespace"], manifest["metadata"]["name"]


@pytest.mark.parametrize("victim", ["RuleOwner", "LowestPriority"])
def test_one_sweep_chooses_as_one_at_a_time_would(victim):
    config = {"antiAffinityVictim": victim, "evictionsPerMinute": 1000}

    @settings(max_examples=examples(150), deadline=None)
    @given(st.tuples(*(placed_pods(f"p{i}") for i in range(7))))
    def holds(pods):
        assert swept(pods, config) == chosen(pods, config)

    holds()
