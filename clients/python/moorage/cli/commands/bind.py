"""`moorage bind`: bind a pod to a named node."""

from typing import Annotated

import typer

from moorage.cli.session.options import DryRun, PodNamespace, Session, connected
from moorage.cli.session.resources import pod_identity


@connected
def bind(
    session: Session,
    *,
    pod: Annotated[str, typer.Argument(help="namespace/name")],
    node: Annotated[str, typer.Argument(help="The node to bind it to.")],
    namespace: PodNamespace = None,
    force: Annotated[
        bool, typer.Option("--force", help="Bind the pod even if a filter refuses the node.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Bind a pod to a named node, if all filters pass there."""
    session = session.trying(dry_run)
    namespace, name = pod_identity(pod, namespace or session.namespace)
    path = session.client.path("namespaces", namespace, "pods", name, "binding")
    answer = session.client.post_once(path, {"target": {"name": node}, "force": force})
    session.done(answer, f"{namespace}/{name} bound to {node}", wraps=True)
