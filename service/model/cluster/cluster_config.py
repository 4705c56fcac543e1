"""A cluster's configuration: each setting with its default and meaning."""

from collections.abc import Mapping
from typing import Literal, TypeVar, cast

import msgspec

from service.model.cluster.admission_policies import AdmissionPolicy
from service.model.cluster.config_rules import CONFIG_CHECKS, LIMITED_RESOURCE, SETTINGS
from service.model.cluster.extender_config import Extender
from service.model.cluster.features import Features
from service.model.cluster.plugin_args import (
    RequestedToCapacityRatio,
    ResourceWeight,
    ScoringStrategy,
    ShapePoint,
    StrategyType,
)
from service.model.cluster.plugin_rules import ALL, KNOWN, Arguments
from service.model.cluster.profiles import Profile
from service.model.cluster.versions.known import NEWEST, UNNAMED, VERSIONS, VersionName
from service.model.cluster.versions.version import SchedulerVersion
from service.model.core.errors import ObjectUnreadable, PluginMissing
from service.model.core.primitives import CLUSTER_KIND, CLUSTER_NAME, Strict
from service.model.core.type_rules import declared
from service.model.core.validators import Limits, Problems, list_of, without_nulls
from service.model.pods.pod import DEFAULT_SCHEDULER, PodSpec, TopologySpreadConstraint
from service.model.pods.requests import ResizeRules
from service.model.policies.priority_classes import PriorityClassEntry
from service.model.policies.quota_rules import SYSTEM_PRIORITY_CLASSES
from service.model.policies.quota_spec import MatchScope

__all__ = [
    "ClusterConfig",
    "LimitedResource",
    "PreemptionScope",
    "ResourceWeight",
    "SchedulerProfile",
    "ShapePoint",
    "parse_config",
    "stored_config",
    "usable_config",
]


class LimitedResource(Strict, frozen=True, kw_only=True):
    """A resource that pods in these scopes may use only where a quota of the scope covers them."""

    resource: str
    """The resource, such as `pods`."""
    match_scopes: tuple[MatchScope, ...] = ()
    """Each of these that a pod is in needs a quota of that scope."""


PreemptionScope = Literal["Node", "Domains"]
"""The pods that may be evicted so that a pod fits on a node: only pods of that node, as in
Kubernetes, or also pods on other nodes that cause a rule to exclude the node."""

A = TypeVar("A", bound=Arguments)


class SchedulerProfile(msgspec.Struct, frozen=True, kw_only=True):
    """A scheduler profile with all defaults resolved."""

    scheduler_name: str
    filters: frozenset[str]
    weights: Mapping[str, int]
    """The weights of the enabled scoring plugins."""
    arguments: Mapping[str, Arguments]
    """The arguments of each plugin that accepts any."""

    def arguments_of(self, plugin: str, kind: type[A]) -> A:
        """Return a plugin's arguments, which must be of the type `kind`."""
        arguments = self.arguments[plugin]
        assert isinstance(arguments, kind)
        return arguments


class ClusterConfig(Strict, frozen=True, kw_only=True, omit_defaults=False):
    """`GET/PATCH /v1/clusters/{cluster}`: `config`. Encoded, it shows every setting."""

    kubernetes: VersionName = NEWEST
    """The Kubernetes version whose kube-scheduler decides. A cluster keeps its version until another
    one is set; new clusters get the newest."""
    kubernetes_rules: Literal["Implemented", "Documented"] = "Implemented"
    """Which rules count where the code of this version's kube-scheduler departs from what Kubernetes
    documents: those that it implements, or the documented ones."""
    semantics: Literal["Kubernetes", "DesignDocuments"] = "Kubernetes"
    """Preset for the four settings that follow: one that is null takes the preset's choice."""
    empty_node_selector_term: Literal["MatchNone", "MatchAll"] | None = None
    """What a node selector term without requirements matches."""
    required_affinity_terms: Literal["SamePod", "PerTerm"] | None = None
    """Whether one pod must match all required affinity terms, or each term may have its own."""
    empty_namespace_list: Literal["OwnNamespace", "AllNamespaces"] | None = None
    """What an affinity term's `namespaces: []` means."""
    preferred_term_weight: Literal["PerPod", "PerTerm"] | None = None
    """Whether a preferred term's weight counts for each matching pod, or once."""

    hard_pod_affinity_weight: int = 1
    """Weight, 0 to 100, of placed pods' required affinity as a preference."""
    symmetric_preferred_affinity: bool = True
    """Whether placed pods' preferred affinity attracts the pods that it names."""
    symmetric_preferred_anti_affinity: bool = True
    """Whether placed pods' preferred anti-affinity repels the pods that it names."""

    daemon_namespaces: tuple[str, ...] = ("kube-system",)
    """Required anti-affinity is left out between pods in these namespaces and all other pods."""
    restrict_all_namespaces_anti_affinity: bool = True
    """Whether required anti-affinity against all namespaces is denied but for some keys."""
    node_topology_keys: tuple[str, ...] = ("kubernetes.io/hostname",)
    """The keys for which it is allowed, since their domains are single nodes."""
    trusted_namespaces: tuple[str, ...] = ()
    """The namespaces whose pods may have it for every key."""

    default_topology_spread: Literal["List", "System"] = "List"
    """Which constraints pods have that have none of their own: those of
    `defaultTopologySpreadConstraints`, or Kubernetes' built-in ones."""
    default_topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    """The constraints of pods that have none of their own. One without a `labelSelector` selects
    pods as the services and the owner of the pod do, and is left out if the pod has neither."""
    scoring_strategy: StrategyType = "LeastAllocated"
    """How NodeResourcesFit scores."""
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None
    """The shape for the strategy RequestedToCapacityRatio, which needs one."""
    profiles: tuple[Profile, ...] = ()
    """Scheduler profiles by `schedulerName`; `default-scheduler` always exists. They can name only
    plugins that Kubernetes has in the version that the cluster follows."""

    device_claims: Literal["Allocate", "Refuse", "Ignore"] = "Allocate"
    """Whether pods that claim devices (`resourceClaims`) are given them, refused, or placed as if they
    claimed none."""
    volumes: Literal["Honor", "Ignore"] = "Honor"
    """Whether the volumes of pods decide where they can go."""

    place_pending_pods: bool = True
    """Whether pods without a node are placed as soon as that is possible."""
    device_search_steps: int = 5_000
    """How many devices are tried on each node, at most, to find those that a pod claims."""
    group_search_steps: int = 10_000
    """After how many steps the search for a group's placement is given up."""
    priority_classes: dict[str, int | PriorityClassEntry] = msgspec.field(default_factory=dict)
    """Priority classes by name, as a number or with what else a PriorityClass says; the two
    `system-…-critical` are built in."""
    limited_resources: tuple[LimitedResource, ...] = ()
    """Resources that may be used only under a quota."""
    features: Features = msgspec.field(default_factory=Features)
    """Features of the design documents that can be switched off."""
    policies: tuple[AdmissionPolicy, ...] = ()
    """Expressions that have to be true of every pod that is created or changed."""
    opportunity_cost_basis: Literal["Largest", "Average"] = "Largest"
    """Whether exclusive pods without a node are charged for the largest domain or an average one."""

    queue_preemption: Literal["Never", "Evict"] = "Never"
    """Whether a pending pod that fits nowhere has pods of lower priority evicted to make room."""
    queue_preemption_scope: PreemptionScope = "Node"
    """Whether these are only pods of the node that it gets, as in Kubernetes, or with Domains also pods
    on other nodes because of which a rule refuses the node."""
    affinity_violation_grace_seconds: int = 30
    """How long required-during-execution pod affinity may be violated before an eviction."""
    anti_affinity_victim: Literal["RuleOwner", "LowestPriority"] = "RuleOwner"
    """Which pod is evicted if anti-affinity is violated."""
    evictions_per_minute: int = 60
    """How many pods are evicted in a minute at most, so that one wrong label cannot empty a cluster."""

    no_execute_taints: Literal["Evict", "Ignore"] | None = None
    """Whether pods that do not tolerate a NoExecute taint of their node are evicted; null: they are if
    `placePendingPods` is true, since otherwise somebody else runs the cluster."""
    default_not_ready_toleration_seconds: int = 300
    """How long pods stay on a node that is not ready if they say nothing of that taint."""
    default_unreachable_toleration_seconds: int = 300
    """How long pods stay on a node that is unreachable if they say nothing of that taint."""
    node_conditions: Literal["Taint", "Ignore"] | None = None
    """Whether nodes that are silent, not ready, under pressure, or without a network get Kubernetes'
    taints for that; null: they do if `placePendingPods` is true."""
    node_monitor_grace_seconds: int = 40
    """After how long without a report a node that has reported before counts as silent."""
    node_eviction_rate: float = 0.1
    """How many nodes of a zone get the taint that evicts, per second, while most of the zone is ready."""
    secondary_node_eviction_rate: float = 0.01
    """The rate for a large zone of which many nodes are not ready; a small one gets no such taint."""
    unhealthy_zone_threshold: float = 0.55
    """The share of nodes that are not ready from which on a zone counts as partially disrupted."""
    large_zone_nodes: int = 50
    """With more nodes than this a zone is large."""
    deleted_node_pods: Literal["Fail", "Keep"] | None = None
    """Whether the pods of a deleted node end as Failed, or stay as they are; null: they end if
    `placePendingPods` is true."""
    orphan_grace_seconds: int = 10
    """How long after that; until then a new node of the name has the pods again."""

    @property
    def scheduler_version(self) -> SchedulerVersion:
        """What the version of kube-scheduler decides differently from others."""
        return VERSIONS[self.kubernetes]

    @property
    def resize_rules(self) -> ResizeRules:
        """How pods count that are resized in place."""
        return self.scheduler_version.resize_rules

    @property
    def follows_code(self) -> bool:
        """Whether kube-scheduler's code counts where it departs from Kubernetes' documentation."""
        return self.kubernetes_rules == "Implemented"

    @property
    def negation_selects_all(self) -> bool:
        """Whether an incoming pod's negative `namespaceSelector` selects all namespaces."""
        return self.follows_code and self.scheduler_version.negation_selects_all

    @property
    def scores_pod_level_requests(self) -> bool:
        """Whether NodeResourcesFit scores an incoming pod's pod-level requests.

        In kube-scheduler's code, only its filter reads them.
        """
        return not self.follows_code

    @property
    def evicts_for_taints(self) -> bool:
        """Whether to evict pods that do not tolerate a NoExecute taint of their node."""
        return self._acts(self.no_execute_taints, "Evict")

    @property
    def taints_nodes(self) -> bool:
        """Whether to taint nodes according to their conditions."""
        return self._acts(self.node_conditions, "Taint")

    @property
    def fails_pods_of_deleted_nodes(self) -> bool:
        """Whether to mark the pods of a deleted node as Failed."""
        return self._acts(self.deleted_node_pods, "Fail")

    def _acts(self, setting: str | None, action: str) -> bool:
        """Return whether a setting selects `action`; if unset, `placePendingPods` decides."""
        return self.place_pending_pods if setting is None else setting == action

    @property
    def empty_term_matches_all(self) -> bool:
        """Whether a node selector term without requirements matches every node."""
        return self._part(self.empty_node_selector_term, "MatchAll")

    @property
    def affinity_per_term(self) -> bool:
        """Whether different pods may satisfy a pod's required affinity terms."""
        return self._part(self.required_affinity_terms, "PerTerm")

    @property
    def empty_namespaces_mean_all(self) -> bool:
        """Whether an affinity term's `namespaces: []` means all namespaces."""
        return self._part(self.empty_namespace_list, "AllNamespaces")

    @property
    def reads_namespace_selectors(self) -> bool:
        """Whether affinity terms may select namespaces by labels."""
        return self.features.pod_affinity_namespace_selector

    @property
    def weight_per_term(self) -> bool:
        """Whether a preferred term's weight counts once, however many pods match."""
        return self._part(self.preferred_term_weight, "PerTerm")

    @property
    def scoring(self) -> ScoringStrategy:
        """The scoring strategy of NodeResourcesFit for profiles without one."""
        return ScoringStrategy(
            type=self.scoring_strategy,
            requested_to_capacity_ratio=self.requested_to_capacity_ratio,
        )

    def priority_of(self, class_name: str) -> int | None:
        """Return the value of a priority class, or None if it does not exist."""
        entry = self.priority_class(class_name)
        return None if entry is None else entry.value

    def priority_class(self, name: str) -> PriorityClassEntry | None:
        """Return the priority class with this name, or None."""
        entry = SYSTEM_PRIORITY_CLASSES.get(name, self.priority_classes.get(name))
        return PriorityClassEntry(value=entry) if isinstance(entry, int) else entry

    def default_priority_class(self) -> str | None:
        """The name of the priority class for pods without one, or None."""
        for name, entry in self.priority_classes.items():
            if not isinstance(entry, int) and entry.global_default:
                return name
        return None

    def scheduler_profiles(self) -> dict[str, SchedulerProfile]:
        """Return all profiles by scheduler name."""
        configured = {profile.scheduler_name: profile for profile in self.profiles}
        profiles = {DEFAULT_SCHEDULER: Profile()} | configured
        version = self.scheduler_version
        return {name: _resolved(profile, version) for name, profile in profiles.items()}

    def extenders_for(self, spec: PodSpec) -> tuple[Extender, ...]:
        """Return the extenders to call for a pod, in order."""
        for profile in self.profiles:
            if profile.scheduler_name == spec.scheduler_name:
                return tuple(
                    extender for extender in profile.extenders if extender.is_interested(spec)
                )
        return ()

    def _part(self, own: str | None, documented: str) -> bool:
        """Return whether a preset choice is on, by its own setting or else by the preset."""
        if own is None:
            return self.semantics == "DesignDocuments"
        return own == documented


_LIMITED_RESOURCE = declared(LimitedResource, LIMITED_RESOURCE)
_CONFIG = declared(
    ClusterConfig,
    {**SETTINGS, "limitedResources": list_of(_LIMITED_RESOURCE)},
    also=CONFIG_CHECKS,
)


def _resolved(profile: Profile, version: SchedulerVersion) -> SchedulerProfile:
    return SchedulerProfile(
        scheduler_name=profile.scheduler_name,
        filters=profile.filters(version),
        weights=profile.weights(version),
        arguments=profile.arguments(),
    )


def parse_config(settings: object, limits: Limits | None = None) -> ClusterConfig:
    """Read a configuration from decoded JSON; absent and null settings get their defaults.

    Raises `InvalidManifest` with all settings that are unknown or invalid.
    """
    problems = Problems(limits)
    _CONFIG(settings, "", problems)
    problems.raise_any()
    present = cast("dict[str, object]", without_nulls(settings))
    return msgspec.convert(present, ClusterConfig)


_BEFORE_VERSIONS = {"kubernetes": UNNAMED, "kubernetesRules": "Documented"}
"""The settings of stored configurations that are older than these settings."""


def stored_config(body: bytes) -> ClusterConfig:
    """Decode a stored configuration, which is valid but may name unknown plugins.

    Raises:
        ObjectUnreadable: the row is damaged, or its format is unknown to this version.
    """
    try:
        present = cast("dict[str, object]", without_nulls(msgspec.json.decode(body)))
        config = msgspec.convert({**_BEFORE_VERSIONS, **present}, ClusterConfig)
        VERSIONS[config.kubernetes]
    except Exception as error:
        raise ObjectUnreadable(CLUSTER_KIND, "", CLUSTER_NAME) from error
    return config


def usable_config(body: bytes) -> ClusterConfig:
    """Decode a stored configuration, and check that it can be used for decisions.

    Raises:
        PluginMissing: the configuration names a plugin that this process does not know.
    """
    config = stored_config(body)
    for number, profile in enumerate(config.profiles):
        for field, plugin in profile.named_plugins():
            if plugin not in KNOWN and plugin != ALL:
                raise PluginMissing(f"profiles[{number}].{field}", plugin)
    return config
