"""Reads grants of principals and groups, and changes them safely with concurrent clients."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated
from urllib.parse import quote

import typer

from moorage.cli.changes.conflicts import until_current
from moorage.cli.exceptions import Refused
from moorage.cli.session.hints import NOT_FOUND
from moorage.cli.session.options import Session

ATTEMPTS_MAX = 10


Grants = list[dict[str, str]]


class Role(StrEnum):
    """The roles that a grant can give."""

    READER = "reader"
    SCHEDULER = "scheduler"
    EDITOR = "editor"
    OBSERVER = "observer"
    ORCHESTRATOR = "orchestrator"
    ADMIN = "admin"


Name = Annotated[str, typer.Argument(help="The principal's name, such as nightly-batch.")]


OnCluster = Annotated[str | None, typer.Option("--on", help="This cluster alone (default: all).")]


InNamespace = Annotated[
    str | None, typer.Option("--in", help="This namespace alone (default: all).")
]


Group = Annotated[
    bool, typer.Option("--group", help="The name is that of an identity provider's group.")
]


def collection_of(*, group: bool) -> str:
    """Return the API collection of principals or of groups."""
    return "groups" if group else "principals"


def path_of(collection: str, name: str) -> str:
    """Return the path of a principal or group, with slashes in the name escaped."""
    escaped = name.replace("~", "~0").replace("/", "~1")
    return f"/v1/{collection}/{quote(escaped, safe='')}"


def grant_of(role: Role, cluster: str | None, namespace: str | None) -> dict[str, str]:
    """Return a grant in the API's format."""
    where = {"cluster": cluster, "namespace": namespace}
    return {"role": role.value, **{key: value for key, value in where.items() if value}}


def grant_role(session: Session, collection: str, name: str, grant: dict[str, str]) -> None:
    """Add a grant to a principal or group, unless it already has the grant."""

    def with_it(known: Grants | None) -> Grants:
        return known if known and grant in known else [*(known or []), grant]

    change_grants(session, path_of(collection, name), with_it)


def change_grants(session: Session, path: str, change: Callable[[Grants | None], Grants]) -> None:
    """Change the grants at `path`; `change` receives the current ones, or None for a new principal.

    If another client changes the grants concurrently, `change` is called again with the new ones.
    """

    def attempt() -> None:
        known, precondition = _known(session, path)
        wanted = change(known)
        if wanted != known:
            session.client.put(path, {"grants": wanted}, precondition)

    until_current(attempt, attempts_max=ATTEMPTS_MAX)


def _known(session: Session, path: str) -> tuple[Grants | None, dict[str, str]]:
    """Return a principal's grants, and the header that keeps a PUT from replacing other grants."""
    try:
        answer, tag = session.client.get_tagged(path)
    except Refused as error:
        if error.problem.get("code") != NOT_FOUND:
            raise
        return None, {"If-None-Match": "*"}
    return answer["grants"], {"If-Match": tag} if tag else {}
