"""Scheduler profiles in the format of KubeSchedulerConfiguration v1, and their plugins.

A pod's `schedulerName` selects its profile. As in kube-scheduler, the default plugins are enabled.
`multiPoint` enables or disables a plugin for all steps; `filter` and `score` do so for one step,
and take precedence. A plugin enabled without a weight has weight 1.
"""

from collections.abc import Iterable, Iterator

import msgspec

from service.model.cluster.extender_config import Extender
from service.model.cluster.plugin_rules import ALL, KNOWN, Arguments, filtering, scoring
from service.model.cluster.versions.version import SchedulerVersion
from service.model.core.primitives import Strict
from service.model.pods.pod import DEFAULT_SCHEDULER


class Plugin(Strict, frozen=True, kw_only=True):
    """A plugin switched on or off; weight 0 means that none is given."""

    name: str
    """Name of the plugin."""
    weight: int = 0
    """Weight of its score among those of the other plugins."""


class PluginSet(Strict, frozen=True, kw_only=True):
    """The plugins that are switched on and off at one step, or at all of them."""

    enabled: tuple[Plugin, ...] = ()
    """Plugins switched on."""
    disabled: tuple[Plugin, ...] = ()
    """Plugins switched off; `*` means all that are on by default."""

    def switches_off(self, name: str) -> bool:
        """Return whether the set disables a default plugin, by name or with all others."""
        return any(plugin.name in (name, ALL) for plugin in self.disabled)


class Plugins(Strict, frozen=True, kw_only=True):
    """Which plugins are on; `multi_point` stands for all steps."""

    filter: PluginSet = PluginSet()
    """Which plugins filter."""
    score: PluginSet = PluginSet()
    """Which plugins score, and with which weights."""
    multi_point: PluginSet = PluginSet()
    """Both at once."""


class PluginConfig(Strict, frozen=True, kw_only=True):
    """The arguments of one plugin; their shape is the plugin's (`NodeResourcesFitArgs`, …)."""

    name: str
    """Name of the plugin."""
    args: dict[str, object] = msgspec.field(default_factory=dict)
    """The plugin's arguments, as in KubeSchedulerConfiguration v1."""


class Profile(Strict, frozen=True, kw_only=True):
    """A profile as configured."""

    scheduler_name: str = DEFAULT_SCHEDULER
    """The `spec.schedulerName` that selects the profile."""
    plugins: Plugins = Plugins()
    """Plugins switched on and off, and their weights."""
    plugin_config: tuple[PluginConfig, ...] = ()
    """Arguments of plugins."""
    extenders: tuple[Extender, ...] = ()
    """Services that are asked, in this order, after the profile's own filters."""

    def filters(self, version: SchedulerVersion) -> frozenset[str]:
        """Return the enabled filter plugins of a version."""
        return frozenset(self._weights_at(self.plugins.filter, filtering(), version))

    def weights(self, version: SchedulerVersion) -> dict[str, int]:
        """Return the enabled scoring plugins of a version, with their weights."""
        return self._weights_at(self.plugins.score, scoring(), version)

    def arguments(self) -> dict[str, Arguments]:
        """Return the arguments of each plugin that accepts any, by plugin name."""
        given = {config.name: config.args for config in self.plugin_config}
        return {
            name: msgspec.convert(given.get(name, {}), known.plugin.arguments)
            for name, known in KNOWN.items()
            if known.plugin.arguments is not None
        }

    def named_plugins(self) -> Iterator[tuple[str, str]]:
        """Yield every field that names a plugin, with the name."""
        steps = {"filter": self.plugins.filter, "score": self.plugins.score}
        for step, named in (steps | {"multiPoint": self.plugins.multi_point}).items():
            for index, plugin in enumerate(named.enabled):
                yield f"plugins.{step}.enabled[{index}].name", plugin.name
            for index, plugin in enumerate(named.disabled):
                yield f"plugins.{step}.disabled[{index}].name", plugin.name
        for index, config in enumerate(self.plugin_config):
            yield f"pluginConfig[{index}].name", config.name

    def _weights_at(
        self, step: PluginSet, implementing: Iterable[str], version: SchedulerVersion
    ) -> dict[str, int]:
        """Return the enabled plugins that implement a step, with their weights."""
        everywhere = _everywhere(self.plugins.multi_point, version)
        explicit = {plugin.name: plugin.weight or 1 for plugin in step.enabled}
        implied = {
            name: everywhere[name]
            for name in implementing
            if name in everywhere and not step.switches_off(name)
        }
        return implied | explicit


def _everywhere(multi_point: PluginSet, version: SchedulerVersion) -> dict[str, int]:
    """Return the plugins enabled at all steps unless a step overrides it, with their weights."""
    defaults = {
        name: known.plugin.weight or 1
        for name, known in KNOWN.items()
        if known.by_default and known.plugin.is_in(version) and not multi_point.switches_off(name)
    }
    return defaults | {plugin.name: plugin.weight or 1 for plugin in multi_point.enabled}
