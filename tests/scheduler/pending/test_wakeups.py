"""Nobody is forgotten: no pod waits for a change if it would be placed when it is tried now.

The property test changes one field of one object after the other, of all that can change, and
compares the queue with dry runs. `python -m tests.scheduler.pending.test_wakeups 0 10000` tries
more clusters than the gate does.
"""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from service.engine.framework.events import NODE_FACTS, POD_FACTS, Change
from service.engine.profiles.registry import known_plugins
from service.model.nodes.node import Node
from service.model.pods.pod import Pod, PodSpec
from service.model.pods.pod_group import POD_GROUP_LABEL
from service.model.registry.manifests import PodManifest, parse_any
from service.scheduler.pending.equivalence_classes import State
from service.scheduler.protocol.pending_attempts import Attempts
from service.scheduler.replica.stored_kinds import GroupReservation, MoveReservation
from tests.builders import HOST, claim, matching, namespace, node, pod, storage_class, volume
from tests.scheduler.pending.mutations import Manifest, Scene
from tests.scheduler.pending.shop import LIMITS, Shop
from tests.scheduler.world import START, encoded, kinded
from tests.seeds import EXPLORING, NUMBER, examples

SEEDS, PARTS = 200, 4
CHANGES = 6
"""How many changes a random cluster goes through."""
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


# The property


def forgotten(shop: Shop) -> list[str]:
    """The waiting pods that nothing has woken, and that would be placed if they were tried now."""
    starving, answer = shop.queue.starving, []
    for equivalence in shop.queue.equivalences():
        if equivalence.state is not State.UNSCHEDULABLE:
            continue
        orders = equivalence.members.values()
        for order in {min(orders), max(orders)}:
            attempts = Attempts(
                tries=(order[2:],),
                starving=starving[2:] if starving else None,
                behind=int(starving is not None and order <= starving),
            )
            if shop.dry_run(attempts).placed:
                reasons = equivalence.refused.reasons if equivalence.refused else {}
                answer.append(f"{order[3]} waits because of {reasons}")
    return answer


def put(shop: Shop, manifest: Manifest) -> None:
    """Store an object, of clients or of the server itself."""
    if manifest["kind"] == MoveReservation.kind:
        moved = parse_any(encoded(kinded(manifest["pod"])), shop.templates)
        assert isinstance(moved, PodManifest)
        reservation = MoveReservation(
            pod=moved,
            node_name=manifest["node"],
            plan="p",
            plan_uid="u",
            since=START,
            came_to=manifest["came to"] or "",
        )
        shop.replica.put(reservation)
        shop.replica.settle_all()
    elif manifest["kind"] == GroupReservation.kind:
        reserve(shop, *manifest["key"], manifest["node"])
    else:
        shop.put(manifest)


def reserve(shop: Shop, namespace_name: str, name: str, node_name: str) -> None:
    """Reserve a node for a pod of a split group."""
    reservation = GroupReservation(
        namespace=namespace_name,
        name=name,
        pod_uid=f"u-{name}",
        node_name=node_name,
        group="g",
        home="here",
        until=START,
    )
    shop.replica.put(reservation)
    shop.replica.settle_all()


def delete(shop: Shop, kind: str, namespace_name: str, name: str) -> None:
    if shop.replica.get(kind, namespace_name, name) is None:
        return
    shop.replica.delete(kind, namespace_name, name)
    if kind == PodManifest.kind:
        shop.replica.end_reservation((namespace_name, name))
    shop.replica.settle_all()


def settle(shop: Shop, scene: Scene) -> None:
    """Let the queue place what it can, back-off and all."""
    for _ in range(8):
        shop.now += 20.0
        shop.work()
    for key, thing in list(scene.things.items()):
        if thing.role == "waiting":
            stored = shop.replica.pod(*key[1:])
            assert stored is not None
            if stored.pod.node_name is not None:
                scene.placed(key, stored.pod.node_name)


def starve(shop: Shop, scene: Scene) -> None:
    """Have pods refused until the first of them starves; then others come."""
    for number in range(LIMITS.pending_failures_max + 1):
        for key, thing in scene.things.items():
            if key[0] == "Node":
                manifest = thing.manifest
                manifest["status"]["allocatable"]["memory"] = str(number + 1)
                shop.put(manifest)
        settle(shop, scene)
    for manifest in scene.late():
        shop.put(manifest)
    settle(shop, scene)


def first_forgotten(seed: int) -> str | None:
    """What a random cluster's queue forgets first, or None."""
    scene = Scene(seed)
    shop = Shop(scene.config)
    for manifest in scene.start():
        put(shop, manifest)
    settle(shop, scene)
    if "starvation" in scene.features:
        starve(shop, scene)
    for _ in range(CHANGES):
        key, changed = scene.next()
        if changed is None:
            delete(shop, *key)
        else:
            put(shop, changed)
        if missed := forgotten(shop):
            return f"{sorted(scene.features)}: {scene.changed}: {missed}"
        settle(shop, scene)
    return None


@pytest.mark.parametrize("part", range(PARTS))
def test_no_pod_is_forgotten_whatever_field_of_whatever_object_changes(part: int):
    first = NUMBER * 1_000_000 if EXPLORING else 0
    found = {
        seed: first_forgotten(seed) for seed in range(first + part, first + examples(SEEDS), PARTS)
    }
    assert {seed: missed for seed, missed in found.items() if missed} == {}


# What the property test, or others, once found


def waits(shop: Shop, name: str = "w") -> bool:
    return ("default", name) in shop.waiting()


def is_placed_after(shop: Shop, change: Callable[[], Any]) -> bool:
    """Whether the pod w waits, until a change has it placed."""
    shop.work()
    assert waits(shop)
    change()
    shop.work()
    return not waits(shop)


def with_nominated(waiting: Any, nominated: Any) -> Shop:
    """A cluster where a pod waits for room that is kept for another one, which has to wait."""
    shop = Shop()
    shop.put(node("n").label({HOST: "n"}).allocatable(cpu="2"))
    shop.put(gated(nominated.priority(10)).nominated("n"), waiting)
    return shop


def gated(manifest: Any) -> Any:
    """A copy of a pod that has to wait for a gate to be removed."""
    return type(manifest)(
        manifest | {"spec": manifest["spec"] | {"schedulingGates": [{"name": "g"}]}}
    )


NOMINATIONS: dict[str, tuple[Any, Any, Any]] = {
    "asks for less": (
        pod("w").request(cpu="1"),
        pod("v").request(cpu="2"),
        pod("v").request(cpu="1").priority(10),
    ),
    "falls in priority": (
        pod("w").request(cpu="1").priority(5),
        pod("v").request(cpu="2"),
        pod("v").request(cpu="2").priority(1),
    ),
    "is relabeled": (
        pod("w").require_anti_affinity(HOST, matching(app="b")),
        pod("v").label(app="b"),
        pod("v").label(app="x").priority(10),
    ),
    "takes another port": (
        pod("w").host_port(80),
        pod("v").host_port(80),
        pod("v").host_port(81).priority(10),
    ),
    "no longer repels": (
        pod("w").label(app="b"),
        pod("v").require_anti_affinity(HOST, matching(app="b")),
        pod("v").priority(10),
    ),
}


@pytest.mark.parametrize("change", NOMINATIONS)
def test_a_pod_is_woken_when_a_nominated_pod(change: str):
    waiting, nominated, changed = NOMINATIONS[change]
    shop = with_nominated(waiting, nominated)
    assert is_placed_after(shop, lambda: shop.put(gated(changed).nominated("n")))


def test_a_group_is_woken_when_a_nominated_pod_asks_for_less():
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"minMember": 2},
    }
    member = pod("w").label({POD_GROUP_LABEL: "g"}).request(cpu="1")
    shop = with_nominated(member, pod("v").request(cpu="2"))
    shop.put(group, member.named("x"))
    changed = gated(pod("v").request(cpu="0").priority(10)).nominated("n")
    assert is_placed_after(shop, lambda: shop.put(changed))


def with_starving() -> Shop:
    """A cluster with one node, kept for the pod big, so that the pod w waits."""
    shop = Shop()
    shop.put(node("n").allocatable(cpu="4"), pod("r").request(cpu="1").on("n"))
    shop.put(pod("big").request(cpu="4").priority(10))
    for number in range(LIMITS.pending_failures_max + 1):
        shop.work()
        shop.now += 20.0
        shop.put(node("n").allocatable(cpu="4", memory=f"{64 + number}Gi"))
    shop.work()
    shop.put(pod("w").request(cpu="1"))
    shop.work()
    assert shop.queue.starving is not None
    return shop


BIG = pod("big").request(cpu="4").priority(10)
STARVING: dict[str, Callable[[Shop], Any]] = {
    "is deleted": lambda shop: shop.delete("Pod", "big"),
    "asks for less": lambda shop: shop.put(pod("big").request(cpu="2").priority(10)),
    "wants another node": lambda shop: shop.put(BIG.node_selector(x="y")),
    "falls behind in priority": lambda shop: shop.put(BIG.priority(-5)),
    "is being deleted": lambda shop: shop.put(BIG.terminating()),
    "has ended": lambda shop: shop.put(BIG.phase("Failed")),
    "is gated": lambda shop: shop.put(gated(BIG)),
    "asks for another scheduler": lambda shop: shop.put(BIG.scheduler_name("other")),
    "is placed elsewhere": lambda shop: shop.put(node("m"), BIG.on("m")),
    "could go to another node": lambda shop: shop.put(
        node("m").allocatable(cpu="5"), pod("s").request(cpu="2").on("m").priority(1)
    ),
}


@pytest.mark.parametrize("change", STARVING)
def test_a_pod_is_woken_when_the_starving_pod(change: str):
    shop = with_starving()
    assert is_placed_after(shop, lambda: STARVING[change](shop))


def test_a_pod_refused_because_of_a_starving_pod_that_goes_meanwhile_is_woken():
    shop = with_starving()
    shop.put(pod("late").label(own="late").request(cpu="1"))
    attempts = shop.take()
    assert attempts.tries == (("default", "late"),)
    assert attempts.starving == ("default", "big")
    answer = shop.decide(attempts)
    shop.delete("Pod", "big")
    shop.queue.conclude(attempts, answer.refused, shop.now)
    shop.work()
    assert not waits(shop, "late")


def test_a_pod_behind_the_starving_pod_waits_on_while_nothing_changes():
    shop = with_starving()
    shop.now += 20.0
    shop.work()
    assert waits(shop)
    assert waits(shop, "big")


def with_claim(mode: str, **settings: Any) -> Shop:
    """A cluster of two nodes in which the pods a and w use one claim."""
    bound = claim("d", accessModes=[mode], volumeName="v")
    bound["metadata"]["annotations"] = BOUND
    shop = Shop(settings)
    shop.put(node("n"), node("m"), storage_class(), bound)
    reference = {"namespace": "default", "name": "d"}
    shop.put(volume("v", accessModes=[mode], hostPath={"path": "/x"}, claimRef=reference))
    shop.put(pod("a").claim("d").on("n"), pod("w").claim("d"))
    return shop


@pytest.mark.parametrize("settings", [{}, {"deletedNodePods": "Keep"}], ids=["default", "Keep"])
def test_a_pod_is_woken_when_the_node_of_an_exclusive_claims_user_goes(settings: Any):
    shop = with_claim("ReadWriteOncePod", **settings)
    assert is_placed_after(shop, lambda: shop.delete("Node", "n"))


def test_a_pod_is_woken_when_the_user_of_an_exclusive_claim_drops_it():
    shop = with_claim("ReadWriteOncePod")
    assert is_placed_after(shop, lambda: shop.put(pod("a").on("n")))


def test_a_pod_is_woken_when_a_placed_pod_drops_a_volume_that_counts_towards_a_limit():
    shop = Shop()
    driver = {"name": "x.csi.io", "nodeID": "n", "allocatable": {"count": 1}}
    csi_node = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode"}
    shop.put(node("n"), csi_node | {"metadata": {"name": "n"}, "spec": {"drivers": [driver]}})
    shop.put(storage_class(provisioner="x.csi.io"))
    for name in ("d", "e"):
        bound = claim(name, volumeName=name)
        bound["metadata"]["annotations"] = BOUND
        shop.put(bound, volume(name, csi={"driver": "x.csi.io", "volumeHandle": name}))
    shop.put(pod("a").claim("e").on("n"), pod("w").claim("d"))
    assert is_placed_after(shop, lambda: shop.put(pod("a").on("n")))


def test_a_pod_that_was_denied_is_woken_when_namespaces_change_so_that_it_is_allowed():
    absent = {"matchExpressions": [{"key": "t", "operator": "DoesNotExist"}]}
    shop = Shop()
    shop.put(namespace("esc").label(t="1"), node("n").label(zone="a"))
    shop.delete("Namespace", "esc")
    shop.put(pod("w").require_anti_affinity("zone", matching(app="q"), namespaceSelector=absent))
    assert is_placed_after(shop, lambda: shop.put(namespace("esc").label(t="1")))


def test_a_pod_whose_affinity_exempts_the_first_is_woken_when_its_sibling_gets_another_owner():
    exempt = pod("w").require_affinity("zone", matching(app="db"), firstPodExempt=True)
    shop = Shop()
    shop.put(node("n").label(zone="a"))
    shop.put(exempt.named("c0").owned_by("ReplicaSet", "cache").on("n"))
    shop.put(exempt.owned_by("ReplicaSet", "cache"))
    other = exempt.named("c0").owned_by("ReplicaSet", "other").on("n")
    assert is_placed_after(shop, lambda: shop.put(other))


@pytest.mark.parametrize("reserved_first", [False, True])
@pytest.mark.parametrize("pod_goes", [False, True])
def test_a_pod_is_woken_when_the_node_reserved_for_a_split_group_is_given_up(
    *, pod_goes: bool, reserved_first: bool
):
    reserved = pod("s").request(cpu="8")
    reserved["metadata"]["uid"] = "u-s"
    shop = Shop()
    shop.put(node("n"))
    if reserved_first:
        reserve(shop, "default", "s", "n")
        shop.put(reserved)
    else:
        shop.put(reserved)
        reserve(shop, "default", "s", "n")
    shop.put(pod("w").request(cpu="1").priority(9))
    kind = "Pod" if pod_goes else GroupReservation.kind
    assert is_placed_after(shop, lambda: delete(shop, kind, "default", "s"))


def test_a_pod_does_not_wait_with_an_equal_pod_for_which_a_node_is_reserved():
    reserved = pod("s")
    reserved["metadata"]["uid"] = "u-s"
    shop = Shop()
    shop.put(reserved, pod("w"))
    reserve(shop, "default", "s", "n")
    shop.put(node("n"))
    shop.work()
    assert shop.waiting() == {("default", "s")}


def test_a_pod_is_woken_when_the_room_of_a_moved_pod_is_kept_on_another_node():
    moved: Manifest = {"kind": MoveReservation.kind, "key": ("default", "m"), "came to": None}
    moved["pod"] = pod("m").request(cpu="8").on("n")
    shop = Shop()
    shop.put(node("n"), node("m").cordon())
    put(shop, moved | {"node": "n"})
    shop.put(pod("w").request(cpu="1"))
    assert is_placed_after(shop, lambda: put(shop, moved | {"node": "m"}))


# What verdicts read

UNREAD = {
    Node: {
        "name": "never changes",
        "images": "only scores read it",
        "uid": "no filter reads it",
        "ready": "taints say so to filters",
        "conditions": "taints say so to filters",
    },
    Pod: {
        "namespace": "never changes",
        "name": "never changes",
        "uid": "no filter reads it of placed pods",
        "node_name": "a pod on another node leaves one and comes to the other",
        "required_node_name": "only waiting pods have it",
        "finished": "a pod that has ended leaves its node",
        "created": "only orders pods",
        "started": "only orders pods",
        "nominated_node_name": "only waiting pods have it",
        "preempted": "only preemption reads it",
        "starting": "only disruption budgets read it",
        "unready": "only disruption budgets read it",
        "device_claims": "the claims themselves say which devices are taken",
    },
    PodSpec: {
        "node_selector": "about the pod's own node",
        "tolerations": "about the pod's own node",
        "topology_spread_constraints": "about the pod itself, not about others",
        "connections": "only scores read it",
        "data_affinity": "about the pod's own node",
        "host_network": "about the features of the pod's own node",
        "host_users": "about the features of the pod's own node",
        "scheduling_gates": "only waiting pods have them",
        "scheduler_name": "about the pod itself",
        "priority": "only preemption reads it of placed pods",
        "priority_class_name": "gives the priority",
        "preemption_policy": "about the pod itself",
        "runtime_class_name": "read at admission",
        "active_deadline_seconds": "only quotas read it",
        "resource_claims": "the claims themselves say which devices are taken",
    },
}
"""Why the change of a field of a node or placed pod helps no waiting pod."""


def test_every_field_is_read_or_not_for_a_reason():
    read = {
        Node: {field for fields in NODE_FACTS.values() for field in fields},
        Pod: {field for fact in POD_FACTS for field in fact.fields},
        PodSpec: {field for fact in POD_FACTS for field in fact.spec_fields},
    }
    for kind, fields in read.items():
        assert not fields & UNREAD[kind].keys()
        assert fields | UNREAD[kind].keys() == set(kind.__struct_fields__)


def test_every_fact_is_read_by_a_plugin():
    listened = {change for plugin in known_plugins().values() for change in plugin.events}
    assert {fact.change for fact in POD_FACTS} | NODE_FACTS.keys() <= listened
    assert len({fact.change for fact in POD_FACTS}) == len(POD_FACTS)


def test_whoever_reads_a_fact_about_placed_pods_sees_pods_leave():
    facts = {fact.change for fact in POD_FACTS}
    for plugin in known_plugins().values():
        if plugin.events & facts:
            assert Change.POD_LEFT in plugin.events, plugin.name


if __name__ == "__main__":
    for number in range(int(sys.argv[1]), int(sys.argv[2])):
        if found := first_forgotten(number):
            print(number, found, flush=True)
