"""The entry point of the `moorage` command; `command_table` lists its commands."""

import sys
from importlib import metadata
from typing import Annotated, Any

import typer
from typing_extensions import override

from moorage.cli.command_group import Commands
from moorage.cli.command_table import COMMANDS, available_commands, load_command
from moorage.cli.exceptions import CliError, ExitCode
from moorage.cli.render.output import print_error

HELP = """Scheduling as a service: where pods run, decided exactly as Kubernetes does, without races.

Exit codes: 0 done; 1 refused, or a pod was not placed; 2 the command line or a file makes no sense; 3 no server, or no answer;
130 or 143 stopped by SIGINT (Ctrl-C) or SIGTERM; `serve`, `watch`, `bindings` and `get -w` end so with 0.
"""


PARTS = "moorage.version"
"""The entry point group of other distributions that add lines to `--version`."""


class _Moorage(Commands):
    """The commands of the table, imported only on demand so that each starts quickly."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        not_yet_imported: Any = dict.fromkeys(COMMANDS)
        self.commands = not_yet_imported

    @override
    def list_commands(self, ctx: Any) -> list[str]:
        return list(available_commands())

    @override
    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            self.commands[cmd_name] = load_command(cmd_name)
        return self.commands.get(cmd_name)


app = typer.Typer(
    name="moorage",
    help=HELP,
    cls=_Moorage,
    context_settings={"help_option_names": ["--help", "-h"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - called by Typer
    if wanted:
        version = f"moorage {metadata.version('moorage')}"
        parts = (f"{part.name} {part.load()()}" for part in metadata.entry_points(group=PARTS))
        typer.echo(", ".join([version, *parts]))
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the version, and whether the engine is compiled.",
        ),
    ] = False,
) -> None:
    """These are the options of `moorage` itself."""


def run() -> None:
    """Run the command line of this process, and exit."""
    try:
        app(standalone_mode=True, prog_name="moorage")
    except CliError as error:
        print_error(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
