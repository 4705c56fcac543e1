"""Scheduler profiles, shaped like KubeSchedulerConfiguration v1, and which plugins they turn on.

A profile is chosen by a pod's `schedulerName`. As in kube-scheduler the default plugins are on,
`multiPoint` switches a plugin on or off everywhere, and `filter` and `score` for that step only,
which takes precedence. A plugin that is switched on without a weight scores with weight 1.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple, TypeVar

import msgspec

from service.model.objects import NodeAffinity, Strict, TopologySpreadConstraint, Value

DEFAULT_SCHEDULER = "default-scheduler"
ALL = "*"
"""This name in `disabled` means every default plugin."""


class Declared(NamedTuple):
    """What configurations have to know of a plugin."""

    filters: bool
    weight: int
    """In the sum of scores where a profile gives none; 0: it does not score."""
    by_default: bool
    """Whether it is on in profiles that do not mention it."""
    configured: Callable[[Mapping[str, object]], object] | None = None
    """Given its arguments; raises ValueError for what they should not be. None: it takes none but those of `Profile`."""


PLUGINS: dict[str, Declared] = {}
"""All that are known, in the order in which they filter; the engine declares its own when it is imported."""
FILTERS: list[str] = []
"""The plugins that filter, in the order in which they do."""
WEIGHTS: dict[str, int] = {}
"""The plugins that score, with their default weights."""


def declare(name: str, plugin: Declared) -> None:
    """Make a plugin known to all configurations. Raises ValueError if one of that name is."""
    if name in PLUGINS:
        raise ValueError(f"there is a plugin {name} already")
    PLUGINS[name] = plugin
    if plugin.filters:
        FILTERS.append(name)
    if plugin.weight:
        WEIGHTS[name] = plugin.weight


def withdraw(name: str) -> None:
    """Make a plugin unknown again."""
    del PLUGINS[name]
    WEIGHTS.pop(name, None)
    if name in FILTERS:
        FILTERS.remove(name)


A = TypeVar("A", bound=Value)
StrategyType = Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]


class ResourceWeight(Strict, frozen=True, kw_only=True):
    """A resource and how much it counts in a node's score."""

    name: str
    weight: int = 1


class ShapePoint(Strict, frozen=True, kw_only=True):
    """A point of a piecewise linear function: utilization 0 to 100, score 0 to 10."""

    utilization: int
    score: int


class RequestedToCapacityRatio(Strict, frozen=True, kw_only=True):
    """How a node's score follows from its utilization, by rising utilization."""

    shape: tuple[ShapePoint, ...] = ()


DEFAULT_RESOURCES = (ResourceWeight(name="cpu"), ResourceWeight(name="memory"))


class ScoringStrategy(Strict, frozen=True, kw_only=True):
    """How NodeResourcesFit scores."""

    type: StrategyType = "LeastAllocated"
    resources: tuple[ResourceWeight, ...] = DEFAULT_RESOURCES
    requested_to_capacity_ratio: RequestedToCapacityRatio | None = None


class NodeResourcesFitArgs(Value, frozen=True, kw_only=True):
    """Arguments of NodeResourcesFit; absent: the cluster's own setting."""

    scoring_strategy: ScoringStrategy | None = None


class BalancedAllocationArgs(Value, frozen=True, kw_only=True):
    """Arguments of NodeResourcesBalancedAllocation."""

    resources: tuple[ResourceWeight, ...] = DEFAULT_RESOURCES


class InterPodAffinityArgs(Value, frozen=True, kw_only=True):
    """Arguments of InterPodAffinity; an absent weight: the cluster's own setting."""

    hard_pod_affinity_weight: int | None = None
    ignore_preferred_terms_of_existing_pods: bool = False


class PodTopologySpreadArgs(Value, frozen=True, kw_only=True):
    """Arguments of PodTopologySpread; absent constraints: the cluster's own setting."""

    default_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    defaulting_type: Literal["List", "System"] = "List"


class NodeAffinityArgs(Value, frozen=True, kw_only=True):
    """Arguments of NodeAffinity: an affinity that all pods of the profile have besides their own."""

    added_affinity: NodeAffinity | None = None


SYSTEM_CONSTRAINTS = (
    TopologySpreadConstraint(
        topology_key="kubernetes.io/hostname", when_unsatisfiable="ScheduleAnyway", max_skew=3
    ),
    TopologySpreadConstraint(
        topology_key="topology.kubernetes.io/zone", when_unsatisfiable="ScheduleAnyway", max_skew=5
    ),
)
"""Kubernetes' built-in default constraints (`defaultingType: System`)."""


class Plugin(Strict, frozen=True, kw_only=True):
    """A plugin switched on or off; weight 0 means that none is given."""

    name: str
    weight: int = 0


class PluginSet(Strict, frozen=True, kw_only=True):
    """The plugins that are switched on and off at one step, or at all of them."""

    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()

    def switches_off(self, name: str) -> bool:
        """Whether a default plugin is switched off, by name or with all others."""
        return any(plugin.name in (name, ALL) for plugin in self.disabled)


class Plugins(Strict, frozen=True, kw_only=True):
    """Which plugins are on; `multi_point` stands for all steps."""

    filter: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()


class PluginConfig(Strict, frozen=True, kw_only=True):
    """The arguments of one plugin; their shape is the plugin's (`NodeResourcesFitArgs`, …)."""

    name: str
    args: dict[str, object] = msgspec.field(default_factory=dict)


class Profile(Strict, frozen=True, kw_only=True):
    """A profile as configured."""

    scheduler_name: str = DEFAULT_SCHEDULER
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()

    def filters(self) -> frozenset[str]:
        """The filters that are on."""
        return frozenset(self._weights_at(self.plugins.filter, FILTERS))

    def weights(self) -> dict[str, int]:
        """The scoring plugins that are on, each with its weight."""
        return self._weights_at(self.plugins.score, WEIGHTS)

    def fit_args(self) -> NodeResourcesFitArgs:
        """Arguments of NodeResourcesFit."""
        return self._args("NodeResourcesFit", NodeResourcesFitArgs)

    def balanced_args(self) -> BalancedAllocationArgs:
        """Arguments of NodeResourcesBalancedAllocation."""
        return self._args("NodeResourcesBalancedAllocation", BalancedAllocationArgs)

    def inter_pod_affinity_args(self) -> InterPodAffinityArgs:
        """Arguments of InterPodAffinity."""
        return self._args("InterPodAffinity", InterPodAffinityArgs)

    def topology_spread_args(self) -> PodTopologySpreadArgs:
        """Arguments of PodTopologySpread."""
        return self._args("PodTopologySpread", PodTopologySpreadArgs)

    def node_affinity_args(self) -> NodeAffinityArgs:
        """Arguments of NodeAffinity."""
        return self._args("NodeAffinity", NodeAffinityArgs)

    def arguments(self) -> dict[str, dict[str, object]]:
        """All arguments by plugin."""
        return {config.name: config.args for config in self.plugin_config}

    def named_plugins(self) -> Iterator[tuple[str, str]]:
        """Every field that names a plugin, with what it names."""
        steps = {"filter": self.plugins.filter, "score": self.plugins.score}
        for step, named in (steps | {"multiPoint": self.plugins.multi_point}).items():
            for index, plugin in enumerate(named.enabled):
                yield f"plugins.{step}.enabled[{index}].name", plugin.name
            for index, plugin in enumerate(named.disabled):
                yield f"plugins.{step}.disabled[{index}].name", plugin.name
        for index, config in enumerate(self.plugin_config):
            yield f"pluginConfig[{index}].name", config.name

    def _weights_at(self, step: PluginSet, implementing: Iterable[str]) -> dict[str, int]:
        """The plugins on at a step, of those that implement it, with their weights."""
        everywhere = _everywhere(self.plugins.multi_point)
        explicit = {plugin.name: plugin.weight or 1 for plugin in step.enabled}
        implied = {
            name: everywhere[name]
            for name in implementing
            if name in everywhere and not step.switches_off(name)
        }
        return implied | explicit

    def _args(self, name: str, to: type[A]) -> A:
        found = [config.args for config in self.plugin_config if config.name == name]
        return msgspec.convert(found[0] if found else {}, to)


def _everywhere(multi_point: PluginSet) -> dict[str, int]:
    """The plugins that are on unless a step says otherwise, with their weights."""
    defaults = {
        name: plugin.weight or 1
        for name, plugin in PLUGINS.items()
        if plugin.by_default and not multi_point.switches_off(name)
    }
    return defaults | {plugin.name: plugin.weight or 1 for plugin in multi_point.enabled}
