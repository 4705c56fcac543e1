"""`moorage create`: create a cluster or a namespace; `apply` creates other objects from files."""

from typing import Annotated

import typer

from moorage.cli.exceptions import Refused, WrongUsage
from moorage.cli.input.settings import read_setting
from moorage.cli.session.hints import NOT_FOUND
from moorage.cli.session.options import DryRun, Session, connected
from moorage.cli.session.resources import find_resource


@connected
def create(
    session: Session,
    *,
    kind: Annotated[str, typer.Argument(help="cluster or namespace.")],
    name: Annotated[str, typer.Argument(help="Its name.")],
    settings: Annotated[
        list[str] | None,
        typer.Argument(help="Of a cluster: name=value, the value as YAML, as in `config`."),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Create a cluster or a namespace that is not there yet."""
    session = session.trying(dry_run)
    resource = find_resource(kind)
    if resource.kind not in {"Cluster", "Namespace"}:
        raise WrongUsage(
            f"`create` makes clusters and namespaces; `apply -f` makes {resource.plural}."
        )
    if resource.of_server:
        made = _create_cluster(session, name, settings or [])
    elif settings:
        raise WrongUsage("A namespace has no settings.")
    else:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        path = session.client.path("namespaces", name)
        made = session.client.put(path, body, {"If-None-Match": "*"})
    session.done(made, f"{resource.singular}/{name} created")


def _create_cluster(session: Session, name: str, settings: list[str]) -> object:
    client = session.client.on_cluster(name)
    try:
        client.get(client.path())
    except Refused as error:
        if error.problem.get("code") != NOT_FOUND:
            raise
        config = dict(map(read_setting, settings))
        return client.put(client.path(), {"config": config}, {"If-None-Match": "*"})
    raise Refused({"code": "AlreadyExists", "detail": f"The cluster {name} is there already."})
