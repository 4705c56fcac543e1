"""`python -m tools.conformance FILE …` compares a server's answers with kube-scheduler's."""

import sys

import typer

from moorage.cli.exceptions import CliError
from moorage.cli.render.output import print_error
from tools.conformance.comparison import conformance


def main() -> None:
    """Run the command line of this process, and end the process."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(conformance)
    try:
        app(prog_name="python -m tools.conformance")
    except CliError as error:
        print_error(error)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
