"""The group of all commands; tolerates closed pipes and knows kubectl's commands."""

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup
from typing_extensions import override

from moorage.cli.exceptions import ExitCode, WrongUsage

_RUNS_NONE = "Moorage decides where pods run, and runs none."
_APPLY = "Change the manifest, and `moorage apply -f` it."
INSTEAD = {
    **dict.fromkeys(("attach", "cp", "debug", "exec", "logs", "port-forward"), _RUNS_NONE),
    **dict.fromkeys(("edit", "set"), _APPLY),
    **dict.fromkeys(("autoscale", "scale"), f"Moorage runs no controllers. {_APPLY}"),
    "api-resources": "`moorage get --help` names the kinds.",
    "auth": "`moorage grant list` shows who may do what.",
    "cluster-info": "`moorage status` asks the server, and `moorage get clusters` lists clusters.",
    "completion": "`moorage --install-completion` installs it.",
    "diff": "`moorage apply --dry-run -f` says how much would change.",
    "events": "`moorage get events` shows them.",
    "help": "`moorage --help` lists the commands, and `moorage COMMAND --help` tells of one.",
    "rollout": "`moorage replace -f` has new pods replace a workload's old ones in waves.",
    "run": f"{_RUNS_NONE} `moorage place -f` finds a node for a pod.",
    "version": "`moorage --version` shows it.",
}
"""kubectl commands that `moorage` lacks, with what to use instead."""


class Commands(TyperGroup):
    """All commands of `moorage`."""

    @override
    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command.

        Raises:
            WrongUsage: only kubectl has the command; the message says what to use instead.
        """
        if args and self.get_command(ctx, args[0]) is None and args[0] in INSTEAD:
            raise WrongUsage(f"There is no command {args[0]}. {INSTEAD[args[0]]}")
        if args[:1] == ["create"] and not {"-f", "--filename", "--file"}.isdisjoint(args):
            raise WrongUsage("`create` takes no files; `moorage apply -f` makes what is in them.")
        return super().resolve_command(ctx, args)

    @override
    def invoke(self, ctx: Any) -> Any:
        """Run a command; a reader that closes the pipe early, as in `| head`, is not an error.

        Remaining output is discarded, so that the interpreter does not fail at exit.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(ExitCode.OK) from None
