"""All commands by name: each is in the module of its name, which is imported when it is asked for."""

from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import EntryPoints, entry_points
from typing import Any

import typer

from moorage.cli.exceptions import WrongUsage

COMMANDS = (
    *("serve", "migrate", "lift-revision", "verify"),
    *("apply", "lint", "place", "explain", "repairs", "capacity", "simulate"),
    *("get", "describe", "top", "wait", "create", "export", "config", "watch", "bindings"),
    *("violations", "topology", "bind", "evict", "patch", "label", "annotate", "taint"),
    *("drain", "cordon", "uncordon", "scale-in", "replace", "rebalance", "delete", "status"),
    *("openapi", "bench"),
    *("context", "token", "grant", "audit", "webhooks"),
)
"""In the order in which `--help` lists them."""

SERVER_COMMANDS = frozenset({"serve", "migrate", "lift-revision", "verify", "openapi", "bench"})
"""Commands that the distribution `moorage-server` has; it names them in the group `GROUP`."""

GROUP = "moorage.commands"
"""The group of entry points that are commands: functions, or instances of `typer.Typer`."""

ROOM = f"{__name__.rpartition('.')[0]}.commands"


def available_commands() -> Iterator[str]:
    """Yield the commands that can be run, in the order of the table."""
    registered = server_commands().names
    return (name for name in COMMANDS if name not in SERVER_COMMANDS or name in registered)


def load_command(name: str) -> Any:
    """Import a command, and return it as Typer runs it.

    Raises:
        WrongUsage: it is one of a server, and no server is installed.
    """
    if name not in SERVER_COMMANDS:
        attribute = name.replace("-", "_")
        return as_command(name, getattr(import_module(f"{ROOM}.{attribute}"), attribute))
    for entry in server_commands().select(name=name):
        return as_command(name, entry.load())
    raise WrongUsage(f"`moorage {name}` is part of the server: `pip install moorage-server`.")


def server_commands() -> EntryPoints:
    """Return the commands that an installed server adds."""
    return entry_points(group=GROUP)


def as_command(name: str, loaded: Any) -> Any:
    """Make the command of a function, or of a `Typer` with several functions."""
    if not isinstance(loaded, typer.Typer):
        function, loaded = loaded, typer.Typer(add_completion=False)
        loaded.command()(function)
    command = typer.main.get_command(loaded)
    command.name = name
    return command
