"""The best node in the order that affinity gives is the one that looking at all nodes finds."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from service.engine import Placement, explain, place
from service.engine.ranking import affinity_ranks, rank_cache as candidate_ranks
from service.engine.ranking.affinity_levels import AffinityLevels
from service.engine.state.nodes import topology
from service.engine.state.nodes.node_table import tie_hash
from service.engine.state.nodes.rank import TIE_BITS
from service.engine.state.nodes.tree_layout import Layout
from tests.builders import matching, node, pod
from tests.engine import objects
from tests.engine.scene import Scene
from tests.seeds import chance, examples

NODES = 9
APART = pod("apart").label(app="apart").prefer_anti_affinity(10, "host", matching(app="apart"))
TOGETHER = pod("together").label(app="together").prefer_affinity(7, "host", matching(app="apart"))
PLAIN = pod("plain").label(app="apart")
NEAR = pod("near").label(app="near").prefer_affinity(10, "host", matching(app="near"))
KINDS = (APART, TOGETHER, NEAR, PLAIN)
WITHOUT_HOST = "n8"


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """As with thousands of nodes that are asked for thousands of times."""
    monkeypatch.setattr(topology, "FEW_DOMAINS", 0)
    monkeypatch.setattr(affinity_ranks, "PASSES_BEFORE_BUILD", 2)
    monkeypatch.setattr(candidate_ranks, "PASSES_BEFORE", 0)


def host(number):
    """Two pods of each kind fill it; three of them share a host each, one has none."""
    name = f"n{number}"
    built = node(name).allocatable(cpu="6", memory="64Gi", pods="20")
    return built if name == WITHOUT_HOST else built.label(host=f"h{number % 7}")


def scene_of(count):
    return Scene(*(host(number) for number in range(count)))


def best_by_looking(engine, incoming):
    """The node of the greatest total, among equals that of the greatest tie-break for the pod."""
    tie = tie_hash(f"{incoming.namespace}/{incoming.name}")
    slots = engine.nodes.slots
    best = explain(engine, incoming).best
    return max(best, key=lambda name: engine.nodes.tie_at(slots[name]) ^ tie, default=None)


def chosen(engine, incoming):
    placement = place(engine, incoming)
    return placement.node_name if isinstance(placement, Placement) else None


def check(scene):
    for each in KINDS:
        incoming = objects.pod(each.named(f"probe-{each['metadata']['name']}"), incoming=True)
        assert chosen(scene.engine, incoming) == best_by_looking(scene.engine, incoming)


def change(scene, dice, placed):
    """A pod comes, a few go, or a node changes."""
    engine, step = scene.engine, dice.random()
    if step < 0.6 or not placed:
        manifest = dice.choice(KINDS).named(f"p{len(placed)}-{dice.random()}").request(cpu="1")
        if scene.place(manifest) is not None:
            placed.append(manifest["metadata"]["name"])
    elif step < 0.9:
        for _ in range(min(len(placed), dice.randrange(1, 4))):
            engine.delete_pod("default", placed.pop(dice.randrange(len(placed))))
    else:
        number = dice.randrange(NODES)
        scene.put(host(number).cordon() if dice.random() < 0.3 else host(number))


@settings(
    max_examples=examples(4),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32))
@pytest.mark.parametrize("levels_max", [0, 2, 128])
def test_as_pods_come_and_go(monkeypatch, levels_max, seed):
    monkeypatch.setattr(affinity_ranks, "LEVELS_MAX", levels_max)
    dice, scene, placed = chance(seed), scene_of(NODES), []
    mark, before = scene.engine.mark(), []
    for _ in range(60):
        change(scene, dice, placed)
        if dice.random() < 0.1:
            mark, before = scene.engine.mark(), list(placed)
        elif dice.random() < 0.05:
            scene.engine.undo(mark)
            placed[:] = before
        check(scene)


def orders(scene):
    (cache,) = scene.engine.cached_rows()
    return cache.affinities


def looks_at_all_nodes(scene, manifests):
    """Whether placing these asks for the sums of all nodes, which are remembered once they were asked for."""
    views = scene.engine.nodes.views
    views.forget()
    for each in manifests:
        assert scene.place(each)
    return len(views) > 0


@pytest.mark.parametrize("kind", KINDS[:3])
def test_once_the_nodes_are_in_order_no_placement_looks_at_all_of_them(monkeypatch, kind):
    """Whether pods keep away from each other or raise the greatest sum with each of them."""
    monkeypatch.setattr(affinity_ranks, "PASSES_BEFORE_BUILD", 0)
    scene = scene_of(NODES)
    for number in range(NODES - 1):
        scene.put(PLAIN.named(f"liked-{number}").on(f"n{number}"))
    scene.put(NEAR.named("first").on("n3"))
    scene.place(kind.named("second"))
    assert not looks_at_all_nodes(scene, [kind.named(f"p{number}") for number in range(7)])


def test_pods_that_gather_cost_no_look_at_all_nodes_though_many_have_one_of_them(monkeypatch):
    """Half of the nodes have one, and each placement raises the greatest sum, by which all are normalised."""
    monkeypatch.setattr(affinity_ranks, "PASSES_BEFORE_BUILD", 8)
    hosts = [f"host-{number}" for number in range(400)]
    scene = Scene(*(node(name).allocatable(cpu="64", pods="99").label(host=name) for name in hosts))
    for number in range(200):
        scene.put(NEAR.named(f"old-{number}").on(hosts[number]))
    assert looks_at_all_nodes(scene, [NEAR.named(f"first-{number}") for number in range(10)])
    assert not looks_at_all_nodes(scene, [NEAR.named(f"next-{number}") for number in range(30)])
    check(scene)
    (order,) = orders(scene)
    assert len(order.levels) == 3


def test_the_best_of_many_nodes_is_found_wherever_the_tie_break_of_the_pod_is_among_theirs():
    dice = chance(1)
    for bits in (3, 8, TIE_BITS):
        ties = np.array([dice.getrandbits(bits) << TIE_BITS - bits for _ in range(300)])
        ranks = ties | np.array([dice.randrange(3) << TIE_BITS for _ in ties])
        sums = np.array([dice.randrange(2) for _ in ties])
        ordered = AffinityLevels(Layout(None, ties), sums, ranks)
        for _ in range(100):
            tie = dice.getrandbits(TIE_BITS)
            totals = ranks + (sums << TIE_BITS)
            assert ordered.best(tie, lambda above, span: above)[1] ^ tie == (totals ^ tie).max()


def test_the_least_sum_is_that_of_feasible_nodes():
    """The node with more of the pods it likes is fuller by more than a third of that score, not by all of it."""
    scene = Scene(*(host(number).cordon() for number in range(7)), host(2), host(3))
    for number in range(3):
        scene.put(NEAR.named(f"full-{number}").request(cpu="1900m", memory="20Gi").on("n2"))
    for number in range(2):
        scene.put(NEAR.named(f"empty-{number}").on("n3"))
    for _ in range(4):
        assert chosen(scene.engine, objects.pod(NEAR, incoming=True)) == "n2"
    (order,) = orders(scene)
    assert len(order.levels) == 2
    check(scene)


def test_with_too_many_levels_all_nodes_are_looked_at(monkeypatch):
    monkeypatch.setattr(affinity_ranks, "LEVELS_MAX", 1)
    scene = scene_of(NODES)
    for number in range(12):
        scene.place(NEAR.named(f"p{number}"))
    assert looks_at_all_nodes(scene, [NEAR.named("next")])


def test_p20_the_order_counts_towards_the_bound_in_bytes(monkeypatch):
    monkeypatch.setattr(affinity_ranks, "PASSES_BEFORE_BUILD", 0)
    scene = scene_of(NODES)
    for number in range(7):
        scene.place(APART.named(f"p{number}"))
    (order,) = orders(scene)
    (cache,) = scene.engine.cached_rows()
    assert order.size_in_bytes > 0
    assert cache.size_in_bytes >= cache.ranks.nbytes + order.size_in_bytes
    assert scene.engine.cached_row_bytes == cache.size_in_bytes
