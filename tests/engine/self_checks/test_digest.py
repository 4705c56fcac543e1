"""The digest of what an engine counts: the same for the same objects, another for a wrong counter."""

import random

import pytest

from service.engine import Cluster, digest, place
from tests.builders import matching, namespace, node, pod
from tests.engine import objects

WEB = (
    pod("web")
    .label(app="web")
    .request(cpu="1")
    .host_port(80)
    .require_affinity("zone", matching(app="web"))
    .prefer_affinity(5, "host", matching(app="web"), namespaceSelector=matching(team="red"))
    .spread(3, "zone")
    .spread(2, "host", soft=True)
    .spread(2, "kubernetes.io/hostname", soft=True)
)
ALONE = (
    pod("alone", "shop")
    .label(app="alone")
    .require_anti_affinity("host", matching(app="alone"))
    .prefer_anti_affinity(3, "zone", matching(app="web"), namespaces=["default"])
)
ASKED = pod("asked").label(app="asked").require_anti_affinity("host", matching(app="web"))
NODES = [
    node(f"n{number}").label(
        {"kubernetes.io/hostname": f"n{number}", "host": f"h{number}", "zone": f"z{number % 2}"}
    )
    for number in range(4)
]
PODS = [
    *(WEB.named(f"web-{number}").on(f"n{number}") for number in range(3)),
    WEB.named("pending"),
    ALONE.named("alone-0").on("n0"),
    ALONE.named("alone-1").on("n3"),
    ALONE.named("over").on("n1").phase("Succeeded"),
    ALONE.named("lost").on("nowhere"),
]


def loaded(nodes=NODES, pods=PODS):
    return objects.cluster({}, [namespace("default").label(team="red")], nodes, pods)


def class_on(engine, name):
    return engine.class_of(engine.pod("default" if name.startswith("web") else "shop", name))


def web(engine):
    return class_on(engine, "web-0").template


def alone(engine):
    return class_on(engine, "alone-0").template


def one_more(column):
    column[0] += 1


def leave_set(engine):
    web(engine).hard_spread[0].included_nodes.leave(3)


def one_more_unready(engine):
    class_on(engine, "web-0").unready += 1


PLANTED = {
    "pods that are not ready": one_more_unready,
    "matching pods of a required term": lambda e: web(e).affinity[0].counter.add(0, 1),
    "matching pods of a preferred term": lambda e: web(e).preferred[0].counter.add(0, -1),
    "matching pods of anti-affinity": lambda e: alone(e).anti_affinity[0].counter.add(1, 1),
    "owners of required affinity": lambda e: web(e).owned[0].counter.add(2, 1),
    "owners of anti-affinity": lambda e: alone(e).owned[0].counter.add(0, -1),
    "owners of preferred anti-affinity": lambda e: alone(e).owned[1].counter.add(0, 1),
    "pods of a hard constraint": lambda e: web(e).hard_spread[0].counter.add(0, 1),
    "pods of a soft constraint": lambda e: web(e).soft_spread[0].counter.add(0, 1),
    "pods on a node itself": lambda e: web(e).soft_spread[1].counter.add(0, 1),
    "nodes of a constraint": leave_set,
    "cpu that is used": lambda e: one_more(e.nodes.requested("cpu")),
    "cpu that counts for scores": lambda e: one_more(e.nodes.scored("cpu")),
    "memory that counts for scores": lambda e: one_more(e.nodes.scored("memory")),
    "pods on a node": lambda e: one_more(e.nodes.pods),
    "a port": lambda e: e.nodes.use_ports(3, [("0.0.0.0", "TCP", 80)], 1),
    "pods of a class": lambda e: class_on(e, "web-0").nodes.update({0: 2}),
    "classes of a node": lambda e: e.classes_on(0).update({class_on(e, "web-0"): 2}),
}


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_a13_one_wrong_counter_makes_another_digest(planted):
    engine = loaded()
    planted(engine)
    assert digest(engine) != digest(loaded())


def test_a13_a_total_that_is_no_sum_makes_another_digest():
    engine = loaded()
    web(engine).affinity[0].counter.total += 1
    assert digest(engine) != digest(loaded())


@pytest.mark.parametrize("seed", range(5))
def test_a13_the_order_of_arrival_does_not_show(seed):
    dice = random.Random(seed)
    nodes, pods = dice.sample(NODES, len(NODES)), dice.sample(PODS, len(PODS))
    late = Cluster(objects.config({}))
    for each in pods:
        late.put_pod(objects.pod(each))
    for each in nodes:
        late.put_node(objects.node(each))
    late.put_namespace(objects.namespace(namespace("default").label(team="red")))
    assert digest(late) == digest(loaded(nodes, pods)) == digest(loaded())


def test_a13_what_is_gone_or_was_only_asked_about_leaves_no_trace():
    engine = loaded()
    engine.put_node(objects.node(node("n9").label(host="h9", zone="z9", rack="r1")))
    engine.put_pod(objects.pod(ASKED.request(ephemeral_storage="1Gi").on("n9")))
    engine.delete_pod("default", "asked")
    place(engine, objects.pod(ASKED.spread(1, "rack"), incoming=True))
    engine.delete_node("n9")
    mark = engine.mark()
    for each in NODES:
        engine.put_node(objects.node(each.label(zone="z5")))
    engine.delete_node("n2")
    engine.delete_pod("default", "web-0")
    assert digest(engine) != digest(loaded())
    engine.undo(mark)
    assert digest(engine) == digest(loaded())


def test_a13_other_objects_make_another_digest():
    digests = {
        digest(loaded()),
        digest(loaded(pods=PODS[:-1])),
        digest(loaded(nodes=[*NODES[:3], NODES[3].label(zone="z0")])),
        digest(loaded(nodes=[*NODES[:3], NODES[3].allocatable(cpu="9")])),
        digest(loaded(nodes=[*NODES[:3], NODES[3].cordon()])),
        digest(loaded(pods=[*PODS[:-1], PODS[-1].label(app="other")])),
    }
    assert len(digests) == 6
