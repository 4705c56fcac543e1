"""The default topology spread constraints: whom they select, and what they make of services and owners.

What they make of scores is in the conformance vectors; here is what those leave out.
"""

from typing import Any

import pytest

from service.engine import digest
from service.engine.plugins.pod_topology_spread import PodTopologySpread
from service.engine.state.nodes.node_rules import ProfileRules
from service.model.cluster.cluster_config import parse_config
from tests.builders import PodBuilder, node, pod, replica_set, service, where
from tests.engine.scene import Scene, nodes

HARD = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
SYSTEM = {"defaultTopologySpread": "System"}
SPREAD = "PodTopologySpread"
ZONE = "topology.kubernetes.io/zone"


def owned(made: PodBuilder, version: str = "apps/v1") -> PodBuilder:
    return made.owned_by("ReplicaSet", "web", version)


WEB = pod("p").label(app="web")


def scene(*things: Any, **settings: Any) -> Scene:
    """Two zones, and a pod `web` in the first of them."""
    chosen = settings or {"defaultTopologySpreadConstraints": [HARD]}
    return Scene(*nodes(n1="a", n2="b"), WEB.named("q").on("n1"), *things, **chosen)


def test_without_a_service_or_an_owner_there_are_no_default_constraints() -> None:
    assert scene().feasible(WEB) == ["n1", "n2"]
    assert SPREAD in scene(**SYSTEM).explain(WEB).score_skipped


def test_a_service_that_comes_changes_or_goes_is_followed() -> None:
    told = scene()
    told.put(service(app="web"))
    assert told.feasible(WEB) == ["n2"]
    told.put(service(app="other"))
    assert told.feasible(WEB) == ["n1", "n2"]
    told.put(service(app="web"))
    told.engine.delete_object("Service", "default", "web")
    assert told.feasible(WEB) == ["n1", "n2"]


def test_an_owner_counts_besides_the_services_though_it_selects_others() -> None:
    told = scene(service(app="web"), replica_set("web", where("tier", "Exists")))
    assert told.feasible(WEB) == ["n2"]
    assert told.feasible(owned(WEB)) == ["n1", "n2"]
    told.put(WEB.named("q").label(tier="x").on("n1"))
    assert told.feasible(owned(WEB)) == ["n1", "n2"], "one more is no skew: it selects not itself"
    told.put(WEB.named("r").label(tier="x").on("n1"))
    assert told.feasible(owned(WEB)) == ["n2"]


def test_an_owner_of_another_version_has_no_say() -> None:
    told = scene(replica_set("web", where("app", "Exists")))
    assert told.feasible(owned(WEB)) == ["n2"]
    assert told.feasible(owned(WEB, version="extensions/v1beta1")) == ["n1", "n2"]


def test_pods_that_differ_in_their_owner_only_are_told_apart() -> None:
    told = scene(replica_set("web", where("app", "Exists")))
    assert told.feasible(WEB) == ["n1", "n2"]
    assert told.feasible(owned(WEB)) == ["n2"]
    told.put(owned(WEB).named("r").on("n1"), WEB.named("r").on("n1"))
    assert told.feasible(owned(WEB)) == ["n2"]


def test_label_keys_narrow_only_a_selector_that_a_constraint_has_itself() -> None:
    keyed = HARD | {"labelSelector": {}, "matchLabelKeys": ["app"]}
    assert scene(defaultTopologySpreadConstraints=[keyed]).feasible(WEB) == ["n2"]


def test_a_profile_may_choose_otherwise_than_the_cluster() -> None:
    arguments = {"defaultingType": "List", "defaultConstraints": [HARD]}
    configured = [{"name": SPREAD, "args": arguments}]
    profiles = [{"schedulerName": "own", "pluginConfig": configured}]
    told = scene(service(app="web"), **SYSTEM, profiles=profiles)
    assert told.feasible(WEB) == ["n1", "n2"]
    assert SPREAD in told.explain(WEB).scores
    assert told.feasible(WEB.scheduler_name("own")) == ["n2"]


@pytest.mark.parametrize(
    ("cluster", "profile", "keys"),
    [
        ("System", {}, ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]),
        ("System", {"defaultingType": "List"}, []),
        ("System", {"defaultConstraints": [{"topologyKey": "rack"}]}, ["rack"]),
        ("List", {"defaultingType": "List"}, ["zone"]),
        ("List", {"defaultConstraints": []}, []),
    ],
)
def test_a_profile_takes_the_clusters_default_constraints_unless_it_says_otherwise(
    cluster: str, profile: dict[str, Any], keys: list[str]
) -> None:
    settings: dict[str, Any] = {"defaultTopologySpread": cluster}
    if cluster == "List":
        settings["defaultTopologySpreadConstraints"] = [{"topologyKey": "zone"}]
    arguments = [{"name": SPREAD, "args": profile}]
    settings["profiles"] = [{"schedulerName": "default-scheduler", "pluginConfig": arguments}]
    config = parse_config(settings)
    resolved = config.scheduler_profiles()["default-scheduler"]
    rules = PodTopologySpread.of(resolved, config).added_to(ProfileRules())
    assert [each.topology_key for each in rules.constraints] == keys
    assert rules.constraints_need_keys == (len(keys) < 2)


def test_built_in_constraints_rank_nodes_that_lack_a_key() -> None:
    """A node in no zone shares the domain of those whose zone is empty."""
    empty = node("n1").label({ZONE: ""})
    told = Scene(empty, node("n2"), node("n3").label({ZONE: "z"}), service(app="web"), **SYSTEM)
    told.put(*(WEB.named(f"q{i}").on("n2") for i in range(3)))
    scores = told.explain(WEB).scores[SPREAD]
    assert scores["n1"] < scores["n3"]
    assert scores["n2"] == max(scores.values()), "no constraint is about a node without keys"


@pytest.mark.parametrize("settings", [SYSTEM, {"defaultTopologySpreadConstraints": [HARD]}])
def test_an_engine_that_followed_services_counts_like_one_that_began_with_them(settings) -> None:
    things = (service(app="web"), replica_set("web", where("app", "Exists")))
    pods = [owned(WEB).named("a").on("n1"), WEB.named("b").on("n2"), owned(WEB).named("c")]
    late = scene(*pods, **settings)
    mark = late.engine.mark()
    late.put(service(app="other"), *things)
    late.engine.undo(mark)
    assert digest(late.engine) == digest(scene(*pods, **settings).engine)
    late.put(*things)
    assert digest(late.engine) == digest(scene(*things, *pods, **settings).engine)


def test_other_objects_cost_nothing_where_there_are_no_default_constraints() -> None:
    told = scene(defaultTopologySpread="List")
    before = told.engine.interned()
    told.feasible(owned(WEB))
    told.put(service(app="web"), replica_set("web", where("app", "Exists")))
    told.feasible(owned(WEB).label(app="web"))
    assert told.engine.interned() == before, "classes are shared whatever the owner"
