"""A recount finds nothing in an engine that only followed changes, and names each part that is wrong."""

import random

import pytest

from service.engine import place
from service.engine.integrity.recount import PARTS, Mistake, recount_in_steps
from service.engine.state.nodes.rank import VETO
from tests.builders import matching, namespace, node, pod
from tests.engine import objects
from tests.engine.self_checks.test_digest import (
    ALONE,
    NODES,
    PODS,
    WEB,
    alone,
    class_on,
    leave_set,
    loaded,
    one_more,
    one_more_unready,
    web,
)

PLAIN = pod("plain").request(cpu="100m")
AFFINE = pod("affine").label(app="affine").prefer_affinity(3, "host", matching(app="affine"))


MORE = [
    node(f"m{number}").label(
        {"kubernetes.io/hostname": f"m{number}", "host": f"m{number}", "zone": "z2"}
    )
    for number in range(40)
]
"""So many that a hostname is no key of few domains."""


class Stored:
    """The objects that an engine is to count."""

    def __init__(self, engine):
        self.pods = {(each.namespace, each.name): each for each in engine.pods()}

    def get(self, namespace, name):
        return self.pods.get((namespace, name))


def several():
    return loaded([*NODES, *MORE])


def recount(engine, stored=None):
    stored = stored or Stored(engine)
    return [each for each in recount_in_steps(engine, stored.get, lambda: len(stored.pods)) if each]


def used(engine):
    """Place pods of several kinds, so that ranks, trees, levels and views are kept."""
    for number in range(12):
        for each in (PLAIN, AFFINE, WEB, ALONE):
            made = each.named(f"{each['metadata']['name']}-{number}")
            found = place(engine, objects.pod(made, incoming=True))
            if each in (PLAIN, AFFINE):
                engine.put_pod(objects.pod(made.on(found.node_name)))
    return engine


def rows_of(engine, what):
    return next(each for each in engine.cached_rows() if getattr(each, what))


def test_everything_is_right_in_an_engine_that_followed_changes():
    engine = used(several())
    assert any(each.trees for each in engine.cached_rows())
    assert any(each.affinities for each in engine.cached_rows())
    assert len(engine.nodes.views)
    assert recount(engine) == []
    dice = random.Random(7)
    for number in range(200):
        match dice.randrange(5):
            case 0:
                engine.put_node(objects.node(dice.choice(NODES).label(disk=f"d{number % 3}")))
            case 1 | 2:
                found = place(engine, objects.pod(PLAIN.named("next"), incoming=True))
                engine.put_pod(
                    objects.pod(
                        PLAIN.named(f"p-{number % 40}").on(getattr(found, "node_name", "n1"))
                    )
                )
            case 3:
                keys = [(each.namespace, each.name) for each in engine.pods()]
                engine.delete_pod(*dice.choice(keys))
            case 4:
                each = dice.choice(PODS)
                engine.put_pod(objects.pod(each))
        if number % 20 == 0:
            used(engine)
        assert recount(engine) == [], number
    engine.delete_node("n2")
    engine.put_namespace(objects.namespace(namespace("default").label(team="blue")))
    assert recount(engine) == []


def shrink(engine):
    engine.nodes.allocatable("memory")[1] = 7


def mask_of_views(engine):
    one_more(next(view for view in engine.nodes.views.cached()).values())


def stale_tree(engine, rows=None):
    """Leave a tree as it was when no node was feasible, as if no change since had reached it."""
    rows = rows or rows_of(engine, "trees")
    rows.refresh()
    kept = rows.ranks.copy()
    rows.ranks[:] = VETO
    for slot in range(len(kept)):
        rows.trees[0].repair(slot)
    rows.ranks[:] = kept


def wrong_rank(engine):
    rows = engine.cached_rows()[-1]
    rows.refresh()
    one_more(rows.ranks)


def stale_levels(engine):
    levels = rows_of(engine, "affinities").affinities[-1].levels
    levels.move(0, 77, int(engine.nodes.tie[0]))


PLANTED = {
    "matching pods of a required term": ("counter", lambda e: web(e).affinity[0].counter.add(0, 1)),
    "matching pods of a preferred term": (
        "counter",
        lambda e: web(e).preferred[0].counter.add(0, -1),
    ),
    "matching pods of anti-affinity": (
        "counter",
        lambda e: alone(e).anti_affinity[0].counter.add(1, 1),
    ),
    "owners of required affinity": ("counter", lambda e: web(e).owned[0].counter.add(2, 1)),
    "owners of anti-affinity": ("counter", lambda e: alone(e).owned[0].counter.add(0, -1)),
    "pods of a hard constraint": ("counter", lambda e: web(e).hard_spread[0].counter.add(0, 1)),
    "pods of a soft constraint": ("counter", lambda e: web(e).soft_spread[0].counter.add(0, 1)),
    "nodes of a constraint": ("node set", leave_set),
    "cpu that is used": ("node", lambda e: one_more(e.nodes.requested("cpu"))),
    "cpu that scores see": ("node", lambda e: one_more(e.nodes.scored("cpu"))),
    "pods of a node": ("node", lambda e: one_more(e.nodes.pods)),
    "what a node has": ("node", shrink),
    "how many pods a node takes": ("node", lambda e: one_more(e.nodes.allowed_pods)),
    "a cordon": ("node", lambda e: one_more(e.nodes.unschedulable)),
    "the zone of a node": ("node", lambda e: e.nodes.key("zone").enter(0, "z9")),
    "a host port": ("node", lambda e: e.nodes.use_ports(0, [("0.0.0.0", "TCP", 81)], 1)),
    "where a class is": ("node", lambda e: class_on(e, "web-0").nodes.update({3: 1})),
    "pods that are not ready": ("pod", one_more_unready),
    "ranks": ("ranks", wrong_rank),
    "a tree": ("tree", stale_tree),
    "levels": ("levels", stale_levels),
    "a view": ("view", mask_of_views),
}


@pytest.mark.parametrize("what", PLANTED)
def test_each_mistake_is_found_and_names_its_part(what):
    part, plant = PLANTED[what]
    engine = used(several())
    plant(engine)
    found = recount(engine)
    assert part in {each.part for each in found}, found
    assert all(isinstance(each, Mistake) and each.part in PARTS and each.detail for each in found)


def test_pods_that_are_not_the_stored_ones_are_found():
    engine = several()
    stored = Stored(engine)
    stored.pods["default", "web-0"] = objects.pod(WEB.named("web-0").on("n0"))  # equal, another one
    assert {each.part for each in recount(engine, stored)} == {"pod"}
    stored = Stored(engine)
    del stored.pods["default", "pending"]
    assert {each.part for each in recount(engine, stored)} == {"pod"}


def test_the_cluster_may_change_between_steps():
    """A recount that sees one half of a counter before a change and the other after it finds nothing."""
    engine = used(several())
    stored = Stored(engine)
    steps = recount_in_steps(engine, engine.pod, lambda: engine.pod_count)
    for number, step in enumerate(steps):
        assert step is None, number
        each = WEB.named(f"new-{number % 5}").on(f"n{number % 4}")
        engine.put_pod(objects.pod(each))
        if number % 3 == 0:
            engine.put_node(objects.node(node("n9").label(host="h9", zone=f"z{number % 2}")))
            used(engine)
    assert len(stored.pods) < engine.pod_count
