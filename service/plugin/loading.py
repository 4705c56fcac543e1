"""Installed plugins, found by their entry points.

A distribution names each of its plugins in its metadata, in the group `moorage.plugins`:

    [project.entry-points."moorage.plugins"]
    RackPower = "rack_power:RackPower"

Every process of a server calls `load_plugins` before it reads a cluster. All of them have the same
Python environment, so they know the same plugins, in the order of their names.
"""

from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol

from service.engine.profiles.registry import known_plugins, register

GROUP = "moorage.plugins"


class Named(Protocol):
    """The attributes of an entry point that loading uses."""

    @property
    def name(self) -> str:
        """The name of the plugin in profiles."""
        ...

    @property
    def value(self) -> str:
        """The location of the plugin: `module:Class`."""
        ...

    @property
    def load(self) -> Callable[[], object]:
        """Import the plugin."""
        ...


class BadPlugin(Exception):  # noqa: N818 - a server that cannot have a plugin does not start
    """An installed plugin cannot be used; the message names its entry point."""


def load_plugins(entries: Iterable[Named] | None = None) -> list[str]:
    """Register the installed plugins; return the names of the new ones.

    Raises:
        BadPlugin: a plugin cannot be imported, is not a plugin, or has a name that is taken.
    """
    points: Iterable[Named] = _installed() if entries is None else entries
    return [point.name for point in sorted(points, key=lambda point: point.name) if _load(point)]


def _installed() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=GROUP))


def _load(point: Named) -> bool:
    try:
        plugin = point.load()
    except Exception as error:
        raise BadPlugin(f"{_place(point)} cannot be imported: {error!r}") from error
    if known_plugins().get(point.name) is plugin:
        return False
    if not isinstance(plugin, type) or getattr(plugin, "name", None) != point.name:
        raise BadPlugin(f"{_place(point)} is no plugin of the name {point.name}")
    try:
        register(plugin)
    except (TypeError, ValueError) as error:
        raise BadPlugin(f"{_place(point)} cannot be used: {error}") from error
    return True


def _place(point: Named) -> str:
    return f"the entry point {point.name} = {point.value} of the group {GROUP}"
