"""A profile's plugins with their weights, grouped by when they are called.

The groups are computed once per profile, and for relation plugins once per class of pods.
Placements then iterate over tuples of the applicable plugins.
"""

from typing import final

from service.engine.framework.plugin import NodePlugin, RelationPlugin
from service.engine.framework.volume_plugin import VolumePlugin
from service.engine.profiles.registry import ordered_plugins
from service.engine.state.nodes.node_rules import ProfileRules
from service.engine.state.pods.classes import PodClass
from service.model.cluster.cluster_config import ClusterConfig, SchedulerProfile


class RelativeWeight:
    """A scoring relation plugin, with its weight in a profile."""

    __slots__ = ("plugin", "weight")

    def __init__(self, plugin: RelationPlugin, weight: int) -> None:
        self.plugin = plugin
        self.weight = weight

    def scale(self, above: int, span: int) -> int:
        """Return the weighted score of a node whose sum of terms is `above` the lowest sum.

        `span` is the difference between the highest and the lowest sum.
        """
        return self.weight * self.plugin.scale(above, span)


@final
class RelationPlugins:
    """A profile's relation plugins that apply to pods of one class."""

    __slots__ = ("filters", "profile", "scores")

    def __init__(self, profile: "Profile", pod_class: PodClass) -> None:
        self.profile = profile
        self.filters = tuple(
            [plugin for plugin in profile.relation_filters if plugin.applies(pod_class)]
        )
        self.scores = tuple(
            [scorer for scorer in profile.relation_scores if scorer.plugin.applies(pod_class)]
        )


class Profile:
    """One profile's plugins with their weights, and the rules that they add."""

    def __init__(self, profile: SchedulerProfile, config: ClusterConfig) -> None:
        ordered = ordered_plugins(config.scheduler_version)
        plugins = [plugin.of(profile, config) for plugin in ordered]
        self.weights = dict(profile.weights)
        """The weights of the scoring plugins."""
        self.filters = tuple(plugin for plugin in plugins if plugin.name in profile.filters)
        self.scores = tuple(
            (plugin, self.weights[plugin.name]) for plugin in plugins if plugin.name in self.weights
        )
        self.named_if_skipped = frozenset(
            plugin.name for plugin, _ in self.scores if not plugin.is_unnamed_if_skipped
        )
        """The plugins that explanations list when they do not score a pod."""
        self.prefilters = tuple(plugin for plugin in self.filters if plugin.prefilters)
        self.resource_filters = frozenset(
            plugin.name for plugin in self.filters if plugin.judges_room
        )
        """The filters that refuse nodes with too little room for a pod's requests."""
        self.binds_claims = any(plugin.binds_claims for plugin in self.filters)
        self.allocates_devices = any(plugin.allocates_devices for plugin in self.filters)
        self.narrows = any(plugin.narrows for plugin in self.filters)
        self.rules = ProfileRules()
        """The rules that the profile adds to those of its pods."""
        for plugin in plugins:
            self.rules = plugin.added_to(self.rules)
        self._filtering = profile.filters

        nodes = tuple(plugin for plugin in self.filters if isinstance(plugin, NodePlugin))
        self.static_filters = tuple(plugin for plugin in nodes if not plugin.reads_usage)
        """Filters that read only the node itself, not the pods placed on it."""
        self.usage_filters = tuple(plugin for plugin in nodes if plugin.reads_usage)
        """Filters that read the pods placed on a node."""
        relations = tuple(plugin for plugin in self.filters if isinstance(plugin, RelationPlugin))
        self.relation_filters = tuple(
            plugin for plugin in relations if not isinstance(plugin, VolumePlugin)
        )
        self.volume_filters = tuple(
            plugin for plugin in relations if isinstance(plugin, VolumePlugin)
        )
        """Filters called only for pods with volumes."""

        rated = tuple(
            (plugin, weight) for plugin, weight in self.scores if isinstance(plugin, NodePlugin)
        )
        self.usage_scores = tuple(plugin for plugin in rated if plugin[0].reads_usage)
        self.static_scores = tuple(plugin for plugin in rated if not plugin[0].reads_usage)
        self.relation_scores = tuple(
            RelativeWeight(plugin, weight)
            for plugin, weight in self.scores
            if isinstance(plugin, RelationPlugin)
        )

    def has_filter(self, name: str) -> bool:
        return name in self._filtering


def profiles_of(config: ClusterConfig) -> dict[str, Profile]:
    """Return one profile for each scheduler name; `default-scheduler` always exists."""
    return {name: Profile(profile, config) for name, profile in config.scheduler_profiles().items()}
