"""`moorage bench`: run the measurements in the folder `bench` of a checkout.

The folder is not part of the installed package.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from moorage.cli.exceptions import WrongUsage

CHECKOUT = Path(__file__).resolve().parents[3]

PASSED_ON = {"ignore_unknown_options": True, "help_option_names": []}
"""All options, even `--help`, are passed on to the command line of the folder `bench`."""

Arguments = Annotated[list[str] | None, typer.Argument(metavar="WORKLOAD [OPTIONS]")]


bench = typer.Typer(add_completion=False)


@bench.command(context_settings=PASSED_ON)
def run(arguments: Arguments = None) -> None:
    """Measure a workload over HTTP; `moorage bench --help` lists all measurements.

    This works only in a checkout of the source code.

    Raises:
        WrongUsage: this is no checkout.
    """
    if not (CHECKOUT / "bench" / "__main__.py").is_file():
        raise WrongUsage("The benchmarks are not part of the package: run them in a checkout.")
    sys.path.insert(0, str(CHECKOUT))
    import_module("bench.__main__").main(arguments or [])
