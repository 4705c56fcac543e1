"""`moorage lint`: find invalid or ineffective parts of manifests before they are stored."""

from collections.abc import Iterator, Sequence
from typing import Any

import typer

from moorage.cli.changes.batches import REFUSED, apply_lines
from moorage.cli.exceptions import ExitCode
from moorage.cli.input.manifests import read_manifests
from moorage.cli.input.workloads import Origin
from moorage.cli.render.rows import identity
from moorage.cli.session.options import Files, Session, connected

Finding = dict[str, str]


@connected
def lint(session: Session, *, file: Files) -> None:
    """Say what the cluster would refuse or pass over in manifests, and which rules have no effect.

    Nothing is stored. The exit code is 1 if anything was found.
    """
    expansion = read_manifests(session, file)
    client = session.client.trying().heedless()
    findings = list[Finding]()
    for result in apply_lines(client, session.output, "checking", expansion.objects):
        index = result["line"] - 1
        findings += _findings(result, expansion.objects[index], expansion.origins[index])
    findings = _once_each(findings)
    if session.output.for_people:
        for finding in findings:
            where = f"{finding['object']}: {finding['field']}".rstrip(": ")
            session.output.prose(f"{where}: {finding['message']} ({finding['code']})")
        session.output.line(f"{len(expansion.objects)} objects, {len(findings)} findings")
    else:
        session.output.document({"findings": findings})
    if findings:
        raise typer.Exit(ExitCode.REFUSED)


def _findings(
    result: dict[str, Any], item: dict[str, Any], origin: Origin | None
) -> Iterator[Finding]:
    """Yield the errors and warnings about one object, with their places in its manifest."""
    subject = origin.workload if origin else f"{item.get('kind')} {_named(item)}".strip()
    prefix = f"{origin.template}." if origin else ""
    outcome = str(result["result"])
    refused = [{"field": "", "message": "is refused"}] if outcome in REFUSED else []
    errors: Sequence[dict[str, str]] = result.get("errors") or refused
    warnings: Sequence[dict[str, str]] = result.get("warnings") or ()
    for problem in (*({**error, "code": outcome} for error in errors), *warnings):
        field = f"{prefix}{problem['field']}" if problem["field"] else ""
        place = {"object": subject, "field": field}
        yield {**place, "code": problem["code"], "message": problem["message"]}


def _named(item: dict[str, Any]) -> str:
    """Return an object's name, as far as its manifest has one."""
    metadata = item.get("metadata")
    is_named = isinstance(metadata, dict) and bool(metadata.get("name"))
    return identity(item) if is_named else ""


def _once_each(findings: Sequence[Finding]) -> list[Finding]:
    """Drop repeated findings, such as those that all pods of a workload share."""
    return list({tuple(finding.values()): finding for finding in findings}.values())
