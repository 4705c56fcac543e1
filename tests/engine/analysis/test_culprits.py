"""What stands against a pod on one node: the rule, the pods, the domain, what is missing."""

from typing import ClassVar

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis.stateful import invariant

from service.engine import check
from service.engine.rules.culprits import PODS_MAX, culprits
from tests.builders import matching, node, pod, requirement
from tests.engine import objects
from tests.engine.machine import EngineAgainstReference
from tests.engine.scene import Scene, nodes
from tests.seeds import examples

AFFINITY = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution"
ANTI_AFFINITY = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"
WEB, DB = matching(app="web"), matching(app="db")
GONE_WITH_THE_PODS = {
    "node(s) didn't match pod anti-affinity rules",
    "node(s) would exceed maxPerDomain of pod anti-affinity rules",
    "node(s) didn't satisfy existing pods anti-affinity rules",
    "node(s) didn't have free ports for the requested pod ports",
}


def told(scene, asked, node_name):
    """Plugin, rule and all that is not empty of each culprit."""
    return [
        {
            name: value
            for name, value in msgspec.to_builtins(each).items()
            if value and name not in ("node", "reason")
        }
        for each in culprits(scene.engine, objects.pod(asked, incoming=True), node_name)
    ]


def test_a_pods_own_rule_names_the_pods_that_it_is_about_and_their_domain():
    scene = Scene(*nodes(a1="a", a2="a", b1="b"), pod("db-0").label(app="db").on("a2"))
    asked = pod("new").require_anti_affinity("node", WEB).require_anti_affinity("zone", DB)
    assert told(scene, asked, "a1") == [
        {
            "plugin": "InterPodAffinity",
            "rule": f"{ANTI_AFFINITY}[1]",
            "pods": [{"namespace": "default", "name": "db-0", "rule": None}],
            "domain": {"key": "zone", "value": "a", "count": 1},
        }
    ]
    assert told(scene, asked, "b1") == []


def test_a_rule_of_placed_pods_is_told_by_its_place_in_their_manifests():
    owner = pod("db-0").label(app="db").require_anti_affinity("node", DB)
    scene = Scene(*nodes(a1="a", a2="a"), owner.require_anti_affinity("zone", WEB).on("a1"))
    (culprit,) = told(scene, pod("new").label(app="web"), "a2")
    assert "rule" not in culprit
    assert culprit["pods"] == [
        {"namespace": "default", "name": "db-0", "rule": f"{ANTI_AFFINITY}[1]"}
    ]


def test_affinity_lacks_pods_and_names_none():
    """Where each term is met by itself, only the unmet one is told; Kubernetes wants one pod for all."""
    scene = Scene(*nodes(a1="a", b1="b"), requiredAffinityTerms="PerTerm")
    scene.put(pod("db-0").label(app="db").on("b1"))
    scene.put(pod("web-0").label(app="web").on("a1"))
    asked = pod("new").require_affinity("zone", WEB).require_affinity("zone", DB)
    wanting = {"plugin": "InterPodAffinity", "rule": f"{AFFINITY}[1]"}
    assert told(scene, asked, "a1") == [
        wanting | {"domain": {"key": "zone", "value": "a", "count": 0}}
    ]
    scene.put(node("bare"))
    bare = {"key": "zone", "value": None, "count": 0}
    assert [each["domain"] for each in told(scene, asked, "bare")] == [bare, bare]


def test_spread_tells_the_skew_with_the_pod_and_a_node_outside_all_domains():
    web = pod("new").label(app="web").spread(5, "node").spread(1, "zone")
    scene = Scene(*nodes(a1="a", b1="b"), node("bare").label(node="bare"))
    scene.put(*(pod(f"web-{number}").label(app="web").on("a1") for number in range(2)))
    (culprit,) = told(scene, web, "a1")
    assert culprit["rule"] == "spec.topologySpreadConstraints[1]"
    assert culprit["domain"] == {"key": "zone", "value": "a", "count": 2, "skew": 3}
    assert [each["name"] for each in culprit["pods"]] == ["web-0", "web-1"]
    assert told(scene, web, "bare") == [
        {"plugin": "PodTopologySpread", "rule": "spec.topologySpreadConstraints[1]"}
    ]


def test_only_the_first_pods_are_named_and_the_others_counted():
    crowd = [pod(f"web-{number:02}").label(app="web").on("a1") for number in range(PODS_MAX + 3)]
    scene = Scene(*nodes(a1="a"), *crowd)
    (culprit,) = told(scene, pod("new").require_anti_affinity("zone", WEB), "a1")
    assert len(culprit["pods"]) == PODS_MAX
    assert culprit["otherPods"] == 3
    assert culprit["domain"]["count"] == PODS_MAX + 3


def test_what_a_node_lacks_is_exactly_what_would_be_enough():
    small = node("n1").allocatable(cpu="1", memory="1Gi", pods="1")
    scene = Scene(small, pod("there").request(cpu="300m").on("n1"))
    asked = pod("new").request(cpu="1500m", memory="2Gi")
    missing = [each["missing"] for each in told(scene, asked, "n1")]
    assert missing == [{"pods": "1"}, {"cpu": "800m"}, {"memory": "1073741824"}]
    scene.put(small.allocatable(cpu="1800m", memory="2Gi", pods="2"))
    assert told(scene, asked, "n1") == []
    scene.put(small.allocatable(cpu="1799m", memory="2Gi", pods="2"))
    assert [each["missing"] for each in told(scene, asked, "n1")] == [{"cpu": "1m"}]


def test_a_port_names_who_holds_it_and_a_selection_its_rule():
    scene = Scene(*nodes(n1="a"), pod("web-0").host_port(80).on("n1"))
    holder = {"namespace": "default", "name": "web-0", "rule": None}
    assert told(scene, pod("new").host_port(80), "n1") == [
        {"plugin": "NodePorts", "pods": [holder]}
    ]
    asked = pod("new").node_selector(zone="a").require_node(requirement("disk", "In", "ssd"))
    required = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    assert told(scene, asked, "n1") == [{"plugin": "NodeAffinity", "rule": required}]
    assert told(scene, pod("new").node_selector(zone="b"), "n1") == [
        {"plugin": "NodeAffinity", "rule": "spec.nodeSelector"}
    ]


class CulpritsAgainstFilters(EngineAgainstReference):
    """After each step: culprits stand where filters refuse, and without their pods these let the pod in."""

    features: ClassVar = (
        "affinity",
        "anti-affinity",
        "spread",
        "namespaces",
        "node-affinity",
        "taints",
        "ports",
        "resources",
    )

    @invariant()
    def answers_are_equal(self) -> None:
        for probe in self.probes if hasattr(self, "probes") else ():
            asked = objects.pod(probe, incoming=True)
            for name in self.reference.nodes:
                self.compare_with_filters(asked, name)

    def compare_with_filters(self, asked, name) -> None:
        verdicts = check(self.engine, asked, name)
        found = culprits(self.engine, asked, name)
        assert {each.plugin for each in found} == verdicts.keys()
        for plugin, reasons in verdicts.items():
            assert set(reasons) <= {each.reason for each in found if each.plugin == plugin}
        self.let_them_leave(asked, name, found)

    def let_them_leave(self, asked, name, found) -> None:
        mark = self.engine.mark()
        for each in found:
            if each.reason in GONE_WITH_THE_PODS:
                assert each.pods
                for culprit in each.pods:
                    if self.engine.pod(culprit.namespace, culprit.name) is not None:
                        self.engine.delete_pod(culprit.namespace, culprit.name)
        left = {
            reason for reasons in check(self.engine, asked, name).values() for reason in reasons
        }
        assert not left & GONE_WITH_THE_PODS
        self.engine.undo(mark)


TestCulpritsAgainstFilters = CulpritsAgainstFilters.TestCase
TestCulpritsAgainstFilters.settings = settings(
    max_examples=examples(25),
    stateful_step_count=12,
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
