"""Profiles chosen by `schedulerName`: plugins on or off, weights, arguments."""

from typing import Any

import pytest

from service.engine import Cluster, UnknownSchedulerError, explain, place
from service.model.cluster.cluster_config import parse_config
from service.model.core.primitives import Taint
from service.model.nodes.node import Namespace, Node
from service.model.pods.pod import Pod
from tests.engine import objects

ENFORCED = "node(s) didn't match scheduler-enforced node affinity"


def cluster(profile: dict[str, Any], **settings: Any) -> Cluster:
    """Two nodes: `tainted` in zone a, `small` in zone b; one profile called `own`."""
    profiles = [{"schedulerName": "own", **profile}]
    made = Cluster(parse_config({"profiles": profiles, **settings}))
    made.put_namespace(Namespace(name="default", labels={}))
    taint = Taint(key="dedicated", effect="NoSchedule")
    made.put_node(
        Node(
            name="tainted",
            labels={"zone": "a"},
            allocatable={"cpu": "8", "memory": "8Gi", "pods": "10"},
            taints=(taint,),
        )
    )
    made.put_node(
        Node(
            name="small",
            labels={"zone": "b"},
            allocatable={"cpu": "2", "memory": "8Gi", "pods": "10"},
        )
    )
    return made


def pod(scheduler: str = "own") -> Pod:
    container = {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    spec = {"schedulerName": scheduler, "containers": [container]}
    return objects.pod({"metadata": {"name": "p"}, "spec": spec}, incoming=True)


def test_a_filter_that_a_profile_switches_off_excludes_nothing() -> None:
    off = cluster({"plugins": {"filter": {"disabled": [{"name": "TaintToleration"}]}}})
    assert explain(off, pod()).feasible == ["small", "tainted"]
    assert explain(off, pod("default-scheduler")).feasible == ["small"]


def test_added_affinity_holds_for_all_pods_of_the_profile_and_gives_its_own_reason() -> None:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    arguments = {"name": "NodeAffinity", "args": {"addedAffinity": required}}
    enforcing = cluster({"pluginConfig": [arguments]})
    answer = explain(enforcing, pod())
    assert answer.filters["NodeAffinity"] == {"small": [ENFORCED]}
    assert answer.feasible == []
    assert explain(enforcing, pod("default-scheduler")).feasible == ["small"]


def test_a_profiles_scoring_strategy_and_shape_decide_its_scores() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    strategy = {
        "type": "RequestedToCapacityRatio",
        "resources": [{"name": "cpu", "weight": 1}],
        "requestedToCapacityRatio": {"shape": shape},
    }
    arguments = {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}
    ratio = cluster({"pluginConfig": [arguments]})
    assert explain(ratio, pod()).scores["NodeResourcesFit"] == {"small": 50}


def told(plugin: str, **arguments: Any) -> dict[str, Any]:
    """A profile with arguments for one plugin."""
    return {"pluginConfig": [{"name": plugin, "args": arguments}]}


def test_a_strategy_of_a_profile_comes_before_the_clusters() -> None:
    least = {"type": "LeastAllocated"}
    own = cluster(told("NodeResourcesFit", scoringStrategy=least), scoringStrategy="MostAllocated")
    assert explain(own, pod()).scores["NodeResourcesFit"] == {"small": 68}
    assert explain(own, pod("default-scheduler")).scores["NodeResourcesFit"] == {"small": 31}


def test_the_resources_of_a_profile_are_those_that_are_balanced() -> None:
    name = "NodeResourcesBalancedAllocation"
    own = cluster(told(name, resources=[{"name": "memory"}]), kubernetes="1.35")
    assert explain(own, pod()).scores[name] == {"small": 100}
    assert explain(own, pod("default-scheduler")).scores[name] == {"small": 81}


@pytest.mark.parametrize(
    "arguments", [{"hardPodAffinityWeight": 0}, {"ignorePreferredTermsOfExistingPods": True}]
)
def test_how_a_profile_weighs_the_affinity_of_placed_pods_comes_before_the_clusters(
    arguments: dict[str, Any],
) -> None:
    own = cluster(told("InterPodAffinity", **arguments), hardPodAffinityWeight=7)
    term = {"labelSelector": {}, "topologyKey": "zone"}
    required = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    spec = {"nodeName": "small", "containers": [{"name": "c"}], "affinity": required}
    own.put_pod(objects.pod({"metadata": {"name": "placed"}, "spec": spec}))
    assert "InterPodAffinity" in explain(own, pod()).score_skipped
    assert "InterPodAffinity" in explain(own, pod("default-scheduler")).scores


def constraints(made: Cluster, scheduler: str) -> list[tuple[str, int, str]]:
    """Return the constraints of pods that have none of their own."""
    rules = made.profiles[scheduler].rules.constraints
    return [(each.topology_key, each.max_skew, each.when_unsatisfiable) for each in rules]


def test_default_constraints_of_a_profile_come_before_the_clusters() -> None:
    settings = {"defaultTopologySpreadConstraints": [{"topologyKey": "rack"}]}
    own = cluster(
        told("PodTopologySpread", defaultConstraints=[{"topologyKey": "row"}]), **settings
    )
    assert constraints(own, "own") == [("row", 1, "DoNotSchedule")]
    assert constraints(own, "default-scheduler") == [("rack", 1, "DoNotSchedule")]


def test_the_system_default_constraints_are_kubernetes_two() -> None:
    own = cluster(told("PodTopologySpread", defaultingType="System"))
    assert constraints(own, "own") == [
        ("kubernetes.io/hostname", 3, "ScheduleAnyway"),
        ("topology.kubernetes.io/zone", 5, "ScheduleAnyway"),
    ]
    assert constraints(own, "default-scheduler") == []


def test_a_score_that_a_profile_switches_off_is_neither_counted_nor_called_skipped() -> None:
    off = cluster({"plugins": {"score": {"disabled": [{"name": "*"}]}}})
    answer = explain(off, pod())
    assert (answer.scores, answer.score_skipped, answer.total) == ({}, [], {"small": 0})


def test_a_scheduler_that_is_no_profile_is_unknown() -> None:
    with pytest.raises(UnknownSchedulerError):
        place(cluster({}), pod("nobody"))
