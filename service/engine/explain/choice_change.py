"""Which plugin makes a pod's choice differ between two explanations of it."""

from collections.abc import Mapping
from typing import NamedTuple

from service.engine.explain.explanation import Explanation


class Choice(NamedTuple):
    """The node that a pod gets in one of two compared states, and why."""

    node_name: str | None
    """The chosen node, or None if the pod fits nowhere."""
    explanation: Explanation
    weights: Mapping[str, int]
    """The weights of the scoring plugins."""

    def weighted(self, plugin: str, node_name: str) -> int:
        """Return a plugin's weighted score of a feasible node; 0 if it does not score the pod."""
        scores = self.explanation.scores.get(plugin, {})
        return self.weights.get(plugin, 0) * scores.get(node_name, 0)

    def refusing_plugin(self, node_name: str) -> str | None:
        """Return the first plugin that refuses a node, or None if the node is feasible."""
        explanation = self.explanation
        if explanation.prefilter is not None:
            return explanation.prefilter.plugin
        for plugin, refused in explanation.filters.items():
            if node_name in refused:
                return plugin
        return None


class DecidingPlugin(NamedTuple):
    """The plugin that makes two choices differ."""

    plugin: str
    points: int | None
    """By how many weighted points the plugin's preference between the two nodes has shifted, or None
    if it refuses one of them in only one of the states."""


def deciding_plugin(before: Choice, after: Choice) -> DecidingPlugin | None:
    """Return the plugin that contributes most to the change from one choice to the other.

    Returns None if no plugin judges the chosen nodes differently.
    """
    for chosen, other in ((after, before), (before, after)):
        refusing = other.refusing_plugin(chosen.node_name) if chosen.node_name else None
        if refusing is not None:
            return DecidingPlugin(refusing, None)
    if before.node_name is None or after.node_name is None:
        return None
    plugins = before.explanation.scores.keys() | after.explanation.scores.keys()
    shifts = {
        plugin: _preference(plugin, after, before.node_name, after.node_name)
        - _preference(plugin, before, before.node_name, after.node_name)
        for plugin in sorted(plugins)
    }
    most = max(shifts, key=shifts.__getitem__, default=None)
    return None if most is None or shifts[most] <= 0 else DecidingPlugin(most, shifts[most])


def _preference(plugin: str, choice: Choice, one: str, other: str) -> int:
    """Return by how many weighted points a plugin prefers the `other` node to the first one."""
    return choice.weighted(plugin, other) - choice.weighted(plugin, one)
