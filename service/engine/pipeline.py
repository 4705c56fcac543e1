"""The plugins of one profile, put where they are asked, each with what it weighs.

Here it is decided once per profile who is asked when; placements go over tuples of those whom it concerns.
"""

from service.engine.plugin import NodePlugin, RelationPlugin
from service.engine.registry import known_plugins
from service.model.config import ClusterConfig, SchedulerProfile


class RelativeWeight:
    """A plugin that scores by relations, as a profile weighs it."""

    __slots__ = ("plugin", "weight")

    def __init__(self, plugin: RelationPlugin, weight: int) -> None:
        self.plugin = plugin
        self.weight = weight

    def scale(self, above: int, span: int) -> int:
        """What the plugin's score of a node weighs whose sum of terms is so far above the least."""
        return self.weight * self.plugin.scale(above, span)


class Pipeline:
    """One profile."""

    def __init__(self, profile: SchedulerProfile, config: ClusterConfig) -> None:
        plugins = [each.of(profile, config) for each in known_plugins().values()]
        self.weights = dict(profile.weights)
        """Of the plugins that score."""
        self.filters = tuple(each for each in plugins if each.name in profile.filters)
        self.scores = tuple(
            (each, self.weights[each.name]) for each in plugins if each.name in self.weights
        )
        self.narrowing = tuple(each for each in self.filters if each.narrows)
        self._filtering = profile.filters

        nodes = tuple(each for each in self.filters if isinstance(each, NodePlugin))
        self.static_filters = tuple(each for each in nodes if not each.reads_usage)
        """They read only the node itself, not what is placed on it."""
        self.usage_filters = tuple(each for each in nodes if each.reads_usage)
        """They read what is placed on the node."""
        self.relation_filters = tuple(
            each for each in self.filters if isinstance(each, RelationPlugin)
        )

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
    """One pipeline per scheduler name; `default-scheduler` always exists."""
    return {name: Pipeline(each, config) for name, each in config.scheduler_profiles().items()}
