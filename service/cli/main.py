"""The `moorage` command and its exit codes; each command is in the module named after its task."""

import sys
from importlib import metadata
from typing import Annotated

import typer

from service import compiled_engine
from service.cli import contexts
from service.cli.command_group import Commands
from service.cli.commands import (
    access,
    apply_place_and_bind,
    audit_export_and_verify,
    bench,
    bindings,
    capacity,
    cordon_and_drain,
    create,
    deletions,
    describe,
    explain_violations_topology_and_status,
    export,
    get,
    lint_manifests,
    openapi,
    patch_label_annotate_taint,
    rebalance,
    repairs,
    replace_pods,
    scale_in_pods,
    serve_and_migrate,
    simulate,
    top,
    verify_database,
    wait,
    watch,
    webhooks,
)
from service.cli.conformance import conformance
from service.cli.errors import CliError, ExitCode
from service.cli.printing.output import print_error

HELP = """Scheduling as a service: where pods run, decided exactly as Kubernetes does, without races.

Exit codes: 0 done; 1 refused, or a pod was not placed; 2 the command line or a file makes no sense; 3 no server, or no answer;
130 or 143 stopped by SIGINT (Ctrl-C) or SIGTERM; `serve`, `watch`, `bindings` and `get -w` end so with 0.
"""

app = typer.Typer(
    name="moorage",
    help=HELP,
    cls=Commands,
    context_settings={"help_option_names": ["--help", "-h"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (
    serve_and_migrate.serve,
    serve_and_migrate.migrate,
    serve_and_migrate.lift_revision,
    verify_database.verify,
    apply_place_and_bind.apply,
    lint_manifests.lint,
    apply_place_and_bind.place,
    explain_violations_topology_and_status.explain,
    repairs.repairs,
    capacity.capacity,
    simulate.simulate,
    get.get,
    describe.describe,
    top.top,
    wait.wait,
    create.create,
    export.export,
    apply_place_and_bind.config,
    watch.watch,
    bindings.bindings,
    explain_violations_topology_and_status.violations,
    explain_violations_topology_and_status.topology,
    apply_place_and_bind.bind,
    apply_place_and_bind.evict,
    patch_label_annotate_taint.patch,
    patch_label_annotate_taint.label,
    patch_label_annotate_taint.annotate,
    patch_label_annotate_taint.taint,
    cordon_and_drain.drain,
    cordon_and_drain.cordon,
    cordon_and_drain.uncordon,
    scale_in_pods.scale_in,
    replace_pods.replace,
    rebalance.rebalance,
    deletions.delete,
    explain_violations_topology_and_status.status,
    openapi.openapi,
    conformance.conformance,
):
    app.command()(command)
app.add_typer(contexts.context_commands, name="context")
app.add_typer(access.token_commands, name="token")
app.add_typer(access.grant_commands, name="grant")
app.add_typer(audit_export_and_verify.audit, name="audit")
app.add_typer(webhooks.webhook_commands, name="webhooks")
app.command(context_settings=bench.PASSED_ON)(bench.bench)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - called by Typer
    if wanted:
        typer.echo(f"moorage {metadata.version('moorage')}, engine {compiled_engine.engine_kind()}")
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
    """Run the command line of this process, and end the process."""
    try:
        app(standalone_mode=True, prog_name="moorage")
    except CliError as error:
        print_error(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
