"""A cluster's configuration: every setting of the semantics, its default and its meaning."""

from collections.abc import Mapping
from typing import Literal, cast

import msgspec

from service.model.errors import PluginMissing
from service.model.objects import NodeAffinity, Strict, TopologySpreadConstraint
from service.model.profiles import (
    ALL,
    DEFAULT_SCHEDULER,
    PLUGINS,
    SYSTEM_CONSTRAINTS,
    Profile,
    RequestedToCapacityRatio,
    ResourceWeight,
    ScoringStrategy,
    ShapePoint,
    StrategyType,
)
from service.model.validation.configuration import CONFIG, SYSTEM_PRIORITY_CLASSES
from service.model.validation.rules import Limits, Problems, without_nulls

__all__ = [
    "ClusterConfig",
    "LimitedResource",
    "MatchScope",
    "ResourceWeight",
    "SchedulerProfile",
    "ShapePoint",
    "parse_config",
    "stored_config",
    "usable_config",
]


class MatchScope(Strict, frozen=True, kw_only=True):
    """A quota scope that a pod must be in; PriorityClass compares with `values`."""

    scope_name: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = "Exists"
    values: tuple[str, ...] = ()


class LimitedResource(Strict, frozen=True, kw_only=True):
    """A resource that pods in these scopes may use only where a quota of the scope covers them."""

    resource: str
    match_scopes: tuple[MatchScope, ...] = ()


class SchedulerProfile(msgspec.Struct, frozen=True, kw_only=True):
    """A profile in full: where it says nothing, it has the cluster's own settings."""

    scheduler_name: str
    filters: frozenset[str]
    weights: Mapping[str, int]
    """The scoring plugins that are on, each with its weight."""
    scoring: ScoringStrategy
    balanced_resources: tuple[ResourceWeight, ...]
    hard_pod_affinity_weight: int
    ignore_preferred_terms_of_existing_pods: bool
    default_constraints: tuple[TopologySpreadConstraint, ...]
    added_affinity: NodeAffinity | None
    arguments: Mapping[str, Mapping[str, object]]
    """What is configured for each plugin, as it is written."""


class ClusterConfig(Strict, frozen=True, kw_only=True, omit_defaults=False):
    """`GET/PATCH /v1/clusters/{cluster}`: `config`. Encoded, it shows every setting."""

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
    """Pods in these namespaces do not count for required anti-affinity, and are not kept out by it."""
    restrict_all_namespaces_anti_affinity: bool = True
    """Whether required anti-affinity against all namespaces is denied but for some keys."""
    node_topology_keys: tuple[str, ...] = ("kubernetes.io/hostname",)
    """The keys for which it is allowed, since their domains are single nodes."""
    trusted_namespaces: tuple[str, ...] = ()
    """The namespaces whose pods may have it for every key."""

    default_topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    """The constraints of pods that have none of their own."""
    scoring_strategy: StrategyType = "LeastAllocated"
    """How NodeResourcesFit scores."""
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None
    """The shape for the strategy RequestedToCapacityRatio, which needs one."""
    profiles: tuple[Profile, ...] = ()
    """Scheduler profiles by `schedulerName`; `default-scheduler` always exists."""

    place_pending_pods: bool = True
    """Whether pods without a node are placed as soon as that is possible."""
    group_search_steps: int = 10_000
    """After how many steps the search for a group's placement is given up."""
    priority_classes: dict[str, int] = msgspec.field(default_factory=dict)
    """Priority by name; the two `system-…-critical` are built in."""
    limited_resources: tuple[LimitedResource, ...] = ()
    """Resources that may be used only under a quota."""
    opportunity_cost_basis: Literal["Largest", "Average"] = "Largest"
    """Whether exclusive pods without a node are charged for the largest domain or an average one."""

    affinity_violation_grace_seconds: int = 30
    """How long required-during-execution pod affinity may be violated before an eviction."""
    anti_affinity_victim: Literal["RuleOwner", "LowestPriority"] = "RuleOwner"
    """Which pod is evicted if anti-affinity is violated."""
    evictions_per_minute: int = 60
    """How many pods are evicted in a minute at most, so that one wrong label cannot empty a cluster."""

    @property
    def empty_term_matches_all(self) -> bool:
        """Whether a node selector term without requirements matches every node."""
        return self._part(self.empty_node_selector_term, "MatchAll")

    @property
    def affinity_per_term(self) -> bool:
        """Whether each required affinity term may be met by another pod."""
        return self._part(self.required_affinity_terms, "PerTerm")

    @property
    def empty_namespaces_mean_all(self) -> bool:
        """Whether an affinity term's `namespaces: []` means all namespaces."""
        return self._part(self.empty_namespace_list, "AllNamespaces")

    @property
    def weight_per_term(self) -> bool:
        """Whether a preferred term's weight counts once, however many pods match."""
        return self._part(self.preferred_term_weight, "PerTerm")

    def priority_of(self, class_name: str) -> int | None:
        """The value of a priority class; None if there is no such class."""
        built_in = SYSTEM_PRIORITY_CLASSES.get(class_name)
        return self.priority_classes.get(class_name) if built_in is None else built_in

    def scheduler_profiles(self) -> dict[str, SchedulerProfile]:
        """Return all profiles by scheduler name."""
        configured = {profile.scheduler_name: profile for profile in self.profiles}
        profiles = {DEFAULT_SCHEDULER: Profile()} | configured
        return {name: self._resolved(profile) for name, profile in profiles.items()}

    def _resolved(self, profile: Profile) -> SchedulerProfile:
        affinity = profile.inter_pod_affinity_args()
        hard_weight = affinity.hard_pod_affinity_weight
        return SchedulerProfile(
            scheduler_name=profile.scheduler_name,
            filters=profile.filters(),
            weights=profile.weights(),
            scoring=profile.fit_args().scoring_strategy or self._scoring(),
            balanced_resources=profile.balanced_args().resources,
            hard_pod_affinity_weight=(
                self.hard_pod_affinity_weight if hard_weight is None else hard_weight
            ),
            ignore_preferred_terms_of_existing_pods=(
                affinity.ignore_preferred_terms_of_existing_pods
            ),
            default_constraints=self._default_constraints(profile),
            added_affinity=profile.node_affinity_args().added_affinity,
            arguments=profile.arguments(),
        )

    def _scoring(self) -> ScoringStrategy:
        return ScoringStrategy(
            type=self.scoring_strategy,
            requested_to_capacity_ratio=self.requested_to_capacity_ratio,
        )

    def _default_constraints(self, profile: Profile) -> tuple[TopologySpreadConstraint, ...]:
        args = profile.topology_spread_args()
        if args.defaulting_type == "System":
            return SYSTEM_CONSTRAINTS
        if args.default_constraints is None:
            return self.default_topology_spread_constraints
        return args.default_constraints

    def _part(self, own: str | None, documented: str) -> bool:
        """Whether a part of the preset is on: by its own setting if there is one, else by the preset."""
        if own is None:
            return self.semantics == "DesignDocuments"
        return own == documented


def parse_config(settings: object, limits: Limits | None = None) -> ClusterConfig:
    """Read the configuration from decoded JSON; a setting that is absent or null has its default.

    Raises `InvalidManifest` naming every setting that is unknown or wrong.
    """
    problems = Problems(limits)
    CONFIG(settings, "", problems)
    problems.raise_any()
    present = cast("dict[str, object]", without_nulls(settings))
    return msgspec.convert(present, ClusterConfig)


def stored_config(body: bytes) -> ClusterConfig:
    """A configuration that was stored, so that it is valid, with whatever plugins it names."""
    present = cast("dict[str, object]", without_nulls(msgspec.json.decode(body)))
    return msgspec.convert(present, ClusterConfig)


def usable_config(body: bytes) -> ClusterConfig:
    """A configuration that was stored, to decide by it.

    Raises:
        PluginMissing: it names a plugin that this process does not know.
    """
    config = stored_config(body)
    for number, profile in enumerate(config.profiles):
        for field, plugin in profile.named_plugins():
            if plugin not in PLUGINS and plugin != ALL:
                raise PluginMissing(f"profiles[{number}].{field}", plugin)
    return config
