"""Violations of placed pods: the documents' cases, and random histories against the reference."""

from typing import ClassVar
from unittest.mock import patch

from hypothesis import HealthCheck, settings
from hypothesis.stateful import invariant

from service.engine import check
from service.engine.rules.violations import Inspection, key_of
from tests.builders import (
    IGNORED_DURING_EXECUTION,
    REQUIRED_DURING_EXECUTION,
    matching,
    node,
    pod,
    requirement,
    service,
)
from tests.engine.machine import EngineAgainstReference
from tests.engine.scene import Scene, nodes
from tests.reference.violations import Violation, is_exempt, violations
from tests.seeds import examples

NOT_BESIDE = "node(s) didn't match pod affinity rules"
NOT_WITH_OTHERS = "node(s) didn't match pod anti-affinity rules"
RULES = ("NodeAffinity", "InterPodAffinity", "PodTopologySpread")


def found(engine):
    """All violations, as the reference tells them."""
    inspection = Inspection(engine)
    told = [
        Violation(
            *key_of(each.pod),
            each.breach.rule.path,
            each.breach.rule.execution,
            each.breach.rule.plugin,
            each.breach.reason,
            conflicts(inspection, each),
            each.breach.skew,
        )
        for pod_class in inspection.suspects(engine.placed_classes())
        for each in inspection.of(pod_class)
    ]
    return sorted(told, key=lambda each: each[:3])


def conflicts(inspection, violation):
    if violation.breach.domain_pods is None:
        return ()
    members = [key_of(member) for member, _ in inspection.members(violation.breach.domain_pods)]
    return tuple(each for each in members if each != key_of(violation.pod))


def broken(scene):
    """Pod name and rule, shortened to its kind."""
    return [
        (each.name, each.rule.removeprefix("spec.").removeprefix("affinity.").partition(".")[0])
        for each in found(scene.engine)
    ]


# S0: two services, S1 with a rule about S2


S1 = pod("s1").label(service="S1")
S2 = pod("s2").label(service="S2")
AWAY = S1.require_anti_affinity("node", matching(service="S2"))
BESIDE = S1.require_affinity("node", matching(service="S2"))


def test_s0_anti_affinity_is_symmetric_and_broken_for_its_owner_whoever_came_last():
    """S1 must not run with S2: whichever is observed there second, it is S1's rule that breaks."""
    for first, second in ((AWAY, S2), (S2, AWAY)):
        scene = Scene(*nodes(n1="a", n2="a"), first.on("n1"))
        assert broken(scene) == []
        scene.put(second.on("n1"))
        assert broken(scene) == [("s1", "podAntiAffinity")]
        assert found(scene.engine)[0].conflicts == (("default", "s2"),)
        scene.put(second.on("n2"))
        assert broken(scene) == []


def test_s0_affinity_is_not_symmetric_s1_without_s2_is_broken_s2_without_s1_is_not():
    """D06, D08: when S1 ends S2 goes on; when S2 ends S1's rule no longer holds."""
    scene = Scene(*nodes(n1="a"), BESIDE.on("n1"), S2.on("n1"))
    assert broken(scene) == []
    scene.engine.delete_pod("default", "s1")
    assert broken(scene) == []
    scene.put(BESIDE.on("n1"))
    scene.engine.delete_pod("default", "s2")
    assert broken(scene) == [("s1", "podAffinity")]
    assert found(scene.engine)[0].reason == NOT_BESIDE


def test_s0_s2_on_another_node_does_not_do():
    scene = Scene(*nodes(n1="a", n2="a"), BESIDE.on("n1"), S2.on("n2"))
    assert broken(scene) == [("s1", "podAffinity")]


def test_a_pod_that_matches_itself_satisfies_its_rule_only_while_no_other_does():
    alike = S1.require_affinity("zone", matching(service="S1"))
    scene = Scene(*nodes(n1="a", n2="b"), alike.on("n1"))
    assert broken(scene) == []
    scene.put(alike.named("other").on("n2"))
    assert broken(scene) == [("other", "podAffinity"), ("s1", "podAffinity")]
    scene.put(alike.named("other").on("n1"))
    assert broken(scene) == []


def test_the_first_pod_still_needs_the_topology_key():
    scene = Scene(node("bare"), S1.require_affinity("zone", matching(service="S1")).on("bare"))
    assert broken(scene) == [("s1", "podAffinity")]


def test_a_finished_pod_breaks_nothing_and_is_nobodys_company():
    scene = Scene(*nodes(n1="a"), BESIDE.on("n1"), S2.phase("Succeeded").on("n1"))
    assert broken(scene) == [("s1", "podAffinity")]
    scene.put(BESIDE.phase("Failed").on("n1"))
    assert broken(scene) == []


def test_pods_of_daemon_namespaces_are_no_conflict():
    daemon = pod("log", "kube-system").label(service="S2").on("n1")
    alone = S1.require_anti_affinity("node", {}, namespaceSelector={}).on("n1")
    assert broken(Scene(*nodes(n1="a"), alone, daemon)) == []
    assert broken(Scene(*nodes(n1="a"), alone, daemon, daemonNamespaces=[])) == [
        ("s1", "podAntiAffinity")
    ]


def test_daemons_break_the_rules_of_daemons_but_no_others():
    agent = pod("agent", "kube-system").require_anti_affinity("node", {}, namespaceSelector={})
    scene = Scene(*nodes(n1="a"), agent.on("n1"), S1.on("n1"))
    assert broken(scene) == []
    scene.put(pod("log", "kube-system").on("n1"))
    assert broken(scene) == [("agent", "podAntiAffinity")]


# Labels that change


def test_a_node_that_is_relabelled_breaks_each_of_its_pods_rules_by_itself():
    picky = (
        S1.node_selector(disk="ssd")
        .require_node(requirement("zone", "In", "a"), execution=REQUIRED_DURING_EXECUTION)
        .require_node(requirement("disk", "Exists"))
    )
    scene = Scene(node("n1").label(disk="ssd", zone="a"), picky.on("n1"))
    assert broken(scene) == []
    scene.put(node("n1").label(disk="hdd", zone="b"))
    assert [(each.rule, each.execution) for each in found(scene.engine)] == [
        (f"spec.affinity.nodeAffinity.{REQUIRED_DURING_EXECUTION}", "Required"),
        ("spec.nodeSelector", "Ignored"),
    ]


def test_each_variant_of_affinity_is_judged_for_itself():
    """A pod that matches only what must last does for that, though it would not at scheduling."""
    both = S1.require_affinity(
        "node", matching(service="S2"), execution=REQUIRED_DURING_EXECUTION
    ).require_affinity("node", matching(tier="gold"))
    scene = Scene(*nodes(n1="a"), both.on("n1"), S2.label(tier="gold").on("n1"))
    assert broken(scene) == []
    scene.put(S2.on("n1"))
    (only,) = found(scene.engine)
    assert only.rule == f"spec.affinity.podAffinity.{IGNORED_DURING_EXECUTION}[0]"
    scene.engine.delete_pod("default", "s2")
    assert [each.execution for each in found(scene.engine)] == ["Ignored", "Required"]


# Spreading


def test_the_skew_is_told_for_the_pods_of_the_fullest_domain():
    even = pod("p").label(app="web").spread(1, "zone")
    scene = Scene(*nodes(n1="a", n2="b"), *(even.named(f"p{i}").on("n1") for i in range(3)))
    assert [(each.name, each.skew) for each in found(scene.engine)] == [
        ("p0", 3),
        ("p1", 3),
        ("p2", 3),
    ]
    scene.put(even.named("p2").on("n2"))
    assert broken(scene) == []


def test_default_constraints_are_told_as_the_configurations():
    constraint = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    alike = [pod(f"p{i}").label(app="web").on("n1") for i in range(2)]
    scene = Scene(*nodes(n1="a", n2="b"), *alike, defaultTopologySpreadConstraints=[constraint])
    assert found(scene.engine) == []
    scene.put(service(app="web"))
    assert {each.rule for each in found(scene.engine)} == {"defaultTopologySpreadConstraints[0]"}


def test_what_a_profile_does_not_filter_by_is_no_violation():
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"filter": {"disabled": [{"name": "InterPodAffinity"}]}},
    }
    scene = Scene(*nodes(n1="a"), BESIDE.on("n1"), profiles=[profile])
    assert broken(scene) == []


# Random histories


class ViolationsAgainstReference(EngineAgainstReference):
    """After each step: equal to looking at every pod, and to what the filters say of the place."""

    features: ClassVar = (
        "affinity",
        "anti-affinity",
        "spread",
        "namespaces",
        "node-affinity",
        "taints",
    )

    @invariant()
    def answers_are_equal(self) -> None:
        if not hasattr(self, "probes"):
            return
        expected = violations(self.reference.view())
        assert found(self.engine) == expected
        with patch(
            "service.engine.rules.violations.AT_ONCE_MIN", 1
        ):  # as many classes, and those on many nodes, are
            assert found(self.engine) == expected
        self.agree_with_the_filters()

    def agree_with_the_filters(self) -> None:
        """A pod breaks a rule of its own exactly where its own rules would keep it out.

        Of siblings that break terms with `firstPodExempt`, one is kept out only by these, and breaks
        nothing.
        """
        view = self.reference.view()
        violating = {each[:2] for each in found(self.engine)}
        for placed in list(self.engine.pods()):
            slot = self.engine.nodes.slots.get(placed.node_name or "")
            if slot is None or placed.finished:
                continue
            mark = self.engine.mark()
            self.engine.delete_pod(*key_of(placed))
            refused = check(self.engine, placed, placed.node_name)
            self.engine.undo(mark)
            own = [
                reason
                for plugin in RULES
                for reason in refused.get(plugin, ())
                if "existing pods" not in reason
            ]
            violates = key_of(placed) in violating
            if is_exempt(view, self.reference.pods[key_of(placed)]):
                assert bool(own) >= violates
            else:
                assert bool(own) == violates


TestViolationsAgainstReference = ViolationsAgainstReference.TestCase
TestViolationsAgainstReference.settings = settings(
    max_examples=examples(30),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
