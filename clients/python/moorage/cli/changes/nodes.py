"""Actions on nodes: cordon, uncordon, drain."""

from typing import Annotated, Any

import typer

from moorage.cli.session.options import Session

Nodes = Annotated[list[str], typer.Argument(metavar="NODE…", help="The names of the nodes.")]


def act_on_node(
    session: Session, node: str, action: str, options: dict[str, Any] | None = None
) -> Any:
    """Perform an action on a node, exactly once, and return the server's answer."""
    path = session.client.path("nodes", node, action)
    return session.client.post_once(path, options or {})
