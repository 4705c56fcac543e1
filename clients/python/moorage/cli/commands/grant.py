"""`moorage grant`: manage the roles of callers."""

from typing import Annotated

import typer

from moorage.cli.changes.grants import (
    Grants,
    Group,
    InNamespace,
    Name,
    OnCluster,
    Role,
    change_grants,
    collection_of,
    grant_of,
    grant_role,
    path_of,
)
from moorage.cli.exceptions import WrongUsage
from moorage.cli.session.options import Session, connected

grant = typer.Typer(
    help="Grants: what callers may do, and where.", no_args_is_help=True, add_completion=False
)


@grant.command("add")
@connected
def add_grant(
    session: Session,
    *,
    name: Name,
    role: Annotated[Role, typer.Argument(help="What NAME may do.")],
    on: OnCluster = None,
    in_: InNamespace = None,
    group: Group = False,
) -> None:
    """Grant a principal or a group one more role."""
    grant_role(session, collection_of(group=group), name, grant_of(role, on, in_))
    session.output.note(f"{name} has the role {role.value}")


@grant.command("remove")
@connected
def remove_grant(
    session: Session,
    *,
    name: Name,
    role: Annotated[Role, typer.Argument(help="What NAME may do.")],
    on: OnCluster = None,
    in_: InNamespace = None,
    group: Group = False,
) -> None:
    """Take one grant from a principal or a group; --on and --in have to be those of the grant."""
    gone = grant_of(role, on, in_)

    def without(known: Grants | None) -> Grants:
        if gone not in (known or []):
            raise WrongUsage(
                f"{name} has no such grant; `moorage grant list` shows those that there are."
            )
        return [other for other in known or [] if other != gone]

    change_grants(session, path_of(collection_of(group=group), name), without)
    session.output.note(f"{name} no longer has the role {role.value}")


@grant.command("list")
@connected
def list_grants(session: Session) -> None:
    """Show who has which role, and where."""
    rows = [
        (kind, holder["name"], grant)
        for kind in ("principal", "group")
        for holder in session.client.get(f"/v1/{kind}s")["items"]
        for grant in holder["grants"]
    ]
    if not session.output.for_people:
        session.output.document(
            [{"kind": kind, "name": name, **grant} for kind, name, grant in rows]
        )
        return
    session.output.table(
        ["kind", "name", "role", "cluster", "namespace"],
        (
            [kind, name, grant["role"], grant.get("cluster", "all"), grant.get("namespace", "all")]
            for kind, name, grant in rows
        ),
    )
