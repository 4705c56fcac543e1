"""All commands by name. Each is in the module of its name, which is imported on demand."""

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
"""The commands in the order of `--help`."""

SERVER_COMMANDS = frozenset({"serve", "migrate", "lift-revision", "verify", "openapi", "bench"})
"""Commands of the distribution `moorage-server`, which names them in the group `GROUP`."""

GROUP = "moorage.commands"
"""The entry point group for commands: functions, or instances of `typer.Typer`."""

ROOM = f"{__name__.rpartition('.')[0]}.commands"


def available_commands() -> Iterator[str]:
    """Yield the available commands, in the order of the table."""
    registered = server_commands().names
    return (name for name in COMMANDS if name not in SERVER_COMMANDS or name in registered)


def load_command(name: str) -> Any:
    """Import a command, and return it in the form that Typer runs.

    Raises:
        WrongUsage: the command belongs to a server, and no server is installed.
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
    """Convert a function, or a `Typer` with several functions, to a command."""
    if not isinstance(loaded, typer.Typer):
        function, loaded = loaded, typer.Typer(add_completion=False)
        loaded.command()(function)
    command = typer.main.get_command(loaded)
    command.name = name
    return command
