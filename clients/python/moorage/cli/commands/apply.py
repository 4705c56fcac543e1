"""`moorage apply`: create or change the objects in files."""

from collections import Counter
from typing import Annotated, Any

import typer

from moorage.cli.changes.batches import REFUSED, apply_at_once, apply_lines
from moorage.cli.exceptions import ExitCode, WrongUsage
from moorage.cli.input.manifests import read_manifests
from moorage.cli.input.workloads import Expansion, Origin
from moorage.cli.render.explanations import describe_outcomes
from moorage.cli.render.rows import identity
from moorage.cli.session.options import DryRun, Files, Session, connected
from moorage.cli.session.resources import RESOURCES
from moorage.requests import Params

LIST_OBJECTS_MAX = 10_000
"""The server's default limit on objects in one commit (`apply_objects_max`)."""


@connected
def apply(
    session: Session,
    *,
    file: Files,
    prune: Annotated[
        str | None,
        typer.Option("--prune", help="Kinds (Node,Pod) of which to remove what the files lack."),
    ] = None,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Use many commits, and skip and report bad objects. Without it, one commit holds all or nothing.",
        ),
    ] = False,
    no_pods: Annotated[
        bool, typer.Option("--no-pods", help="Make no pods of StatefulSets and ReplicaSets.")
    ] = False,
    server_side: Annotated[
        bool,
        typer.Option(
            "--server-side",
            help="Share objects with other managers: merge the fields in the files into each object.",
        ),
    ] = False,
    field_manager: Annotated[
        str, typer.Option("--field-manager", help="Who applies, with --server-side.")
    ] = "moorage",
    force_conflicts: Annotated[
        bool,
        typer.Option(
            "--force-conflicts",
            help="Take over fields that others manage, with --server-side.",
        ),
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Create or change objects, such as nodes, pods and quotas; a Deployment becomes its pods."""
    session = session.trying(dry_run)
    if force_conflicts and not server_side:
        raise WrongUsage("--force-conflicts needs --server-side.")
    if server_side and (prune or stream):
        raise WrongUsage("--server-side goes with neither --prune nor --stream.")
    expansion = read_manifests(session, file, as_they_are=no_pods)
    if server_side:
        params = {"fieldManager": field_manager, "force": force_conflicts or None}
        _apply_each(session, expansion, params)
        return
    if stream or len(expansion.objects) > LIST_OBJECTS_MAX:
        if prune:
            raise WrongUsage(
                f"--prune needs one commit: at most {LIST_OBJECTS_MAX} objects, no --stream."
            )
        _apply_lines(session, expansion)
        return
    answer = apply_at_once(session, expansion, prune)
    if session.output.for_people:
        for reference in answer.get("generated") or ():
            session.output.line(
                f"{reference['kind']} {identity(reference)} created{session.suffix}"
            )
        session.output.line(_applied(answer) + session.suffix)
    else:
        session.output.document(answer)


def _apply_each(session: Session, expansion: Expansion, params: Params) -> None:
    """Apply objects server-side, one by one, and stop at the first that is refused."""
    for item in expansion.objects:
        kind, metadata = item.get("kind"), item.get("metadata") or {}
        resource = next((known for known in RESOURCES if known.kind == kind), None)
        if resource is None or not metadata.get("name"):
            raise WrongUsage(
                f"--server-side needs objects with a name, of a kind with objects, not {kind}."
            )
        namespace = metadata.get("namespace") or session.namespace
        path = resource.path(session.client, namespace, metadata["name"])
        answer = session.client.apply(path, item, params)
        text = f"{kind} {identity(answer['metadata'])} applied"
        session.done(answer, text, wraps=True)


def _apply_lines(session: Session, expansion: Expansion) -> None:
    results = apply_lines(session.client, session.output, "applying", expansion.objects)
    bad = [result for result in results if result["result"] in REFUSED]
    if session.output.for_people:
        for result in bad:
            session.output.prose(_bad_line(result, expansion.origins[result["line"] - 1]))
        summary = describe_outcomes(Counter(result["result"] for result in results))
        session.output.prose(summary + session.suffix)
    else:
        session.output.document({"results": results})
    if bad:
        raise typer.Exit(ExitCode.REFUSED)


def _bad_line(result: dict[str, Any], origin: Origin | None) -> str:
    """Describe the errors of an object in terms of the manifest in which it was written."""
    if origin is None:
        return f"object {result['line']}: {result['result']}: {_errors(result, '')}"
    return f"{origin.workload}: {result['result']}: {_errors(result, f'{origin.template}.')}"


def _errors(result: dict[str, Any], prefix: str) -> str:
    errors = result.get("errors") or ()
    messages = (f"{prefix}{error['field']}: {error['message']}" for error in errors)
    return "; ".join(messages) or "refused"


def _applied(answer: dict[str, Any]) -> str:
    counts = ", ".join(
        f"{answer[word]} {word}" for word in ("created", "changed", "unchanged", "deleted")
    )
    return f"{counts} (revision {answer['revision']})"
