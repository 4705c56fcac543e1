"""Preemption that looks at pods on other nodes, against all ways there are on small clusters drawn by chance."""

from collections.abc import Iterator
from itertools import combinations
from random import Random
from typing import Any

import pytest

from service.engine import Cluster, NoPreemption, Preemption, digest, explain, preempt
from service.engine.preemption.search import CUT_SHORT, UNDER_WAY
from service.engine.preemption.victims import Removability, cost_of
from service.model.cluster.cluster_config import PreemptionScope
from service.model.pods.pod import Pod
from service.model.workloads.disruption_budget import DisruptionBudget
from tests.builders import Manifest, NodeBuilder, PodBuilder, matching, node, pod
from tests.engine import objects
from tests.engine.scene import Scene
from tests.seeds import chance, examples

REMOVABLE_MAX = 5
"""So many pods may leave at most, so that all ways can be tried."""
CHUNK = 25


class SmallCluster:
    """A few nodes with a few pods that are in each other's way, and a pod that is to be placed."""

    def __init__(self, dice: Random) -> None:
        self._dice = dice
        self.engine = Cluster(objects.config({"daemonNamespaces": []}))
        self._names = [f"n{number}" for number in range(dice.randint(2, 4))]
        for name in self._names:
            self.engine.put_node(objects.node(self._node(name)))
        self.incoming = objects.pod(self._probe(), incoming=True)
        for number in range(dice.randint(3, 8)):
            self.engine.put_pod(objects.pod(self._placed(f"placed-{number}")))
        if self._often(0.2):
            self.engine.put_pod(objects.pod(self._nominated()))
        self.budgets = [self._budget(number) for number in range(dice.randrange(3))]
        self.within = {"default"} if self._often(0.2) else None

    def _often(self, probability: float) -> bool:
        return self._dice.random() < probability

    def _node(self, name: str) -> NodeBuilder:
        zone, rack = self._dice.choice("xy"), self._dice.choice("rs")
        made = node(name).label(host=name, zone=zone, rack=rack)
        return made.allocatable(cpu=str(self._dice.randint(1, 4)), memory="8Gi", pods="9")

    def _placed(self, name: str) -> PodBuilder:
        made = self._pod(name).priority(self._dice.choice((0, 0, 1, 2, 9, 9)))
        made = made.on(self._dice.choice(self._names))
        made["status"] = {"startTime": f"2026-01-0{self._dice.randint(1, 3)}T00:00:00Z"}
        return made.terminating() if self._often(0.1) else made

    def _nominated(self) -> Manifest:
        made = self._pod("nominated").priority(self._dice.choice((4, 5, 6)))
        return made | {"status": {"nominatedNodeName": self._dice.choice(self._names)}}

    def _probe(self) -> PodBuilder:
        made = self._pod("probe").priority(5)
        if self._often(0.5):
            made = self._anti_affinity(made)
        if self._often(0.6):
            made = self._spread(made)
        if self._often(0.3):
            made = made.require_affinity(self._key(), self._selector())
        return made

    def _pod(self, name: str) -> PodBuilder:
        dice = self._dice
        made = pod(name, dice.choice(("default", "default", "shop"))).label(app=dice.choice("ab"))
        made = made.label(tier=dice.choice("uv")).request(cpu=dice.choice(("100m", "1", "2")))
        made = made.host_port(80) if self._often(0.1) else made
        return self._anti_affinity(made) if self._often(0.2) else made

    def _anti_affinity(self, made: PodBuilder) -> PodBuilder:
        limit = {"maxPerDomain": self._dice.randint(1, 2)} if self._often(0.3) else {}
        selecting = {"namespaceSelector": {}} if self._often(0.5) else {}
        return made.require_anti_affinity(self._key(), self._selector(), **limit, **selecting)

    def _spread(self, made: PodBuilder) -> PodBuilder:
        for key in self._dice.sample(("host", "zone", "rack"), self._dice.randint(1, 2)):
            fields: Manifest = {"minDomains": 3} if self._often(0.2) else {}
            made = made.spread(1, key, self._selector(), **fields)
        return made

    def _key(self) -> str:
        return self._dice.choice(("host", "zone", "zone", "rack"))

    def _selector(self) -> Manifest:
        return self._dice.choice((matching(app="a"), matching(tier="u"), matching()))

    def _budget(self, number: int) -> DisruptionBudget:
        return objects.budget(
            {
                "metadata": {"name": f"budget-{number}", "namespace": "default"},
                "spec": {"selector": matching(app=self._dice.choice("ab"))},
                "status": {"disruptionsAllowed": self._dice.randrange(2)},
            }
        )

    def removable(self) -> list[Pod]:
        may = Removability(self.incoming.priority, self.within)
        return [each for each in self.engine.pods() if each.node_name and may.has(each)]

    def curable(self) -> set[str]:
        """The nodes of which no filter says that nobody's leaving could help."""
        hopeless = explain(self.engine, self.incoming).unresolvable.values()
        return set(self._names).difference(*hopeless)

    def feasible(self, without: tuple[Pod, ...] = ()) -> set[str]:
        """The nodes that take the pod if these leave."""
        mark = self.engine.mark()
        for each in without:
            self.engine.delete_pod(each.namespace, each.name)
        found = explain(self.engine, self.incoming).feasible
        self.engine.undo(mark)
        return set(found)

    def ways(self) -> Iterator[tuple[Pod, ...]]:
        """Whoever may leave together so that the pod fits on a node, the fewest first."""
        removable, curable = self.removable(), self.curable()
        for count in range(1, len(removable) + 1):
            for leaving in combinations(removable, count):
                if self.feasible(leaving) & curable:
                    yield leaving

    def ask(self, scope: PreemptionScope) -> Preemption | NoPreemption:
        return preempt(self.engine, self.incoming, self.budgets, within=self.within, scope=scope)

    def needs(self, found: Preemption) -> bool:
        """Whether the node takes the pod if all victims leave, and no longer if any of them stays."""
        pods = found.victims.pods
        removable = self.removable()
        if not all(each in removable for each in pods):
            return False
        if found.node_name not in self.feasible(pods):
            return False
        others = (tuple(each for each in pods if each is not one) for one in pods)
        return not any(found.node_name in self.feasible(each) for each in others)


def clusters(first: int) -> Iterator[SmallCluster]:
    """Those in which the pod does not fit, and not too many others may leave to try all ways."""
    for number in range(first, first + CHUNK):
        made = SmallCluster(chance(f"preemption by domains {number}"))
        if len(made.removable()) <= REMOVABLE_MAX and not made.feasible():
            yield made


@pytest.mark.parametrize("first", range(0, examples(200), CHUNK))
def test_room_is_found_whenever_any_pods_leaving_make_it(first: int) -> None:
    """And each victim is needed, and they never cost more than if only pods of the node leave."""
    for each in clusters(first):
        before = digest(each.engine)
        found, on_node = each.ask("Domains"), each.ask("Node")
        assert digest(each.engine) == before
        if isinstance(found, NoPreemption):
            assert isinstance(on_node, NoPreemption)
            assert next(each.ways(), None) is None
            continue
        assert each.needs(found)
        if isinstance(on_node, Preemption):
            assert cost_of(found.victims) <= cost_of(on_node.victims)


def roomy(name: str, zone: str = "x") -> NodeBuilder:
    return node(name).label(host=name, zone=zone).allocatable(cpu="2", memory="8Gi", pods="10")


def web(name: str, on: str, priority: int = 0) -> PodBuilder:
    return pod(name).label(app="web").request(cpu="1").priority(priority).on(on)


def urgent() -> PodBuilder:
    """A pod for the node n1."""
    made = pod("urgent").label(app="web").request(cpu="1").priority(10)
    return made.node_selector(host="n1")


def anywhere(incoming: PodBuilder) -> PodBuilder:
    """The pod without the choice of its node."""
    made = incoming.node_selector()
    del made["spec"]["nodeSelector"]
    return made


def told(scene: Scene, incoming: PodBuilder, scope: PreemptionScope = "Domains") -> Any:
    """The chosen node with its victims; None if nobody's leaving helps."""
    found = preempt(
        scene.engine, objects.pod(incoming, incoming=True), scope=scope, all_candidates=True
    )
    if isinstance(found, NoPreemption):
        return None
    assert found.candidates is not None
    assert found.candidates[found.node_name] == found.victims
    return found.node_name, [each.name for each in found.victims.pods]


ANYWHERE = {"nodeAffinityPolicy": "Ignore"}
"""A spread constraint counts on all nodes, not only on that which the pod selects."""
ALONE = urgent().require_anti_affinity("zone", matching(app="web"))


@pytest.mark.parametrize(
    ("placed", "incoming"),
    [
        (web("away", "n2"), ALONE),
        (web("away", "n2").require_anti_affinity("zone", matching(app="web")), urgent()),
        (web("away", "n2"), urgent().spread(1, "zone", matching(app="web"), **ANYWHERE)),
    ],
)
def test_a_pod_on_another_node_leaves_if_a_rule_refuses_the_domain_because_of_it(
    placed: PodBuilder, incoming: PodBuilder
) -> None:
    scene = Scene(roomy("n1"), roomy("n2"), roomy("n3", "y"), placed)
    scene.put(*(pod(f"bystander-{name}").on(name) for name in ("n1", "n2", "n3")))
    assert told(scene, incoming, "Node") is None
    assert told(scene, incoming) == ("n1", ["away"])


def test_pods_of_the_node_and_pods_elsewhere_may_have_to_leave_together() -> None:
    scene = Scene(roomy("n1"), roomy("n2"), web("away", "n2", 3))
    scene.put(*(pod(f"large-{number}").request(cpu="1").on("n1") for number in (1, 2)))
    assert told(scene, ALONE) == ("n1", ["away", "large-2"])


def test_nobody_elsewhere_leaves_where_that_is_no_cheaper() -> None:
    scene = Scene(roomy("n1"), roomy("n2"), roomy("n3", "y"), web("away", "n2"), web("near", "n3"))
    assert told(scene, anywhere(ALONE))[1] in (["away"], ["near"])
    scene.put(web("away", "n2", 1))
    assert told(scene, anywhere(ALONE)) == ("n3", ["near"])
    scene.put(web("near", "n3", 2))
    assert told(scene, anywhere(ALONE))[1] == ["away"]


def test_of_many_that_a_constraint_counts_those_leave_that_matter_least() -> None:
    scene = Scene(roomy("n1"), roomy("n2").allocatable(cpu="200", pods="200"), roomy("n3", "y"))
    scene.put(*(web(f"web-{number}", "n2", number // 10) for number in range(100)))
    incoming = urgent().spread(95, "zone", matching(app="web"), **ANYWHERE)
    assert told(scene, incoming) == ("n1", [f"web-{number}" for number in range(4, 10)])


def test_pods_that_may_not_leave_close_a_domain() -> None:
    scene = Scene(roomy("n1"), roomy("n2"), web("away", "n2", 10))
    assert told(scene, ALONE) is None
    scene.put(web("away", "n2"))
    incoming = objects.pod(ALONE, incoming=True)
    found = preempt(scene.engine, incoming, within={"shop"}, scope="Domains")
    assert isinstance(found, NoPreemption)


def test_a_companion_that_has_to_stay_is_not_removed_with_those_that_are_blamed() -> None:
    scene = Scene(roomy("n1"), roomy("n2"), roomy("n3", "y"))
    scene.put(web("away", "n2"), web("companion", "n1", 5).label(app="db"))
    scene.put(web("large", "n1", 2).label(app="other"))
    incoming = ALONE.require_affinity("zone", matching(app="db"))
    assert told(scene, incoming) == ("n1", ["large", "away"])


def test_while_preempted_pods_are_leaving_elsewhere_nobody_else_has_to() -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    leaving = web("away", "n2").terminating()
    leaving["status"] = {"conditions": [condition]}
    waiting = objects.pod(ALONE | {"status": {"nominatedNodeName": "n1"}}, incoming=True)
    scene = Scene(roomy("n1"), roomy("n2"), leaving, web("more", "n2"))
    found = preempt(scene.engine, waiting, scope="Domains")
    assert found == NoPreemption(f"preemption: {UNDER_WAY}", of_devices="")


def test_an_affinity_that_is_left_out_for_the_first_pod_of_a_controller_blames_nobody() -> None:
    scene = Scene(roomy("n1"), roomy("n2"), web("away", "n2"), web("near", "n1").label(app="other"))
    first = ALONE.owned_by("ReplicaSet", "cache")
    first = first.require_affinity("zone", matching(app="none"), firstPodExempt=True)
    assert told(scene, first) == ("n1", ["away"])


def test_a_search_that_finds_nothing_ends_with_its_work_and_says_so() -> None:
    """On each node all have to leave, of whom the pod misses one, so no node is any better."""
    scene = Scene(*(roomy(f"n{number}") for number in range(100)))
    scene.put(*(pod(f"p{number}").label(app="web").on(f"n{number % 100}") for number in range(200)))
    lonely = ALONE.label(app="other").require_affinity("zone", matching(app="web"))
    one, every = objects.pod(lonely, incoming=True), objects.pod(anywhere(lonely), incoming=True)
    before = scene.engine.version
    assert CUT_SHORT not in str(preempt(scene.engine, one, scope="Domains"))
    at_one = scene.engine.version - before
    answer = preempt(scene.engine, every, scope="Domains")
    assert isinstance(answer, NoPreemption)
    assert str(answer.why).endswith(CUT_SHORT)
    assert scene.engine.version - before < 60 * at_one, "not each of 100 nodes was tried"
