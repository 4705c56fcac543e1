"""`moorage evict`: evict a pod from its node."""

from typing import Annotated

import typer

from moorage.cli.session.options import DryRun, PodNamespace, Session, connected
from moorage.cli.session.resources import pod_identity


@connected
def evict(
    session: Session,
    *,
    pod: Annotated[str, typer.Argument(help="namespace/name")],
    namespace: PodNamespace = None,
    dry_run: DryRun = False,
) -> None:
    """Ask that a pod leave its node."""
    session = session.trying(dry_run)
    namespace, name = pod_identity(pod, namespace or session.namespace)
    path = session.client.path("namespaces", namespace, "pods", name, "eviction")
    session.done(
        session.client.post_once(path, {}), f"{namespace}/{name} is being evicted", wraps=True
    )
