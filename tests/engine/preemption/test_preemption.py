"""Preemption against the reference on clusters drawn by chance, and what cannot be drawn by chance."""

from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from service.engine import Cluster, NoPreemption, Preemption, Refusal, digest, place, preempt
from tests.builders import Manifest, NodeBuilder, PodBuilder, matching, node, pod, where
from tests.conformance.doors import preemption_told
from tests.conformance.vectors import differences
from tests.engine import objects
from tests.engine.scene import Scene
from tests.reference import ReferenceCluster, evaluate_preemption
from tests.seeds import chance, examples
from tools.conformance.cases import full_message

PROBES = 3
KEYS = ("host", "zone")
APPS = ("a", "b")


class Twins:
    """The same cluster in the engine and in the reference: nodes that are full, of pods that meet."""

    def __init__(self, dice: Random) -> None:
        self._dice = dice
        per_term = "PerTerm" if dice.random() < 0.1 else "SamePod"
        config = {"daemonNamespaces": [], "requiredAffinityTerms": per_term}
        self.reference = ReferenceCluster(config)
        self.engine = Cluster(objects.config(config))
        self._names = [f"n{number}" for number in range(dice.randint(2, 5))]
        for name in self._names:
            drawn = self._node(name)
            self.reference.put_node(drawn)
            self.engine.put_node(objects.node(drawn))
        for number in range(3 * len(self._names)):
            self.put_pod(f"placed-{number}")
        self.budgets = [self._budget(number) for number in range(dice.randrange(4))]

    def _often(self, probability: float) -> bool:
        return self._dice.random() < probability

    def _node(self, name: str) -> NodeBuilder:
        drawn = node(name).label(host=name).allocatable(cpu="2", memory="8Gi", pods="3")
        if self._often(0.9):
            drawn = drawn.label(zone=self._dice.choice("xy"))
        if self._often(0.1):
            drawn = drawn.taint("dedicated")
        return drawn.cordon() if self._often(0.05) else drawn

    def nominate(self, name: str) -> None:
        """Keep room for a pod on any node."""
        drawn = self._pod(name).priority(self._dice.randint(0, 3))
        self._put(drawn | {"status": {"nominatedNodeName": self._dice.choice(self._names)}})

    def put_pod(self, name: str) -> None:
        """Place a pod anywhere, whether it fits there or not; it may be leaving already."""
        drawn = self._pod(name).on(self._dice.choice(self._names))
        drawn["status"] = {"startTime": f"2026-01-0{self._dice.randint(1, 3)}T00:00:00Z"}
        drawn = drawn.terminating() if self._often(0.15) else drawn
        self._put(drawn)

    def _put(self, drawn: Manifest) -> None:
        self.reference.put_pod(drawn)
        self.engine.put_pod(objects.pod(drawn))

    def probe(self) -> PodBuilder:
        """A pod that is to be placed; it is of a priority that some of the placed ones may have."""
        return self._pod("probe").request(memory="1Gi").priority(self._dice.randint(1, 3))

    def _pod(self, name: str) -> PodBuilder:
        dice = self._dice
        drawn = pod(name, dice.choice(("default", "default", "shop")))
        drawn = drawn.label(app=dice.choice(APPS)) if self._often(0.9) else drawn
        drawn = drawn.priority(dice.randint(-1, 2)).request(cpu=dice.choice(("100m", "1", "2")))
        for draw in (self._affinity, self._anti_affinity, self._spread, self._port):
            if self._often(0.2):
                drawn = draw(drawn)
        return drawn

    def _affinity(self, drawn: PodBuilder) -> PodBuilder:
        for key in self._dice.sample(KEYS, self._dice.randint(1, 2)):
            drawn = drawn.require_affinity(key, self._selector())
        return drawn

    def _anti_affinity(self, drawn: PodBuilder) -> PodBuilder:
        limit = {"maxPerDomain": self._dice.randint(1, 3)} if self._often(0.3) else {}
        return drawn.require_anti_affinity(self._dice.choice(KEYS), self._selector(), **limit)

    def _spread(self, drawn: PodBuilder) -> PodBuilder:
        for key in self._dice.sample(KEYS, self._dice.randint(1, 2)):
            fields: Manifest = {"minDomains": 3} if self._often(0.2) else {}
            fields |= {"nodeTaintsPolicy": "Honor"} if self._often(0.3) else {}
            drawn = drawn.spread(self._dice.randint(1, 2), key, self._selector(), **fields)
        return drawn

    def _port(self, drawn: PodBuilder) -> PodBuilder:
        return drawn.host_port(80, ip=self._dice.choice(("", "10.0.0.1", "10.0.0.2")))

    def _selector(self) -> Manifest:
        one = matching(app=self._dice.choice(APPS))
        return self._dice.choice((one, one, one, matching(), where("app", "Exists")))

    def _budget(self, number: int) -> Manifest:
        status: Manifest = {"disruptionsAllowed": self._dice.randrange(3)}
        if self._often(0.3):
            status["disruptedPods"] = {"placed-0": "2026-01-01T00:00:00Z"}
        return {
            "metadata": {"name": f"budget-{number}", "namespace": "default"},
            "spec": {"selector": self._selector()},
            "status": status,
        }

    def disagreements(self, probe: Manifest) -> list[str]:
        """In what the two differ about a pod; nothing if it fits anywhere."""
        want = evaluate_preemption(self.reference.view(), probe, self.budgets)
        if want["feasible"]:
            return []
        budgets = [objects.budget(each) for each in self.budgets]
        told, chosen = preemption_told(self.engine, objects.pod(probe, incoming=True), budgets)
        best = (want["preemption"] or {"chosen": [None]})["chosen"]
        want["fullMessage"] = full_message(want, chosen)
        if told["preemption"] is not None:
            told["preemption"] |= {"chosen": best, "message": want["preemption"]["message"]}
        found = differences(told, {field: want[field] for field in told})
        return found if chosen in best else [*found, f"{chosen} is none of {best}"]


@pytest.mark.parametrize("number", range(examples(25)))
def test_victims_and_reasons_are_those_of_the_reference(number: int) -> None:
    twins = Twins(chance(f"preemption {number}"))
    for each in range(PROBES):
        assert twins.disagreements(twins.probe()) == []
        twins.put_pod(f"placed-{each}")


@pytest.mark.parametrize("number", range(examples(15)))
def test_room_that_is_kept_for_other_pods_is_not_given_away(number: int) -> None:
    twins = Twins(chance(f"preemption beside nominated pods {number}"))
    for each in range(PROBES):
        twins.nominate(f"nominated-{each}")
        assert twins.disagreements(twins.probe()) == []
        twins.put_pod(f"placed-{each}")


@pytest.mark.parametrize("number", range(examples(10)))
def test_nodes_that_are_tried_one_by_one_have_the_same_victims(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    twins = Twins(chance(f"preemption one by one {number}"))
    monkeypatch.setattr("service.engine.state.pods.importance.DEPTH_MAX", 2)
    for each in range(PROBES):
        assert twins.disagreements(twins.probe()) == []
        twins.put_pod(f"placed-{each}")


def full(name: str) -> Any:
    """A node with room for two pods of one cpu."""
    return node(name).label(host=name).allocatable(cpu="2", memory="8Gi", pods="10")


def asking(cpu: str, name: str = "urgent") -> PodBuilder:
    return pod(name).request(cpu=cpu).priority(10)


def placed(name: str, on: str, priority: int = 0, cpu: str = "1") -> PodBuilder:
    return pod(name).request(cpu=cpu).priority(priority).on(on)


def proposal(scene: Scene, incoming: PodBuilder) -> Preemption:
    found = preempt(scene.engine, objects.pod(incoming, incoming=True), all_candidates=True)
    assert isinstance(found, Preemption)
    return found


def test_a_proposal_changes_nothing() -> None:
    scene = Scene(full("n1"), placed("a", "n1"), placed("b", "n1"))
    mark, before = scene.engine.mark(), digest(scene.engine)
    assert proposal(scene, asking("1")).node_name == "n1"
    with patch("service.engine.state.pods.importance.DEPTH_MAX", 1):
        scene.put(placed("c", "n1", cpu="0"))
        proposal(scene, asking("1"))
        scene.engine.undo(mark)
    assert scene.engine.mark() == mark
    assert digest(scene.engine) == before


def test_what_comes_and_goes_between_two_questions_is_seen() -> None:
    scene = Scene(full("n1"), placed("a", "n1", 5), placed("b", "n1", 5))
    assert proposal(scene, asking("1")).victims.pods[0].priority == 5
    scene.put(full("n2"), placed("c", "n2", 1), placed("d", "n2", 1))
    assert proposal(scene, asking("1")).node_name == "n2"
    for number in range(20):
        scene.put(placed(f"small-{number}", "n1", 5, cpu="1m"))
    scene.engine.delete_node("n2")
    assert proposal(scene, asking("1")).node_name == "n1"
    scene.put(full("n2"))
    assert set(proposal(scene, asking("1")).candidates or ()) == {"n1", "n2"}


def test_a_pod_whose_start_nobody_reported_counts_from_its_creation() -> None:
    old, young = placed("old", "n1"), placed("young", "n1")
    old["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    young["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    scene = Scene(full("n1"), young, old)
    assert [each.name for each in proposal(scene, asking("1")).victims.pods] == ["young"]


def test_two_pods_that_ask_alike_may_take_different_ones_of_equal_nodes() -> None:
    things = [full(f"n{number}") for number in range(20)]
    pods = [placed(f"p{number}-{k}", f"n{number}") for number in range(20) for k in (1, 2)]
    scene = Scene(*things, *pods)
    chosen = {proposal(scene, asking("1", f"urgent-{number}")).node_name for number in range(10)}
    assert len(chosen) > 1


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([], "no nodes available to schedule pods"),
        ([full("n1")], "0/1 nodes are available: pod affinity terms conflict. not found"),
    ],
)
def test_where_preemption_is_not_asked_the_message_says_so(nodes: list[Any], message: str) -> None:
    scene, names = Scene(*nodes), asking("1")
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n1", "n2")]
    required = {"nodeSelectorTerms": [{"matchFields": fields}]}
    names["spec"]["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
    }
    incoming = objects.pod(names, incoming=True)
    refusal = place(scene.engine, incoming)
    found = preempt(scene.engine, incoming)
    assert isinstance(refusal, Refusal)
    assert isinstance(found, NoPreemption)
    assert (found.why, found.message_after(refusal.message)) == (None, message)


def test_the_only_pods_that_affinity_asks_for_may_go_if_the_pod_begins_its_group() -> None:
    wanted = asking("2").label(app="web").require_affinity("host", matching(app="web"))
    scene = Scene(full("n1"), placed("a", "n1", cpu="2").label(app="web"))
    assert [each.name for each in proposal(scene, wanted).victims.pods] == ["a"]


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (None, "0/1 nodes are available: 1 Preemption is not helpful for scheduling."),
        ("Never", "not eligible due to preemptionPolicy=Never."),
    ],
)
def test_preemption_is_asked_where_device_claims_refuse_all_nodes(
    policy: str | None, why: str
) -> None:
    scene, claiming = Scene(full("n1"), kubernetes="1.36"), asking("1")
    claiming["spec"]["resourceClaims"] = [{"name": "d", "resourceClaimName": "absent"}]
    claiming["spec"]["preemptionPolicy"] = policy
    incoming = objects.pod(claiming, incoming=True)
    found = preempt(scene.engine, incoming)
    assert isinstance(found, NoPreemption)
    full_message = found.message_after("No.")
    assert full_message == f"No. no new claims to deallocate, preemption: {why}"
