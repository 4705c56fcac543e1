"""The plugins that this process knows: those of Kubernetes, and what was registered beside them.

All processes of a server register the same ones as they start, before they look at a cluster
(`service.extensions`).
"""

from collections.abc import Mapping

from service.engine.cluster_events import Change
from service.engine.plugin import NodePlugin, Plugin, RelationPlugin
from service.engine.plugins import PLUGINS
from service.model import profiles

WEIGHT_MAX = 100
"""Of a plugin that is not Kubernetes', where a profile gives none."""

_known: dict[str, type[Plugin]] = {}
_hinted: dict[Change, frozenset[str]] = dict.fromkeys(Change, frozenset())


def known_plugins() -> Mapping[str, type[Plugin]]:
    """By name, in the order in which they filter."""
    return _known


def register(plugin: type[Plugin]) -> None:
    """Have profiles name a plugin; until they do it is off. Raises ValueError for one that cannot be."""
    if not issubclass(plugin, (NodePlugin, RelationPlugin)):
        raise ValueError("a plugin is a NodePlugin or a RelationPlugin")  # noqa: TRY004
    if not plugin.filters and not plugin.weight:
        raise ValueError(f"{plugin.name} neither filters nor scores")
    if not 0 <= plugin.weight <= WEIGHT_MAX:
        raise ValueError(f"{plugin.name} has a weight that is not between 0 and {WEIGHT_MAX}")
    if issubclass(plugin, NodePlugin) and plugin.reads_usage and plugin.normalizes:
        raise ValueError(f"{plugin.name} reads usage, so that its scores cannot be normalized")
    _add(plugin, by_default=False)


def unregister(plugin: type[Plugin]) -> None:
    """As if it had not been registered, for tests."""
    profiles.withdraw(plugin.name)
    del _known[plugin.name]
    for change in plugin.events:
        _hinted[change] -= {plugin.name}


def _add(plugin: type[Plugin], *, by_default: bool) -> None:
    profiles.declare(
        plugin.name,
        profiles.Declared(
            filters=plugin.filters,
            weight=plugin.weight,
            by_default=by_default,
            configured=plugin.configured if plugin.takes_arguments else None,
        ),
    )
    _known[plugin.name] = plugin
    for change in plugin.events:
        _hinted[change] |= {plugin.name}


def hinted(change: Change) -> frozenset[str]:
    """The plugins whose rejections such an event can turn."""
    return _hinted[change]


for _each in PLUGINS:
    _add(_each, by_default=True)
