"""The plugins of others that are installed beside Moorage, found by their entry points.

A distribution names each in its metadata, in the group `moorage.plugins`:

    [project.entry-points."moorage.plugins"]
    RackPower = "rack_power:RackPower"

Every process of a server calls `load_plugins` before it looks at a cluster, and all of them have the same Python
environment, so that they know the same plugins in the same order: that of the names.
"""

from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol

from service.engine.registry import known_plugins, register

GROUP = "moorage.plugins"


class Named(Protocol):
    """What an entry point says of a plugin."""

    @property
    def name(self) -> str:
        """As profiles name it."""
        ...

    @property
    def value(self) -> str:
        """Where it is: `module:Class`."""
        ...

    @property
    def load(self) -> Callable[[], object]:
        """Import it."""
        ...


class BadPlugin(Exception):  # noqa: N818 - a server that cannot have a plugin does not start
    """An installed plugin cannot be used; the message names its entry point."""


def load_plugins(found: Iterable[Named] | None = None) -> list[str]:
    """Have profiles name the plugins that are installed; the names of those that were not known yet.

    Raises:
        BadPlugin: one cannot be imported, is no plugin, or has a name that is taken.
    """
    points: Iterable[Named] = _installed() if found is None else found
    return [each.name for each in sorted(points, key=lambda each: each.name) if _load(each)]


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
