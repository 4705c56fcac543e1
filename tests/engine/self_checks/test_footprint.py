"""What an engine keeps is exactly what it was, once it has forgotten what it was only asked about."""

import pytest
from hypothesis import Phase, given, settings, strategies as st

from service.engine import Cluster, GroupPlacement, explain, place, place_group
from service.engine.integrity.digest import digest
from service.engine.integrity.footprint import Footprint, footprint, total_bytes
from service.engine.preemption.search import preempt
from service.engine.state.pods import compiler as pod_class_lookup
from service.model.registry.manifests import Limits, TemplateCache, parse_pod
from tests import strategies
from tests.builders import (
    HOST,
    claim,
    claim_template,
    device,
    device_claim,
    device_class,
    matching,
    node,
    pod,
    requirement,
    resource_slice,
    storage_class,
    term,
    volume,
    where,
)
from tests.engine import objects
from tests.engine.scene import Scene
from tests.reference import admit
from tests.seeds import examples

NODES = 40
TEMPLATES = TemplateCache(
    limits=Limits(pod_terms_max=1_000, pod_topology_keys_max=1_000, pod_expressions_max=10_000)
)
CACHES = ("rows", "static rows", "views", "importance", "selected nodes", "device verdicts")
"""What is kept of rules that pods have may grow when others are asked about; it has bounds of its own."""


def scene():
    """Nodes in zones with pods on them, and all that pods of the cases name."""
    made = Scene(*(node(f"n{n}").label({HOST: f"n{n}"}, zone=f"z{n % 3}") for n in range(NODES)))
    made.put(
        *(storage_class(), claim("data"), volume("disk", node="n1")),
        *(device_class(), claim_template("gpus"), device_claim("shared")),
        *(resource_slice(f"n{n}", device("gpu-0"), device("gpu-1")) for n in range(4)),
    )
    for n in range(20):
        web = pod(f"web-{n}").label(app="web").require_anti_affinity(HOST, matching(app="web"))
        assert made.place(web.spread(3, "zone"))
    made.engine.commit_until(made.engine.mark())
    return made


def with_terms(number, count):
    built = pod(f"terms-{number}")
    terms = [term(HOST, where(f"k{number}-{n}", "NotIn", "no")) for n in range(count)]
    built["spec"]["affinity"] = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    }
    return built


def with_keys(number, count):
    built = pod(f"keys-{number}").label(app="keys")
    terms = [term(f"example.com/k{number}-{n}", matching(app="keys")) for n in range(count)]
    weighted = [{"weight": 1, "podAffinityTerm": each} for each in terms]
    built["spec"]["affinity"] = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": terms,
            "preferredDuringSchedulingIgnoredDuringExecution": weighted,
        }
    }
    return built


def asking_for(resource):
    built = pod("p").request(**{resource: "1"}, cpu="10m")
    built["spec"]["containers"][0]["resources"]["limits"] = {resource: "1"}
    return built


def falling_back(number):
    return pod(f"p{number}").spread(
        number + 1, "zone", matching(app="web"), whenUnsatisfiable="FallbackWhenFull"
    )


def parsed(manifest, *, incoming=False):
    return parse_pod(manifest, TEMPLATES, to_place=incoming).created_now(TEMPLATES).pod


CASES = {
    "terms": lambda n: with_terms(n, 300),
    "terms in all namespaces": lambda n: pod(f"p{n}").require_anti_affinity(
        HOST, where("a", "NotIn", f"{n}"), namespaceSelector={}
    ),
    "topology keys": lambda n: with_keys(n, 300),
    "topology keys of a known selector": lambda n: (
        pod(f"p{n}")
        .require_anti_affinity(f"key-{n}", matching(app="web"))
        .prefer_affinity(3, f"other-{n}", matching(app="web"))
    ),
    "labels": lambda n: pod(f"p{n}").label({f"k{n}": "v"}, app="web"),
    "requests": lambda n: asking_for(f"example.com/r{n}"),
    "tolerations": lambda n: pod(f"p{n}").tolerate(f"key-{n}"),
    "host ports": lambda n: pod(f"p{n}").host_port(8_000 + n),
    "selectors of nodes": lambda n: (
        pod(f"p{n}").node_selector(zone="z1").prefer_node(3, requirement(f"key-{n}", "Exists"))
    ),
    "spread": lambda n: (
        pod(f"p{n}").label(app=f"a{n}").spread(1, HOST).spread(1, "zone", soft=True)
    ),
    "spread of known pods": lambda n: pod(f"p{n}").spread(n + 1, HOST, matching(app="web")),
    "fallbacks": falling_back,
    "affinity by node": lambda n: pod(f"p{n}").prefer_affinity(n + 1, HOST, matching(app="web")),
    "volumes": lambda n: pod(f"p{n}").claim("data").request(cpu=f"{n + 1}m"),
    "devices": lambda n: pod(f"p{n}").devices(template="gpus").request(cpu=f"{n + 1}m"),
    "devices of a claim": lambda n: pod(f"p{n}").devices(claim="shared").request(cpu=f"{n + 1}m"),
    "no room": lambda n: pod(f"p{n}").request(cpu=f"{n + 100}"),
    "no node": lambda n: pod(f"p{n}").require_affinity(f"key-{n}", matching(app=f"{n}")),
}


def dry_run(engine: Cluster, manifest) -> None:
    """Place a pod, and undo that, as a dry run does."""
    asked, mark = parsed(manifest, incoming=True), engine.mark()
    explain(engine, asked)
    for _ in range(12):  # after some placements trees and levels are made
        placement = place(engine, asked)
    if hasattr(placement, "node_name"):
        engine.put_pod(parsed(manifest | {"spec": manifest["spec"] | {"nodeName": "n1"}}))
        place(engine, asked)
    else:
        preempt(engine, asked, ())
    engine.put_pod(asked)
    engine.undo(mark)
    engine.forget_uncommitted()


@pytest.mark.parametrize("case", CASES)
def test_p20_dry_runs_leave_nothing_that_they_brought(case):
    engine, make = scene().engine, CASES[case]
    dry_run(engine, make(50))
    before, counted = footprint(engine), digest(engine)
    for number in range(3):
        dry_run(engine, make(number))
    assert footprint(engine) == before
    assert digest(engine) == counted


def test_what_dry_runs_bring_is_there_until_they_end():
    """The footprint tells: else the test above would pass for nothing."""
    engine = scene().engine
    before = footprint(engine)
    mark = engine.mark()
    engine.put_pod(parsed(with_keys(0, 50)))
    during = footprint(engine)
    assert during["label keys"].entries == before["label keys"].entries + 50
    assert during["counters"].entries == before["counters"].entries + 100
    assert during["terms"].entries == before["terms"].entries + 100
    assert total_bytes(engine) > sum(each.bytes for each in before.values())
    engine.undo(mark)
    engine.forget_uncommitted()
    assert footprint(engine) == before


@pytest.mark.parametrize("case", CASES)
def test_pods_that_are_stored_and_deleted_leave_only_what_is_idle(case):
    engine, make = scene().engine, CASES[case]
    dry_run(engine, make(50))
    engine.forget_idle()
    before = footprint(engine)
    for number in range(3):
        stored = parsed(make(number))
        engine.put_pod(stored)
        engine.commit_until(engine.mark())
        engine.forget_uncommitted()
        place(engine, stored)
        engine.delete_pod(stored.namespace, stored.name)
        engine.commit_until(engine.mark())
        engine.forget_uncommitted()
    idle = engine.interned()["classes"] - before["classes"].entries
    assert idle >= 3, "what stored pods had is kept for pods to come"
    engine.forget_idle()
    assert footprint(engine) == before


def test_rules_of_pods_that_come_again_are_still_known():
    engine = scene().engine
    stored = parsed(pod("again").label(app="again").spread(1, HOST))
    for _ in range(3):
        engine.put_pod(stored)
        known = engine.class_of(stored)
        engine.commit_until(engine.mark())
        engine.forget_uncommitted()
        engine.delete_pod("default", "again")
        engine.commit_until(engine.mark())
        engine.forget_uncommitted()
        assert engine.class_of(stored) is known


def test_a_decision_that_is_not_settled_keeps_what_its_pods_have():
    engine = scene().engine
    stored = parsed(pod("p").label(app="p").spread(1, HOST))
    engine.put_pod(stored)
    known = engine.class_of(stored)
    engine.forget_uncommitted()
    assert engine.class_of(stored) is known
    engine.undo(0 if engine.position == 0 else engine.position - 1)
    engine.forget_uncommitted()
    assert known.is_dropped


def test_what_a_placed_pod_was_before_is_kept_with_it():
    """Pods with devices are of another class before they are placed, and with fallbacks of several."""
    for make in (CASES["devices"], CASES["fallbacks"]):
        engine = scene().engine
        asked = parsed(make(0), incoming=True)
        placement = place(engine, asked)
        engine.put_pod(parsed(make(0) | {"spec": make(0)["spec"] | {"nodeName": "n1"}}))
        known = engine.interned()["classes"]
        engine.commit_until(engine.mark())
        engine.forget_uncommitted()
        assert engine.interned()["classes"] == known, placement


def test_idle_classes_are_bounded_in_bytes(monkeypatch):
    monkeypatch.setattr(pod_class_lookup, "IDLE_BYTES_MAX", 2_000_000)
    engine = scene().engine
    before, sizes = total_bytes(engine), []
    for number in range(30):
        stored = parsed(with_terms(number, 100))
        engine.put_pod(stored)
        engine.commit_until(engine.mark())
        engine.delete_pod(stored.namespace, stored.name)
        engine.commit_until(engine.mark())
        engine.forget_uncommitted()
        sizes.append(total_bytes(engine) - before)
    assert 0 < max(sizes) == max(sizes[:10]) <= 2_500_000
    assert engine.class_of(stored).pods == 0
    assert not engine.class_of(stored).is_dropped, "the least recently used is dropped first"


def test_matchers_that_each_new_class_is_compared_with_count_more(monkeypatch):
    monkeypatch.setattr(pod_class_lookup, "IDLE_BYTES_MAX", 10 * pod_class_lookup.WIDE_WEIGHT)
    engine = scene().engine
    for number in range(30):
        stored = parsed(CASES["terms in all namespaces"](number))
        engine.put_pod(stored)
        engine.commit_until(engine.mark())
        engine.delete_pod(stored.namespace, stored.name)
        engine.commit_until(engine.mark())
    wide = [each for each in engine.matchers() if engine.is_wide(each)]
    assert 0 < len(wide) <= 10


@pytest.mark.parametrize("bound", [64 * 1024 * 1024, 20_000])
def test_a_group_is_placed_whose_classes_exceed_the_bytes_of_idle_ones(monkeypatch, bound):
    monkeypatch.setattr(pod_class_lookup, "IDLE_BYTES_MAX", bound)
    engine = Scene(*(node(f"n{n}").label(zone=f"z{n % 2}") for n in range(4))).engine
    around = [
        pod(f"p{n}").label(i=f"{n}").require_affinity("zone", matching(i=f"{(n + 1) % 6}"))
        for n in range(6)
    ]
    placed = place_group(engine, [parsed(each, incoming=True) for each in around])
    assert isinstance(placed, GroupPlacement)
    assert len(placed.placements) == 6


@settings(max_examples=examples(30), deadline=None, phases=[Phase.generate])
@given(data=st.data())
def test_any_dry_runs_leave_nothing_that_they_brought(data):
    world = data.draw(strategies.worlds())
    engine = Cluster(objects.config(data.draw(strategies.configs(world))))
    for name in strategies.NODES[:4]:
        engine.put_node(objects.node(data.draw(strategies.nodes(world, st.just(name)))))
    pods = [admit(data.draw(strategies.pods(world, f"p{n}"))) for n in range(6)]
    for manifest in pods[:2]:
        engine.put_pod(parsed(manifest))
    engine.commit_until(engine.mark())
    for manifest in pods[:2]:  # what is asked of known pods is kept
        dry_run_any(engine, manifest)
    before = interned(engine)
    for manifest in pods[1:]:
        dry_run_any(engine, manifest)
        assert interned(engine) == before
    for manifest in pods[:2]:
        engine.delete_pod(manifest["metadata"]["namespace"], manifest["metadata"]["name"])
    engine.commit_until(engine.mark())
    engine.forget_idle()
    assert not [kind for kind in interned(engine) if kind != "resources"]


def dry_run_any(engine, manifest):
    asked, mark = parsed(manifest, incoming=True), engine.mark()
    if asked.spec.scheduler_name in engine.profiles:
        explain(engine, asked)
        place(engine, asked)
    engine.put_pod(parsed(manifest))
    engine.undo(mark)
    engine.forget_uncommitted()


def interned(engine: Cluster) -> dict[str, Footprint]:
    return {kind: each for kind, each in footprint(engine).items() if kind not in CACHES}
