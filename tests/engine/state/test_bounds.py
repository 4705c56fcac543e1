"""P20: memory does not grow with the number of different pods, only with what tells them apart."""

import itertools

import pytest

from service.engine import cluster as cluster_module
from service.engine.ranking import affinity_ranks
from service.engine.state.nodes import node_table as nodes_module, topology
from service.engine.state.nodes.counters import DirtyLog
from service.engine.state.pods import compiler as templates_module
from tests.builders import IGNORED_DURING_EXECUTION, matching, node, pod
from tests.engine.scene import Scene


def anonymous(number):
    """A pod whose only label no other pod has, as a job's or a stateful set's."""
    return pod(f"p{number}").label(serial=str(number))


def test_p20_pods_with_labels_that_no_selector_mentions_share_their_vectors():
    """50,000 such pods were 50,000 score vectors, 2 GB."""
    scene = Scene(node("n1"), node("n2"))
    for number in range(200):
        assert scene.place(anonymous(number))
    assert len(scene.engine.cached_rows()) == 1
    # Vectors go by what scheduling reads of the spec: another request is another vector.
    assert scene.place(anonymous(200).request(cpu="2m"))
    assert len(scene.engine.cached_rows()) == 2


def test_p20_vectors_are_kept_within_a_bound_in_bytes(monkeypatch):
    scene = Scene(*(node(f"n{i}") for i in range(50)))
    scene.place(pod("first"))
    (first,) = scene.engine.cached_rows()
    monkeypatch.setattr(cluster_module, "ROW_CACHE_BYTES_MAX", 5 * first.size_in_bytes)
    for number in range(1, 40):
        assert scene.place(pod(f"p{number}").request(cpu=f"{number}m"))
        caches = scene.engine.cached_rows()
        assert sum(each.size_in_bytes for each in caches) <= 5 * first.size_in_bytes
    assert len(scene.engine.cached_rows()) == 5


def test_p20_trees_in_which_the_best_node_is_found_count_towards_that_bound():
    scene = Scene(*(node(f"n{i}") for i in range(50)))
    for _ in range(20):
        scene.place(pod("asked-for-again"))
    (cache,) = scene.engine.cached_rows()
    (tree,) = cache.trees
    assert cache.size_in_bytes >= cache.ranks.nbytes + tree.size_in_bytes
    assert scene.engine.cached_row_bytes == cache.size_in_bytes


def test_p20_the_log_of_dirty_nodes_is_a_ring_and_who_is_too_far_behind_refreshes_whole():
    log = DirtyLog(limit=100)
    start = log.position
    for slot in itertools.chain(range(60), range(60)):
        log.append(slot)
    assert log.since(start) is None
    assert log.since(log.position - 3) == [57, 58, 59]
    for slot in range(10_000):
        log.append(slot)
        assert len(log) <= 100


def test_p20_a_vector_that_was_left_far_behind_is_as_good_as_new(monkeypatch):
    monkeypatch.setattr(nodes_module, "USAGE_LOG_MAX", 4)
    scene = Scene(node("n1").allocatable(cpu="4"), node("n2").allocatable(cpu="4"))
    seldom = pod("seldom").request(cpu="3")
    before = scene.feasible(seldom)
    for number in range(20):
        scene.put(pod(f"p{number}").request(cpu="100m").on("n1"))
    assert before == ["n1", "n2"]
    assert scene.place(seldom) == "n2"


@pytest.mark.parametrize("rule", ["none", "affinity", "spread"])
def test_p20_what_was_interned_for_pods_that_are_gone_is_freed(monkeypatch, rule):
    monkeypatch.setattr(templates_module, "IDLE_CLASSES_MAX", 10)
    scene = Scene(node("n1").label(zone="a"), node("n2").label(zone="b"))

    def one(number):
        made = pod(f"p{number}").label(app=f"app-{number}")
        if rule == "affinity":
            return made.require_anti_affinity("zone", matching(app=f"app-{number}"))
        return made.spread(1, "zone", matching(app=f"app-{number}")) if rule == "spread" else made

    sizes = []
    for number in range(100):
        assert scene.place(one(number))
        scene.engine.delete_pod("default", f"p{number}")
        sizes.append(scene.engine.interned().values())
    for grown in zip(*sizes, strict=True):
        assert max(grown) == max(grown[:30]) <= 11


def daemon_pod(number):
    """A pod of a DaemonSet, which names one of ten nodes."""
    field = {"key": "metadata.name", "operator": "In", "values": [f"n{number % 10}"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    built = pod(f"d{number}")
    built["spec"]["affinity"] = {"nodeAffinity": {IGNORED_DURING_EXECUTION: terms}}
    return built


def test_p20_a_daemons_pod_that_comes_again_is_of_the_class_that_it_had():
    scene = Scene(*(node(f"n{number}") for number in range(10)))
    for number in range(100):
        assert scene.place(daemon_pod(number)) == f"n{number % 10}"
        scene.engine.delete_pod("default", f"d{number}")
    assert scene.engine.interned()["classes"] == 10


def test_p20_a_key_of_large_domains_is_not_followed_node_by_node(monkeypatch):
    monkeypatch.setattr(topology, "FEW_DOMAINS", 0)
    monkeypatch.setattr(affinity_ranks, "PASSES_BEFORE_BUILD", 0)
    monkeypatch.setattr(affinity_ranks, "REPAIRS_MAX", 4)
    apart = pod("p").label(app="a").prefer_anti_affinity(10, "rack", matching(app="a"))
    scene = Scene(*(node(f"n{number}").label(rack=f"r{number % 10}") for number in range(50)))
    orders = []
    for number in range(20):
        assert scene.place(apart.named(f"p{number}"))
        (cache,) = scene.engine.cached_rows()
        orders += [each.levels for each in cache.affinities]
    assert (
        len({id(each) for each in orders}) == len(orders) == 19
    )  # none is asked for by the first pod
