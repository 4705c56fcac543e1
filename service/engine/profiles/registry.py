"""The plugins known to this process: those of Kubernetes, and registered ones.

All processes of a server register the same plugins at startup, before they load a cluster
(`service.plugin`).
"""

from collections.abc import Mapping
from functools import cache

from service.engine.framework.events import Change
from service.engine.framework.plugin import NodePlugin, Plugin, RelationPlugin
from service.engine.plugins import PLUGINS
from service.engine.plugins.node_name import NodeName
from service.model.cluster.plugin_rules import KNOWN, declare, withdraw
from service.model.cluster.versions.version import SchedulerVersion

WEIGHT_MAX = 100
"""The maximum default weight of a registered plugin."""


@cache
def known_plugins() -> Mapping[str, type[Plugin]]:
    """Return the known plugins of all versions by name, in the filtering order of the oldest."""
    return {name: known.plugin for name, known in KNOWN.items() if issubclass(known.plugin, Plugin)}


def ordered_plugins(version: SchedulerVersion) -> list[type[Plugin]]:
    """Return the known plugins that a version has, in its filtering order."""
    plugins = [plugin for plugin in known_plugins().values() if plugin.is_in(version)]
    if version.narrows_to_node_name:
        plugins.sort(key=lambda plugin: plugin is not NodeName)
    return plugins


@cache
def hinted_plugins(change: Change) -> frozenset[str]:
    """Return the names of the plugins whose rejections an event of this kind can change."""
    return frozenset(name for name, plugin in known_plugins().items() if change in plugin.events)


@cache
def resource_filters() -> frozenset[str]:
    """Return the names of the plugins that refuse nodes with too little room for a pod."""
    return frozenset(name for name, plugin in known_plugins().items() if plugin.judges_room)


def register(plugin: type[Plugin]) -> None:
    """Register a plugin that profiles can enable by name; it is off by default.

    Raises:
        ValueError: it is not a usable plugin, or its name is taken.
        TypeError: one of its arguments has no default.
    """
    if not issubclass(plugin, (NodePlugin, RelationPlugin)):
        raise ValueError("a plugin is a NodePlugin or a RelationPlugin")  # noqa: TRY004
    if not plugin.filters and not plugin.weight:
        raise ValueError(f"{plugin.name} neither filters nor scores")
    if not 0 <= plugin.weight <= WEIGHT_MAX:
        raise ValueError(f"{plugin.name} has a weight that is not between 0 and {WEIGHT_MAX}")
    if issubclass(plugin, NodePlugin) and plugin.reads_usage and plugin.normalizes:
        raise ValueError(f"{plugin.name} reads usage, so that its scores cannot be normalized")
    if plugin.arguments is not None:
        plugin.arguments()  # as for a profile that gives none
    _add(plugin, by_default=False)


def unregister(plugin: type[Plugin]) -> None:
    """Unregister a plugin, for tests."""
    withdraw(plugin.name)
    _clear_caches()


def _add(plugin: type[Plugin], *, by_default: bool) -> None:
    declare(plugin, by_default=by_default)
    _clear_caches()


def _clear_caches() -> None:
    known_plugins.cache_clear()
    hinted_plugins.cache_clear()
    resource_filters.cache_clear()


for _plugin in PLUGINS:
    _add(_plugin, by_default=True)
