"""`moorage token` and `moorage grant`: who may make requests, and which."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated
from urllib.parse import quote

import typer

from service.cli.arguments.durations import read_seconds
from service.cli.errors import Refused, WrongUsage
from service.cli.found_in_other_namespaces import NOT_FOUND
from service.cli.options import Session, connected

CHANGED_MEANWHILE = "PreconditionFailed"
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

token_commands = typer.Typer(
    help="Tokens: what callers prove with who they are.", no_args_is_help=True
)
grant_commands = typer.Typer(help="Grants: what callers may do, and where.", no_args_is_help=True)


@token_commands.command("create")
@connected
def create_token(
    session: Session,
    *,
    name: Name,
    role: Annotated[
        Role | None, typer.Option("--role", help="Grant this role first; else NAME has to exist.")
    ] = None,
    on: OnCluster = None,
    in_: InNamespace = None,
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires", help="How long a token is valid, such as 12h or 90d (default: for ever)."
        ),
    ] = None,
    description: Annotated[str, typer.Option("--description", help="What the token is for.")] = "",
) -> None:
    """Make a token for NAME, and print it: it cannot be shown again.

    The first token of a server has to be an admin's. From then on every caller needs a token.
    """
    if role is None and (on or in_):
        raise WrongUsage("--on and --in say where a --role is granted.")
    settings = {
        "description": description,
        "expiresInSeconds": None if expires is None else read_seconds("--expires", expires),
    }
    if role is not None:
        _grant(session, "principals", name, _shown(role, on, in_))
    path = f"{path_of('principals', name)}/tokens"
    given = {key: value for key, value in settings.items() if value is not None}
    made = session.client.post(path, given)
    if session.output.for_people:
        typer.echo(made["token"])
    else:
        session.output.document(made)


@token_commands.command("list")
@connected
def list_tokens(session: Session) -> None:
    """Show all tokens, without their secrets."""
    principals = session.client.get("/v1/principals")["items"]
    rows = [(each["name"], token) for each in principals for token in each["tokens"]]
    if not session.output.for_people:
        session.output.document([{"principal": name, **token} for name, token in rows])
        return
    session.output.table(
        ["token", "principal", "created", "expires", "last used", "description"],
        (
            [
                token["id"],
                name,
                token["createdAt"],
                token.get("expiresAt", "never"),
                token.get("lastUsedAt", "never"),
                token["description"],
            ]
            for name, token in rows
        ),
    )


@token_commands.command("revoke")
@connected
def revoke_token(
    session: Session,
    *,
    tokens: Annotated[
        list[str], typer.Argument(metavar="TOKEN...", help="Ids, as `token list` shows them.")
    ],
) -> None:
    """Revoke tokens: after a few seconds the server refuses them."""
    for each in tokens:
        session.client.delete(f"/v1/tokens/{quote(each, safe='')}")
        session.output.note(f"{each} is revoked")


@grant_commands.command("add")
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
    _grant(session, _collection(group=group), name, _shown(role, on, in_))
    session.output.note(f"{name} has the role {role.value}")


@grant_commands.command("remove")
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
    gone = _shown(role, on, in_)

    def without(known: Grants | None) -> Grants:
        if gone not in (known or []):
            raise WrongUsage(
                f"{name} has no such grant; `moorage grant list` shows those that there are."
            )
        return [each for each in known or [] if each != gone]

    _change(session, path_of(_collection(group=group), name), without)
    session.output.note(f"{name} no longer has the role {role.value}")


@grant_commands.command("list")
@connected
def list_grants(session: Session) -> None:
    """Show who has which role, and where."""
    rows = [
        (kind, each["name"], grant)
        for kind in ("principal", "group")
        for each in session.client.get(f"/v1/{kind}s")["items"]
        for grant in each["grants"]
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


def _collection(*, group: bool) -> str:
    return "groups" if group else "principals"


def path_of(collection: str, name: str) -> str:
    """Make the path of a principal or a group; a slash in the name is escaped."""
    escaped = name.replace("~", "~0").replace("/", "~1")
    return f"/v1/{collection}/{quote(escaped, safe='')}"


def _shown(role: Role, cluster: str | None, namespace: str | None) -> dict[str, str]:
    where = {"cluster": cluster, "namespace": namespace}
    return {"role": role.value, **{key: value for key, value in where.items() if value}}


def _grant(session: Session, collection: str, name: str, grant: dict[str, str]) -> None:
    def with_it(known: Grants | None) -> Grants:
        return known if known and grant in known else [*(known or []), grant]

    _change(session, path_of(collection, name), with_it)


def _change(session: Session, path: str, change: Callable[[Grants | None], Grants]) -> None:
    """Change the grants at `path`; `change` gets the present ones, None for a new principal.

    If another client changes them at the same time, `change` is called again with the new ones.
    """
    for attempt in range(1, ATTEMPTS_MAX + 1):
        known, precondition = _known(session, path)
        wanted = change(known)
        if wanted == known:
            return
        try:
            session.client.put(path, {"grants": wanted}, precondition)
        except Refused as error:
            if error.problem.get("code") != CHANGED_MEANWHILE or attempt == ATTEMPTS_MAX:
                raise
        else:
            return


def _known(session: Session, path: str) -> tuple[Grants | None, dict[str, str]]:
    """Return a principal's grants, and the header with which a PUT replaces no other grants."""
    try:
        found, tag = session.client.get_tagged(path)
    except Refused as error:
        if error.problem.get("code") != NOT_FOUND:
            raise
        return None, {"If-None-Match": "*"}
    return found["grants"], {"If-Match": tag} if tag else {}
