"""`moorage token`: manage the tokens that authenticate callers."""

from typing import Annotated
from urllib.parse import quote

import typer

from moorage.cli.changes.grants import (
    InNamespace,
    Name,
    OnCluster,
    Role,
    grant_of,
    grant_role,
    path_of,
)
from moorage.cli.exceptions import WrongUsage
from moorage.cli.input.durations import read_seconds
from moorage.cli.session.options import Session, connected

token = typer.Typer(
    help="Tokens: what callers prove with who they are.", no_args_is_help=True, add_completion=False
)


@token.command("create")
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
        grant_role(session, "principals", name, grant_of(role, on, in_))
    path = f"{path_of('principals', name)}/tokens"
    given = {key: value for key, value in settings.items() if value is not None}
    made = session.client.post(path, given)
    if session.output.for_people:
        typer.echo(made["token"])
    else:
        session.output.document(made)


@token.command("list")
@connected
def list_tokens(session: Session) -> None:
    """Show all tokens, without their secrets."""
    principals = session.client.get("/v1/principals")["items"]
    rows = [(principal["name"], token) for principal in principals for token in principal["tokens"]]
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


@token.command("revoke")
@connected
def revoke_token(
    session: Session,
    *,
    tokens: Annotated[
        list[str], typer.Argument(metavar="TOKEN...", help="Ids, as `token list` shows them.")
    ],
) -> None:
    """Revoke tokens: after a few seconds the server refuses them."""
    for token_id in tokens:
        session.client.delete(f"/v1/tokens/{quote(token_id, safe='')}")
        session.output.note(f"{token_id} is revoked")
