"""`moorage patch`: change fields of stored objects."""

from enum import StrEnum
from typing import Annotated

import typer

from moorage.cli.changes.fields import (
    Namespace,
    require_names,
)
from moorage.cli.exceptions import WrongUsage
from moorage.cli.input.sources import parse_value, read_value
from moorage.cli.session.hints import suggest_namespaces
from moorage.cli.session.options import DryRun, Session, connected
from moorage.cli.session.resources import complete_kind, read_targets
from moorage.requests import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH


class PatchType(StrEnum):
    """The format of a patch."""

    MERGE = "merge"
    JSON = "json"
    STRATEGIC = "strategic"


_CONTENT_TYPES = {
    PatchType.MERGE: MERGE_PATCH,
    PatchType.JSON: JSON_PATCH,
    PatchType.STRATEGIC: STRATEGIC_MERGE_PATCH,
}


@connected
def patch(
    session: Session,
    *,
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="KIND NAME… | KIND/NAME…",
            help="The objects, as in `get`.",
            autocompletion=complete_kind,
        ),
    ],
    text: Annotated[
        str | None, typer.Option("--patch", "-p", help="The patch, in JSON or YAML.")
    ] = None,
    file: Annotated[
        str | None, typer.Option("--patch-file", help="A file with the patch; - is standard input.")
    ] = None,
    patch_type: Annotated[
        PatchType,
        typer.Option("--type", help="A merge patch, a JSON patch or a strategic merge patch."),
    ] = PatchType.MERGE,
    namespace: Namespace = None,
    dry_run: DryRun = False,
) -> None:
    """Change fields of objects, such as `-p '{"spec": {"unschedulable": true}}'`.

    Unlike kubectl's, a patch is a merge patch unless `--type` says something else.
    """
    if (text is None) == (file is None):
        raise WrongUsage("Give either --patch or --patch-file.")
    body = read_value(file) if file is not None else parse_value("--patch", (text or "").encode())
    session = session.trying(dry_run)
    for target in require_names(read_targets(what, namespace or session.namespace)):
        path = target.path(session.client)
        with suggest_namespaces(session, target):
            changed = session.client.patch(path, body, _CONTENT_TYPES[patch_type])
        session.done(changed, f"{target.told} patched")
