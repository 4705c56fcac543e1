"""The pending queue alone: it loses no pod, and leaves none waiting that fits somewhere."""

from typing import Any

import msgspec
import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from service.engine import Refusal, place
from service.model.pods.annotated_rules import ANNOTATION
from service.model.pods.pod_group import POD_GROUP_LABEL
from service.model.registry.manifests import PodManifest
from service.scheduler.pending.equivalence_classes import State
from service.scheduler.pending.queue import SUSPECTS_AFTER_SECONDS, PendingQueue
from service.scheduler.protocol.answers import PendingAnswer
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.pending_attempts import Attempts
from tests import strategies
from tests.builders import (
    IGNORED_DURING_EXECUTION,
    claim,
    matching,
    namespace,
    node,
    pod,
    service,
    storage_class,
    volume,
)
from tests.scheduler.pending.shop import LIMITS, Shop
from tests.seeds import examples


def small(name: str) -> Any:
    """A pod of a class of its own."""
    return pod(name).label(own=name)


def tries(shop: Shop) -> list[str]:
    return [name for _, name in shop.take().tries]


def states(shop: Shop) -> dict[str, int]:
    return {state: pods for state, pods in shop.queue.counts().items() if pods}


def test_pods_leave_in_the_order_of_priority_age_and_name():
    shop = Shop()
    for name, priority, second in (("d", 0, 1), ("b", 0, 0), ("c", 0, 0), ("a", 7, 5)):
        each = small(name)
        each["spec"]["priority"] = priority
        each["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{second}Z"
        shop.put(each)
    attempts = shop.queue.take(10, 0.0)
    assert [name for _, name in attempts.tries] == ["a", "b", "c", "d"]


def test_pods_that_may_have_killed_a_worker_are_tried_last_and_alone():
    suspects = {"b", "c"}
    shop = Shop()
    shop.queue = PendingQueue(LIMITS, lambda manifest: manifest.name in suspects)
    shop.replica.on_committed = shop.queue.observe
    for name, priority in (("a", 0), ("b", 100), ("c", 50), ("d", -100)):
        each = small(name)
        each["spec"]["priority"] = priority
        shop.put(each)
    taken = []
    while (attempts := shop.take()).tries:
        taken.append([name for _, name in attempts.tries])
        shop.queue.conclude(attempts, shop.decide(attempts).refused, shop.now)
    assert taken == [["a", "d"]]
    shop.now += SUSPECTS_AFTER_SECONDS
    while (attempts := shop.take()).tries:
        taken.append([name for _, name in attempts.tries])
        shop.queue.conclude(attempts, shop.decide(attempts).refused, shop.now)
    assert taken == [["a", "d"], ["b"], ["c"]]


def test_a_pod_becomes_a_suspect_while_it_waits():
    suspects: set[str] = set()
    shop = Shop()
    shop.queue = PendingQueue(LIMITS, lambda manifest: manifest.name in suspects)
    shop.replica.on_committed = shop.queue.observe
    shop.put(small("a"), small("b"))
    suspects.add("a")
    shop.queue.sort_anew()
    assert tries(shop) == ["b"]


def test_a_class_of_priority_counts_and_changes_with_the_configuration():
    shop = Shop({"priorityClasses": {"gold": 5}})
    gold = small("z")
    gold["spec"]["priorityClassName"] = "gold"
    shop.put(small("a"), gold)
    shop.configure({"priorityClasses": {"gold": -5}})
    assert tries(shop) == ["a", "z"]


def test_a_equivalence_goes_on_without_its_first_pod():
    shop = Shop()
    shop.put(pod("a"), pod("b"))
    shop.delete("Pod", "a")
    assert tries(shop) == ["b"]


def test_what_is_being_tried_is_not_given_out_again():
    shop = Shop()
    shop.put(small("a"), small("b"), small("c"), small("d"))
    attempts = shop.take()
    assert len(attempts.tries) == 3
    with pytest.raises(AssertionError):
        shop.take()
    shop.queue.give_back(attempts, 0.0)
    assert shop.queue.take(9, 0.0).tries[:3] == attempts.tries


def test_back_off_begins_with_the_second_refusal_and_doubles_to_ten_seconds():
    shop = Shop()
    shop.put(node("n").cordon(), pod("p"))
    shop.work()
    waits = []
    for _ in range(7):
        shop.put(node("n").cordon().taint(f"t{len(waits)}"))
        began = shop.now
        while states(shop) != {"unschedulable": 1} or shop.now == began:
            shop.work()
            if states(shop) == {"unschedulable": 1}:
                break
            shop.now += 0.5
        waits.append(shop.now - began)
    assert waits == [0, 1, 2, 4, 8, 10, 10]


def test_some_are_tried_in_spite_of_their_back_off_the_first_ones_first():
    shop = Shop()
    shop.queue = PendingQueue(Limits(pending_early_tries=2))
    shop.replica.on_committed = shop.queue.observe
    shop.put(*(small(name) for name in "dcba"))
    for number in range(2):
        shop.put(node("n").cordon().taint(f"t{number}"))
        shop.work()
    assert states(shop) == {"unschedulable": 4}
    shop.put(node("n").cordon().taint("x"))
    assert [name for _, name in shop.queue.take(9, shop.now).tries] == ["a", "b"]


def test_a_change_while_a_pod_is_being_tried_is_not_missed():
    shop = Shop()
    shop.put(node("n").cordon(), pod("p"))
    attempts = shop.take()
    answer = shop.decide(attempts)
    assert answer.refused
    shop.put(node("n"))
    shop.queue.conclude(attempts, answer.refused, shop.now)
    assert states(shop) == {"active": 1}


def test_a_change_that_the_decision_saw_does_not_wake():
    shop = Shop()
    shop.put(node("n").cordon(), pod("p"))
    attempts = shop.take()
    shop.put(node("n2").cordon())
    shop.queue.conclude(attempts, shop.decide(attempts).refused, shop.now)
    assert states(shop) == {"unschedulable": 1}


def test_conditions_that_are_rewritten_wake_nobody():
    """P18."""
    shop = Shop()
    shop.put(pod("p"))
    tried = []
    while shop.queue.has_work(shop.now) and len(tried) < 2:
        attempts = shop.take()
        tried += attempts.tries
        shop.queue.conclude(attempts, shop.decide(attempts).refused, shop.now)
    assert tried == [("default", "p")]
    assert shop.replica.pod("default", "p").status is not None
    assert not shop.queue.has_work(shop.now)


def test_a_freed_resource_wakes_only_who_lacks_it():
    shop = Shop()
    shop.put(node("n").allocatable(cpu="2", memory="1Gi", pods="9"))
    shop.put(pod("cpu").request(cpu="2").on("n"))
    shop.put(pod("memory").request(memory="1Gi").on("n"))
    shop.put(pod("wants-cpu").request(cpu="1"), pod("wants-memory").request(memory="1Gi"))
    shop.work()
    shop.delete("Pod", "memory")
    assert tries(shop) == ["wants-memory"]


NODE_TERMS: dict[str, list[Any]] = {
    "a value": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["a", "b"]}]}],
    "a key": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}],
    "a number": [{"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["8"]}]}],
    "no key": [{"matchExpressions": [{"key": "old", "operator": "DoesNotExist"}]}],
    "not a value": [{"matchExpressions": [{"key": "old", "operator": "NotIn", "values": ["x"]}]}],
    "a name": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["m"]}]}],
}
ADMITTED = {"disk": "b", "cores": "16"}


@pytest.mark.parametrize("asked", NODE_TERMS)
@pytest.mark.parametrize("comes", [False, True])
@pytest.mark.parametrize("variant", ["IgnoredDuringExecution", "RequiredDuringExecution"])
def test_node_affinity_wakes_for_a_node_that_it_admits(asked: str, variant: str, *, comes: bool):
    shop = Shop()
    waiting = pod("p")
    required = {f"requiredDuringScheduling{variant}": {"nodeSelectorTerms": NODE_TERMS[asked]}}
    waiting["spec"]["affinity"] = {"nodeAffinity": required}
    name = "m" if comes or asked == "a name" else "n"
    shop.put(node("n").label(old="x", cores="8"))
    shop.put(waiting)
    shop.work()
    assert states(shop) == {"unschedulable": 1}
    shop.put(node(name).label(**ADMITTED))
    assert states(shop) == {"active": 1}


def test_a_node_wakes_pods_when_it_declares_other_features():
    shop = Shop({"kubernetes": "1.36"})
    waiting = pod("p")
    waiting["spec"]["containers"][0]["restartPolicyRules"] = [{"action": "RestartAllContainers"}]
    shop.put(node("n"), waiting)
    shop.work()
    shop.put(node("n").label(any="x"))
    assert states(shop) == {"unschedulable": 1}
    declaring = node("n")
    declaring["status"]["declaredFeatures"] = ["RestartAllContainersOnContainerExits"]
    shop.put(declaring)
    assert states(shop) == {"active": 1}


def test_a_relabelled_node_wakes_only_those_whom_it_admits_now():
    shop = Shop()
    shop.put(node("n").label(zone="z"), node("m").label(zone="z", wanted="none"))
    for number in range(5):
        shop.put(small(f"p{number}").node_selector(wanted=str(number), zone="z"))
    shop.work()
    shop.put(node("n").label(zone="z", wanted="3", other="label"))
    assert tries(shop) == ["p3"]


def test_a_node_wakes_nobody_by_labels_that_it_had_before_or_that_are_not_enough():
    shop = Shop()
    shop.put(node("full").label(disk="ssd").allocatable(cpu="1", pods="0"))
    shop.put(node("n"), small("p").node_selector(disk="ssd"))
    shop.put(small("q").node_selector(disk="nvme", zone="z"))
    shop.work()
    shop.put(node("full").label(disk="ssd", more="label").allocatable(cpu="1", pods="0"))
    shop.put(node("n").label(disk="nvme"), node("n").label(zone="z"))
    assert states(shop) == {"unschedulable": 2}


def test_node_affinity_that_the_profile_adds_wakes_whatever_the_pod_asks_for():
    term = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["x"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    arguments = {"name": "NodeAffinity", "args": {"addedAffinity": required}}
    profile = {"schedulerName": "default-scheduler", "pluginConfig": [arguments]}
    shop = Shop({"profiles": [profile]})
    shop.put(node("n").label(disk="ssd"), pod("p").node_selector(disk="ssd"))
    shop.work()
    shop.put(node("n").label(disk="ssd", pool="x"))
    assert states(shop) == {"active": 1}


def test_very_many_changes_while_pods_are_being_tried_wake_whoever_was_refused():
    shop = Shop()
    shop.put(node("n"), pod("p").node_selector(disk="ssd"))
    attempts = shop.take()
    answer = shop.decide(attempts)
    shop.put(*(node("n").label(number=str(number)) for number in range(1_100)))
    shop.queue.conclude(attempts, answer.refused, shop.now)
    assert states(shop) == {"active": 1}


def test_affinity_wakes_for_pods_that_its_terms_may_match_and_for_no_others():
    shop = Shop()
    shop.put(node("n").label(zone="z"))
    shop.put(pod("a").require_affinity("zone", matching(app="b", tier="x")))
    shop.work()
    shop.put(pod("other").label(app="c").on("n"), pod("half").label(app="b").on("n"))
    shop.put(pod("elsewhere", "shop").label(app="b", tier="x").on("n"))
    assert states(shop) == {"unschedulable": 1}
    shop.put(pod("b").label(app="b", tier="x").on("n"))
    assert states(shop) == {"active": 1}


def test_the_departure_of_a_pod_that_kept_others_out_wakes_them():
    shop = Shop()
    shop.put(node("n").label(zone="z"))
    shop.put(pod("alone").require_anti_affinity("zone", matching(app="x")).on("n"))
    shop.put(pod("p").label(app="x"))
    shop.work()
    assert states(shop) == {"unschedulable": 1}
    shop.delete("Pod", "alone")
    assert states(shop) == {"active": 1}


def test_any_pod_that_leaves_a_full_domain_wakes_those_for_whom_it_was_full():
    shop = Shop()
    web = pod("web").label(app="web")
    shop.put(node("n").label(zone="z"), web.on("n"))
    shop.put(
        pod("owner").require_anti_affinity("zone", matching(app="web"), maxPerDomain=1).on("n")
    )
    shop.put(web.named("late"), small("bystander").on("n"))
    shop.work()
    assert states(shop) == {"unschedulable": 1}
    shop.put(pod("another").on("n"))
    assert states(shop) == {"unschedulable": 1}, "who comes makes no room"
    shop.delete("Pod", "web")
    assert states(shop) == {"active": 1}


@pytest.mark.parametrize("change", ["pod", "namespace", "none"])
def test_a_constraint_over_namespaces_wakes_for_their_pods_and_for_their_labels(change: str):
    shop = Shop()
    shop.put(node("n1").label(zone="a"), node("n2").label(zone="b").cordon())
    shop.put(namespace("shop").label(team="red"))
    shop.put(pod("q", "shop").label(app="a").on("n1"), pod("other", "shop").on("n1"))
    late = pod("late").label(app="a")
    shop.put(late.spread(1, "zone", namespaceSelector=matching(team="red")))
    shop.put(pod("r", "shop").label(app="a").on("n1"))
    shop.work()
    assert states(shop) == {"unschedulable": 1}
    match change:
        case "pod":
            shop.delete("Pod", "r", "shop")
        case "namespace":
            shop.put(namespace("shop"))
        case "none":
            shop.delete("Pod", "other", "shop")
    assert states(shop) == ({"unschedulable": 1} if change == "none" else {"active": 1})


def test_default_constraints_wake_for_services_and_owners_that_they_select_by():
    rule = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    shop = Shop({"defaultTopologySpreadConstraints": [rule]})
    shop.put(node("n1").label(zone="a"), node("n2").label(zone="b").taint("away", "yes"))
    shop.put(service(app="web"), service("other", app="x"))
    shop.put(pod("q").label(app="web").on("n1"), pod("p").label(app="web"))
    shop.put(pod("own").label(app="web").owned_by("ReplicaSet", "web").spread(1, "zone"))
    shop.work()
    assert states(shop) == {"unschedulable": 2}
    relabelled = service(app="web").label(tier="front")
    shop.put(service("other", app="y"), service("web", "shop", app="web"), relabelled)
    shop.delete("Service", "web", "shop")
    assert states(shop) == {"unschedulable": 2}
    shop.delete("Service", "web")
    assert states(shop) == {"active": 1, "unschedulable": 1}


def test_a_claim_that_goes_wakes_those_who_can_have_its_volume():
    shop = Shop()
    bound = claim("data", volumeName="disk")
    bound["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    shop.put(node("n1"), storage_class(), volume("disk"), bound, claim("other"))
    shop.put(pod("p").claim("other"))
    shop.work()
    assert shop.waiting() == {("default", "p")}
    shop.delete("PersistentVolumeClaim", "data")
    shop.work()
    assert shop.waiting() == set()


def test_what_was_not_tried_for_very_long_is_tried_again():
    shop = Shop()
    shop.put(pod("p"))
    shop.work()
    shop.queue.sweep(shop.now + LIMITS.pending_retry_seconds - 1)
    assert states(shop) == {"unschedulable": 1}
    shop.queue.sweep(shop.now + LIMITS.pending_retry_seconds)
    assert states(shop) == {"active": 1}


def unseen(shop: Shop, manifest: Any) -> None:
    """Store an object without a word to the queue, as if no hint told what it helps."""
    shop.replica.on_committed = None
    shop.put(manifest)
    shop.replica.on_committed = shop.queue.observe


def test_what_only_the_sweep_lets_be_placed_is_reported_once():
    shop = Shop()
    shop.put(node("n").cordon(), pod("a"), pod("b"), small("c").node_selector(disk="ssd"))
    shop.work()
    unseen(shop, node("n"))
    shop.now += LIMITS.pending_retry_seconds
    shop.queue.sweep(shop.now)
    shop.work()
    assert shop.waiting() == {("default", "c")}
    assert shop.queue.take_missed() == [(("default", "a"), ("NodeUnschedulable",))]
    assert shop.queue.take_missed() == []


@pytest.mark.parametrize("meanwhile", ["before it is tried", "while it is tried"])
def test_what_a_change_helps_that_a_sweep_had_woken_is_not_reported(meanwhile: str):
    shop = Shop()
    shop.put(node("n").cordon(), pod("a"))
    shop.work()
    shop.now += LIMITS.pending_retry_seconds
    shop.queue.sweep(shop.now)
    attempts = shop.take() if meanwhile == "while it is tried" else None
    shop.put(node("n"))
    attempts = attempts or shop.take()
    shop.queue.conclude(attempts, shop.decide(attempts).refused, shop.now)
    assert shop.waiting() == set()
    assert shop.queue.take_missed() == []


def test_what_new_settings_help_that_a_sweep_had_woken_is_not_reported():
    shop = Shop()
    shop.put(node("n").cordon(), pod("a"))
    shop.work()
    shop.now += LIMITS.pending_retry_seconds
    shop.queue.sweep(shop.now)
    disabled = {"filter": {"disabled": [{"name": "NodeUnschedulable"}]}}
    shop.configure({"profiles": [{"schedulerName": "default-scheduler", "plugins": disabled}]})
    shop.work()
    assert shop.waiting() == set()
    assert shop.queue.take_missed() == []


def test_what_a_change_wakes_after_a_vain_sweep_is_not_reported():
    shop = Shop()
    shop.put(node("n").cordon(), pod("a"))
    shop.work()
    shop.now += LIMITS.pending_retry_seconds
    shop.queue.sweep(shop.now)
    shop.now += 20.0
    shop.work()
    shop.put(node("n"))
    shop.now += 20.0
    shop.work()
    assert shop.waiting() == set()
    assert shop.queue.take_missed() == []


def test_equal_pods_are_tried_once():
    shop = Shop()
    shop.put(node("n"), *(pod(f"p{i}").request(cpu="99") for i in range(20)))
    attempts = shop.take()
    assert len(attempts.tries) == 3
    shop.queue.conclude(attempts, shop.decide(attempts).refused, shop.now)
    attempts = shop.take()
    assert (len(attempts.tries), len(attempts.condition_updates)) == (0, 3)
    assert states(shop) == {"unschedulable": 20}


def annotated(name: str, disk: str) -> Any:
    """A pod whose annotation asks for nodes with a disk; all have the same spec and labels."""
    asks = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": [disk]}]}]
    required = {IGNORED_DURING_EXECUTION: {"nodeSelectorTerms": asks}}
    waiting = pod(name)
    rules = msgspec.json.encode({"affinity": {"nodeAffinity": required}}).decode()
    waiting["metadata"]["annotations"] = {ANNOTATION: rules}
    return waiting


@pytest.mark.parametrize("other", [annotated("b", "ssd"), pod("b")], ids=["other rules", "none"])
def test_a_pod_with_other_rules_in_its_annotation_is_tried_for_itself(other: Any):
    shop = Shop()
    shop.put(node("n").label(disk="ssd"), annotated("a", "hdd"))
    shop.work()
    shop.put(other)
    shop.work()
    assert shop.waiting() == {("default", "a")}


def test_pods_with_equal_rules_in_their_annotations_are_tried_once():
    shop = Shop()
    shop.put(node("n"), *(annotated(name, "ssd") for name in "abcd"))
    attempts = shop.take()
    shop.queue.conclude(attempts, shop.decide(attempts).refused, shop.now)
    assert tries(shop) == []


@pytest.mark.parametrize("changed", [annotated("a", "ssd"), pod("a")], ids=["changed", "removed"])
def test_a_pod_is_tried_again_when_the_rules_in_its_annotation_change(changed: Any):
    shop = Shop()
    shop.put(node("n").label(disk="ssd"), annotated("a", "hdd"))
    shop.work()
    assert states(shop) == {"unschedulable": 1}
    shop.put(changed)
    shop.work()
    assert shop.waiting() == set()


def test_a_group_is_tried_again_when_the_rules_in_the_annotation_of_a_member_change():
    shop = Shop()
    shop.put(node("n").label(disk="ssd"))
    shop.put(annotated("a", "hdd").label(**{POD_GROUP_LABEL: "g"}))
    shop.work()
    assert states(shop) == {"unschedulable": 1}
    shop.put(pod("a").label(**{POD_GROUP_LABEL: "g"}))
    assert states(shop) == {"active": 1}


def test_the_starving_pod_is_named_and_those_behind_it():
    shop = Shop()
    shop.put(node("n").allocatable(cpu="2", pods="9"), pod("full").request(cpu="2").on("n"))
    first, big, last = (small(name).request(cpu="2") for name in ("first", "big", "last"))
    first["spec"]["priority"] = 9
    big["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    last["metadata"]["creationTimestamp"] = "2026-01-01T00:00:01Z"
    shop.put(big)
    for number in range(4):
        shop.work()
        shop.put(node("n").allocatable(cpu="2", pods=str(20 + number)))
        shop.now += 20
    shop.work()
    shop.put(first, last)
    attempts = shop.take()
    assert attempts.starving == ("default", "big")
    assert [name for _, name in attempts.tries] == ["first", "last"]
    assert attempts.behind == 1


class Queue(RuleBasedStateMachine):
    """Objects come, change and go; turns are taken; changes come between a turn and its end."""

    features = strategies.POD_FEATURES + strategies.NODE_FEATURES

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        self.world = data.draw(strategies.worlds(self.features))
        config = data.draw(strategies.configs(self.world))
        config["restrictAllNamespacesAntiAffinity"] = False
        self.shop = Shop(config)
        self.attempts: tuple[Attempts, PendingAnswer] | None = None
        for name in strategies.NODES[:2]:
            self.shop.put(self.node(data, st.just(name)))

    def node(self, data: st.DataObject, names: Any = strategies.NODE_NAMES) -> Any:
        return {"kind": "Node"} | data.draw(strategies.nodes(self.world, names))

    @rule(data=st.data())
    def put_node(self, data: st.DataObject) -> None:
        self.shop.put(self.node(data))

    @precondition(lambda self: self.shop.replica.keys("Node"))
    @rule(data=st.data())
    def delete_node(self, data: st.DataObject) -> None:
        names = sorted(name for _, name in self.shop.replica.keys("Node"))
        self.shop.delete("Node", data.draw(st.sampled_from(names)))

    @rule(data=st.data())
    def put_namespace(self, data: st.DataObject) -> None:
        if self.world.stored:
            self.shop.put({"kind": "Namespace"} | data.draw(strategies.namespaces(self.world)))

    @precondition(lambda self: self.world.has(strategies.DEFAULT_SPREAD))
    @rule(data=st.data())
    def put_selecting_object(self, data: st.DataObject) -> None:
        self.shop.put(data.draw(strategies.selecting_objects(self.world)))

    @precondition(lambda self: self.shop.replica.keys("Service"))
    @rule(data=st.data())
    def delete_service(self, data: st.DataObject) -> None:
        namespace, name = data.draw(st.sampled_from(sorted(self.shop.replica.keys("Service"))))
        self.shop.delete("Service", name, namespace)

    @rule(data=st.data(), number=st.integers(0, 9), placed=st.booleans())
    def put_pod(self, data: st.DataObject, number: int, *, placed: bool) -> None:
        manifest = {"kind": "Pod"} | data.draw(strategies.pods(self.world, f"p{number}"))
        if placed:
            manifest["spec"]["nodeName"] = data.draw(strategies.NODE_NAMES)
        self.shop.put(manifest)

    @precondition(lambda self: self.shop.replica.keys("Pod"))
    @rule(data=st.data(), relabel=st.booleans())
    def change_pod(self, data: st.DataObject, *, relabel: bool) -> None:
        namespace, name = data.draw(st.sampled_from(sorted(self.shop.replica.keys("Pod"))))
        if not relabel:
            self.shop.delete("Pod", name, namespace)
            return
        stored = self.shop.replica.pod(namespace, name)
        assert stored is not None
        manifest = msgspec.json.decode(stored.render())
        manifest["metadata"]["labels"] = data.draw(strategies.pod_labels(self.world))
        self.shop.put(manifest)

    @rule(seconds=st.sampled_from((0.3, 1.0, 5.0, 20.0)))
    def time_passes(self, seconds: float) -> None:
        self.shop.now += seconds

    @precondition(lambda self: self.attempts is None)
    @rule()
    def begin_turn(self) -> None:
        attempts = self.shop.take()
        self.attempts = attempts, self.shop.decide(attempts)

    @precondition(lambda self: self.attempts is not None)
    @rule(lost=st.booleans())
    def end_turn(self, *, lost: bool) -> None:
        assert self.attempts is not None
        attempts, answer = self.attempts
        self.attempts = None
        if lost:
            self.shop.queue.give_back(attempts, self.shop.now)
        else:
            self.shop.queue.conclude(attempts, answer.refused, self.shop.now)

    @invariant()
    def no_pod_is_lost(self) -> None:
        if hasattr(self, "shop"):
            waiting, queue = self.shop.waiting(), self.shop.queue
            assert all(key in queue for key in waiting)
            members = [key for equivalence in queue.equivalences() for key in equivalence.members]
            assert len(members) == len(queue) == len(waiting)
            assert set(members) == waiting

    @invariant()
    def nothing_waits_for_a_change_that_fits_already(self) -> None:
        """Every hint that could be missing would show here."""
        if not hasattr(self, "shop"):
            return
        for equivalence in self.shop.queue.equivalences():
            if equivalence.state is State.UNSCHEDULABLE:
                for key in equivalence.members:
                    manifest = self.shop.replica.pod(*key)
                    assert isinstance(manifest, PodManifest)
                    found = place(self.shop.replica.cluster, manifest.pod)
                    assert isinstance(found, Refusal), (key, equivalence.refused, found)

    def teardown(self) -> None:
        """Left to itself, the queue places what can be placed, one after another."""
        if not hasattr(self, "shop"):
            return
        if self.attempts is not None:
            self.end_turn(lost=False)
        for _ in range(30):
            self.shop.work()
            self.shop.now += 10.0
        counts = self.shop.queue.counts()
        assert (counts["active"], counts["backoff"]) == (0, 0)
        self.no_pod_is_lost()
        self.nothing_waits_for_a_change_that_fits_already()


class QueueOfPodsThatSpreadByDefault(Queue):
    """Services and owners of pods come, change and go as well."""

    features = (strategies.DEFAULT_SPREAD, "spread")


TestQueue = Queue.TestCase
TestQueue.settings = settings(max_examples=examples(60), stateful_step_count=30)
TestQueueByDefault = QueueOfPodsThatSpreadByDefault.TestCase
TestQueueByDefault.settings = settings(max_examples=examples(20), stateful_step_count=30)
