"""The plugins of one profile, put where they are asked, each with its weight.

Which plugins are asked when is decided once for each profile, and of those that look at other pods
once for each class of pods; placements then go through tuples of the plugins concerned.
"""

from typing import final

from service.engine.framework.plugin import NodePlugin, RelationPlugin
from service.engine.framework.volume_plugin import VolumePlugin
from service.engine.profiles.registry import known_plugins
from service.engine.state.nodes.node_rules import ProfileRules
from service.engine.state.pods.classes import PodClass
from service.model.configuration.config import ClusterConfig, SchedulerProfile


class RelativeWeight:
    """A plugin that scores by relations, with its weight in a profile."""

    __slots__ = ("plugin", "weight")

    def __init__(self, plugin: RelationPlugin, weight: int) -> None:
        self.plugin = plugin
        self.weight = weight

    def scale(self, above: int, span: int) -> int:
        """Return the weighed score of a node whose sum of terms is `above` the least one.

        `span` is the difference between the greatest and the least sum.
        """
        return self.weight * self.plugin.scale(above, span)


@final
class RelationPlugins:
    """The plugins of a profile that look at other pods and apply to pods of one class."""

    __slots__ = ("filters", "pipeline", "scores")

    def __init__(self, pipeline: "Pipeline", pod_class: PodClass) -> None:
        self.pipeline = pipeline
        self.filters = tuple(
            [each for each in pipeline.relation_filters if each.applies(pod_class)]
        )
        self.scores = tuple(
            [each for each in pipeline.relation_scores if each.plugin.applies(pod_class)]
        )


class Pipeline:
    """The plugins of one profile."""

    def __init__(self, profile: SchedulerProfile, config: ClusterConfig) -> None:
        plugins = [each.of(profile, config) for each in known_plugins().values()]
        self.weights = dict(profile.weights)
        """The weights of the plugins that score."""
        self.filters = tuple(each for each in plugins if each.name in profile.filters)
        self.scores = tuple(
            (each, self.weights[each.name]) for each in plugins if each.name in self.weights
        )
        self.named_if_skipped = frozenset(
            each.name for each, _ in self.scores if not each.is_unnamed_if_skipped
        )
        """The plugins that explanations name where they do not score a pod."""
        self.prefilters = tuple(each for each in self.filters if each.prefilters)
        self.judging_room = frozenset(each.name for each in self.filters if each.judges_room)
        """The filters that refuse nodes which have too little left for a pod's requests."""
        self.binds_claims = any(each.binds_claims for each in self.filters)
        self.allocates_devices = any(each.allocates_devices for each in self.filters)
        self.narrows = any(each.narrows for each in self.filters)
        self.rules = ProfileRules()
        """The rules that the profile has for its pods besides their own."""
        for each in plugins:
            self.rules = each.added_to(self.rules)
        self._filtering = profile.filters

        nodes = tuple(each for each in self.filters if isinstance(each, NodePlugin))
        self.static_filters = tuple(each for each in nodes if not each.reads_usage)
        """Filters that read only the node itself, not what is placed on it."""
        self.usage_filters = tuple(each for each in nodes if each.reads_usage)
        """Filters that read what is placed on the node."""
        relations = tuple(each for each in self.filters if isinstance(each, RelationPlugin))
        self.relation_filters = tuple(
            each for each in relations if not isinstance(each, VolumePlugin)
        )
        self.volume_filters = tuple(each for each in relations if isinstance(each, VolumePlugin))
        """They are asked only of pods with volumes."""

        rated = tuple(
            (each, weight) for each, weight in self.scores if isinstance(each, NodePlugin)
        )
        self.usage_scores = tuple(each for each in rated if each[0].reads_usage)
        self.static_scores = tuple(each for each in rated if not each[0].reads_usage)
        self.relation_scores = tuple(
            RelativeWeight(each, weight)
            for each, weight in self.scores
            if isinstance(each, RelationPlugin)
        )

    def filters_with(self, name: str) -> bool:
        return name in self._filtering


def pipelines_of(config: ClusterConfig) -> dict[str, Pipeline]:
    """Make one pipeline for each scheduler name; `default-scheduler` always exists."""
    return {name: Pipeline(each, config) for name, each in config.scheduler_profiles().items()}
