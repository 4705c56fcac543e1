"""Settings: defaults, presets, what is refused, and what profiles come down to."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from service.model.cluster.cluster_config import ClusterConfig, parse_config
from service.model.cluster.plugin_args import (
    BalancedAllocationArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
)
from service.model.cluster.plugin_rules import KNOWN, filtering, scoring
from service.model.core.errors import InvalidManifest
from tests import strategies

FEATURES = "NodeDeclaredFeatures"
SHAPE = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}


def errors(settings: Any) -> dict[str, str]:
    with pytest.raises(InvalidManifest) as refused:
        parse_config(settings)
    return {error.field: error.message for error in refused.value.errors}


def profile(**fields: Any) -> Any:
    return {"profiles": [{"schedulerName": "mine", **fields}]}


def resolved(**fields: Any) -> Any:
    return parse_config(profile(**fields)).scheduler_profiles()["mine"]


def test_nothing_set_and_nulls_mean_the_defaults():
    assert parse_config({}) == ClusterConfig()
    assert parse_config({"daemonNamespaces": None, "profiles": None}) == ClusterConfig()


def test_every_setting_is_shown():
    shown = json.loads(msgspec.json.encode(ClusterConfig()))
    assert shown["daemonNamespaces"] == ["kube-system"]
    assert shown["nodeTopologyKeys"] == ["kubernetes.io/hostname"]
    assert shown["affinityViolationGraceSeconds"] == 30
    assert parse_config(shown) == ClusterConfig()


@given(st.data())
def test_what_is_shown_reads_as_the_same_configuration(data):
    config = parse_config(data.draw(strategies.configs(data.draw(strategies.worlds()))))
    assert parse_config(json.loads(msgspec.json.encode(config))) == config


PARTS = (
    ("emptyNodeSelectorTerm", "empty_term_matches_all", "MatchNone", "MatchAll"),
    ("requiredAffinityTerms", "affinity_per_term", "SamePod", "PerTerm"),
    ("emptyNamespaceList", "empty_namespaces_mean_all", "OwnNamespace", "AllNamespaces"),
    ("preferredTermWeight", "weight_per_term", "PerPod", "PerTerm"),
)


@pytest.mark.parametrize(("setting", "part", "kubernetes", "documented"), PARTS)
def test_the_preset_sets_four_parts_and_each_can_be_set_by_itself(
    setting, part, kubernetes, documented
):
    preset = {"semantics": "DesignDocuments"}
    assert not getattr(parse_config({}), part)
    assert getattr(parse_config(preset), part)
    assert getattr(parse_config({setting: documented}), part)
    assert not getattr(parse_config(preset | {setting: kubernetes}), part)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ([], ""),
        ({"daemonNamespace": []}, "daemonNamespace"),
        ({"semantics": "K8s"}, "semantics"),
        ({"hardPodAffinityWeight": 101}, "hardPodAffinityWeight"),
        ({"hardPodAffinityWeight": 1.5}, "hardPodAffinityWeight"),
        ({"daemonNamespaces": ["A"]}, "daemonNamespaces[0]"),
        ({"nodeTopologyKeys": [""]}, "nodeTopologyKeys[0]"),
        ({"symmetricPreferredAffinity": "yes"}, "symmetricPreferredAffinity"),
        ({"scoringStrategy": "RequestedToCapacityRatio"}, "requestedToCapacityRatio"),
        ({"requestedToCapacityRatio": {"shape": []}}, "requestedToCapacityRatio.shape"),
        (
            {"requestedToCapacityRatio": {"shape": [{"utilization": 5, "score": 11}]}},
            "requestedToCapacityRatio.shape[0].score",
        ),
        (
            {"requestedToCapacityRatio": {"shape": [{"utilization": 5, "score": 1}] * 2}},
            "requestedToCapacityRatio.shape[1].utilization",
        ),
        (
            {
                "defaultTopologySpread": "System",
                "defaultTopologySpreadConstraints": [{"topologyKey": "zone"}],
            },
            "defaultTopologySpreadConstraints",
        ),
        ({"defaultTopologySpread": "system"}, "defaultTopologySpread"),
        (
            {"defaultTopologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 0}]},
            "defaultTopologySpreadConstraints[0].maxSkew",
        ),
        ({"priorityClasses": {"high": 1_000_000_001}}, "priorityClasses[high]"),
        (
            {
                "priorityClasses": {
                    "one": {"value": 1, "globalDefault": True},
                    "two": {"value": 1, "globalDefault": True},
                }
            },
            "priorityClasses[two].globalDefault",
        ),
        ({"priorityClasses": {"high": {"globalDefault": True}}}, "priorityClasses[high].value"),
        (
            {"priorityClasses": {"high": {"value": 1, "preemptionPolicy": "Always"}}},
            "priorityClasses[high].preemptionPolicy",
        ),
        (
            {"priorityClasses": {"high": {"value": 1, "global": True}}},
            "priorityClasses[high].global",
        ),
        ({"priorityClasses": {"system-mine": 1}}, "priorityClasses[system-mine]"),
        ({"groupSearchSteps": 0}, "groupSearchSteps"),
        ({"evictionsPerMinute": 0}, "evictionsPerMinute"),
        ({"affinityViolationGraceSeconds": -1}, "affinityViolationGraceSeconds"),
        ({"antiAffinityVictim": "Youngest"}, "antiAffinityVictim"),
        ({"opportunityCostBasis": "Smallest"}, "opportunityCostBasis"),
        ({"limitedResources": [{}]}, "limitedResources[0].resource"),
        (
            {"limitedResources": [{"resource": "pods", "matchScopes": [{"scopeName": "All"}]}]},
            "limitedResources[0].matchScopes[0].scopeName",
        ),
        (profile(schedulerName=""), "profiles[0].schedulerName"),
        (
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
            "profiles[1].schedulerName",
        ),
        (profile(plugins={"bind": {}}), "profiles[0].plugins.bind"),
        (
            profile(plugins={"filter": {"enabled": [{"name": "ImageLocality"}]}}),
            "profiles[0].plugins.filter.enabled[0].name",
        ),
        (
            profile(plugins={"score": {"enabled": [{"name": "NodeName"}]}}),
            "profiles[0].plugins.score.enabled[0].name",
        ),
        (
            profile(plugins={"multiPoint": {"enabled": [{"name": "NodeName"}] * 2}}),
            "profiles[0].plugins.multiPoint.enabled[1].name",
        ),
        (
            profile(pluginConfig=[{"name": "NodeName", "args": {"a": 1}}]),
            "profiles[0].pluginConfig[0].args",
        ),
        (
            profile(pluginConfig=[{"name": "InterPodAffinity", "args": {"weight": 1}}]),
            "profiles[0].pluginConfig[0].args.weight",
        ),
        (
            profile(
                pluginConfig=[
                    {
                        "name": "PodTopologySpread",
                        "args": {
                            "defaultingType": "System",
                            "defaultConstraints": [{"topologyKey": "zone"}],
                        },
                    }
                ]
            ),
            "profiles[0].pluginConfig[0].args.defaultConstraints",
        ),
        (
            profile(
                pluginConfig=[
                    {
                        "name": "NodeResourcesFit",
                        "args": {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
                    }
                ]
            ),
            "profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio",
        ),
    ],
)
def test_a_wrong_setting_is_named(settings, field):
    assert list(errors(settings)) == [field]


def test_an_unknown_plugin_is_refused_with_the_known_ones():
    unknown = profile(plugins={"multiPoint": {"disabled": [{"name": "NodeNames"}]}})
    (message,) = errors(unknown).values()
    assert all(name in message for name in KNOWN)
    assert "did you mean NodeName?" in message


@pytest.mark.parametrize(
    ("named", "field"),
    [
        (
            {"plugins": {"filter": {"enabled": [{"name": FEATURES}]}}},
            "plugins.filter.enabled[0].name",
        ),
        (
            {"plugins": {"multiPoint": {"disabled": [{"name": FEATURES}]}}},
            "plugins.multiPoint.disabled[0].name",
        ),
        ({"pluginConfig": [{"name": FEATURES, "args": {}}]}, "pluginConfig[0].name"),
    ],
)
def test_profiles_name_only_plugins_of_the_clusters_version(named, field):
    told = errors(profile(**named) | {"kubernetes": "1.35"})
    assert told == {f"profiles[0].{field}": "is no plugin of Kubernetes 1.35"}
    parse_config(profile(**named) | {"kubernetes": "1.36"})


@pytest.mark.parametrize("kubernetes", ["1.36", "1.37"])
def test_later_versions_filter_by_declared_features_unless_a_profile_does_not(kubernetes):
    (default,) = parse_config({"kubernetes": kubernetes}).scheduler_profiles().values()
    assert default.filters == frozenset(filtering())
    off = profile(plugins={"filter": {"disabled": [{"name": FEATURES}]}})
    config = parse_config(off | {"kubernetes": kubernetes})
    assert FEATURES not in config.scheduler_profiles()["mine"].filters


def test_all_wrong_settings_are_named_at_once():
    assert set(errors({"semantics": 1, "unknown": 2, "evictionsPerMinute": "many"})) == {
        "semantics",
        "unknown",
        "evictionsPerMinute",
    }


def test_the_built_in_priority_classes_are_always_there():
    config = parse_config({"priorityClasses": {"high": 1_000}})
    assert config.priority_of("high") == 1_000
    assert config.priority_of("system-node-critical") == 2_000_001_000
    assert config.priority_of("system-cluster-critical") == 2_000_000_000
    assert config.priority_of("low") is None


def test_a_limited_resource_matches_a_scope_that_exists_by_default():
    scope = {"scopeName": "CrossNamespaceAffinity"}
    config = parse_config({"limitedResources": [{"resource": "pods", "matchScopes": [scope]}]})
    assert config.limited_resources[0].match_scopes[0].operator == "Exists"


# Profiles


def test_the_default_profile_always_exists_and_has_the_default_plugins_and_weights():
    (default,) = parse_config({}).scheduler_profiles().values()
    assert default.scheduler_name == "default-scheduler"
    assert default.filters == frozenset(filtering())
    assert default.weights == scoring()
    assert "default-scheduler" in parse_config(profile()).scheduler_profiles()


def test_multi_point_switches_a_plugin_everywhere():
    plugins = {"multiPoint": {"disabled": [{"name": "TaintToleration"}]}}
    found = resolved(plugins=plugins)
    assert "TaintToleration" not in found.filters
    assert "TaintToleration" not in found.weights


def test_a_step_switches_a_plugin_for_itself_only():
    plugins = {"score": {"disabled": [{"name": "NodeAffinity"}]}}
    found = resolved(plugins=plugins)
    assert "NodeAffinity" in found.filters
    assert "NodeAffinity" not in found.weights


def test_all_defaults_can_be_switched_off_and_single_ones_on_again():
    everything_off = {"disabled": [{"name": "*"}]}
    enabled = [{"name": "NodeName"}, {"name": "NodeAffinity", "weight": 5}]
    found = resolved(
        plugins={
            "multiPoint": everything_off | {"enabled": enabled},
            "score": {"enabled": [{"name": "ImageLocality"}]},
        }
    )
    assert found.filters == {"NodeName", "NodeAffinity"}
    assert found.weights == {"NodeAffinity": 5, "ImageLocality": 1}


def test_a_weight_can_be_changed_at_the_step_or_everywhere():
    everywhere = {"multiPoint": {"enabled": [{"name": "TaintToleration", "weight": 9}]}}
    at_step = everywhere | {"score": {"enabled": [{"name": "TaintToleration", "weight": 4}]}}
    assert resolved(plugins=everywhere).weights == scoring() | {"TaintToleration": 9}
    assert resolved(plugins=at_step).weights["TaintToleration"] == 4


def test_arguments_of_a_profile_are_read_as_their_plugins_declare_them():
    args = {
        "NodeResourcesFit": {
            "kind": "NodeResourcesFitArgs",
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "resources": [{"name": "example.com/gpu", "weight": 3}],
                "requestedToCapacityRatio": SHAPE,
            },
        },
        "InterPodAffinity": {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": True},
        "PodTopologySpread": {"defaultConstraints": [{"topologyKey": "zone"}]},
        "NodeAffinity": {
            "addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}
            }
        },
        "NodeResourcesBalancedAllocation": {"resources": [{"name": "memory"}]},
    }  # fmt: skip
    found = resolved(pluginConfig=[{"name": name, "args": each} for name, each in args.items()])
    scoring = found.arguments_of("NodeResourcesFit", NodeResourcesFitArgs).scoring_strategy
    assert scoring.resources[0].weight == 3
    assert scoring.requested_to_capacity_ratio.shape[1].score == 10
    affinity = found.arguments_of("InterPodAffinity", InterPodAffinityArgs)
    assert affinity.hard_pod_affinity_weight == 0
    assert affinity.ignore_preferred_terms_of_existing_pods
    spread = found.arguments_of("PodTopologySpread", PodTopologySpreadArgs)
    assert spread.default_constraints[0].topology_key == "zone"
    added = found.arguments_of("NodeAffinity", NodeAffinityArgs).added_affinity
    assert added.required_during_scheduling_ignored_during_execution
    balanced = found.arguments_of("NodeResourcesBalancedAllocation", BalancedAllocationArgs)
    assert [resource.name for resource in balanced.resources] == ["memory"]


def test_arguments_that_a_profile_does_not_give_have_their_defaults():
    found = resolved()
    assert set(found.arguments) == {name for name, each in KNOWN.items() if each.plugin.arguments}
    assert found.arguments_of("InterPodAffinity", InterPodAffinityArgs) == InterPodAffinityArgs()
