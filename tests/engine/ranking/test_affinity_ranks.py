"""The best node in the order that affinity gives is the one that looking at all nodes finds."""

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from service.engine import Placement, explain, place
from service.engine.ranking import affinity_ranks, outliers, rank_cache
from service.engine.state import topology
from service.engine.state.ranks import tie_hash
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
    monkeypatch.setattr(affinity_ranks, "PATIENCE", 2)
    monkeypatch.setattr(affinity_ranks, "PATIENCE_MAX", 2)
    monkeypatch.setattr(rank_cache, "PASSES_BEFORE", 0)


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
    max_examples=examples(10),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32))
@pytest.mark.parametrize("outliers_max", [0, 2, 64])
def test_as_pods_come_and_go(monkeypatch, outliers_max, seed):
    monkeypatch.setattr(outliers, "OUTLIERS_MAX", outliers_max)
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
    (cache,) = scene.engine.kept_rows()
    return cache.affinities


def test_the_order_is_kept_as_long_as_the_bounds_stay(monkeypatch):
    monkeypatch.setattr(affinity_ranks, "PATIENCE", 0)
    scene = scene_of(NODES)
    orders_seen = set()
    for number in range(7):
        assert scene.place(APART.named(f"p{number}"))
        orders_seen |= {id(each.best_node_tree) for each in orders(scene)}
    assert orders(scene)[-1].best_node_tree is not None
    assert len(orders_seen - {id(None)}) == 1


def test_few_nodes_with_another_sum_are_looked_at_alone(monkeypatch):
    scene = scene_of(NODES)
    for number in range(6):
        scene.place(NEAR.named(f"p{number}"))
    (order,) = orders(scene)
    (outlier,) = order.outliers
    assert scene.place(NEAR.named("next")) == scene.engine.nodes.nodes[outlier].name
    assert order.passes == affinity_ranks.SEEN_AGAIN


def test_the_sum_of_most_nodes_is_not_the_least_where_none_of_them_is_feasible(monkeypatch):
    """The node with more of the pods it likes is fuller by more than a third of that score, not by all of it."""
    monkeypatch.setattr(affinity_ranks, "PATIENCE", 100)
    scene = Scene(*(host(number).cordon() for number in range(7)), host(2), host(3))
    for number in range(3):
        scene.put(NEAR.named(f"full-{number}").request(cpu="1900m", memory="20Gi").on("n2"))
    for number in range(2):
        scene.put(NEAR.named(f"empty-{number}").on("n3"))
    for _ in range(4):
        assert chosen(scene.engine, objects.pod(NEAR, incoming=True)) == "n2"
    (order,) = orders(scene)
    assert sorted(order.outliers) == [2, 3]
    check(scene)


def test_bounds_that_never_last_are_looked_at_ever_more_seldom(monkeypatch):
    monkeypatch.setattr(outliers, "OUTLIERS_MAX", 0)
    monkeypatch.setattr(affinity_ranks, "PATIENCE_MAX", 4_096)
    scene = scene_of(NODES)
    for number in range(12):
        scene.place(NEAR.named(f"p{number}"))
    (order,) = orders(scene)
    assert order.best_node_tree is None
    assert order.patience >= 4


def test_p20_the_order_counts_towards_the_bound_in_bytes(monkeypatch):
    monkeypatch.setattr(affinity_ranks, "PATIENCE", 0)
    scene = scene_of(NODES)
    for number in range(7):
        scene.place(APART.named(f"p{number}"))
    (order,) = orders(scene)
    (cache,) = scene.engine.kept_rows()
    assert order.size_in_bytes > 0
    assert cache.size_in_bytes >= cache.ranks.nbytes + order.size_in_bytes
    assert scene.engine.kept_rows_bytes == cache.size_in_bytes
