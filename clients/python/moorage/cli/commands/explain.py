"""`moorage explain`: explain why a pod is on its node, or why it waits."""

from typing import Annotated

import typer

from moorage.cli.render.explanations import print_explanation
from moorage.cli.render.rows import Item
from moorage.cli.session.hints import suggest_namespaces
from moorage.cli.session.options import PodNamespace, Session, connected
from moorage.cli.session.resources import PODS, Target, pod_identity


@connected
def explain(
    session: Session,
    *,
    name: Annotated[str, typer.Argument(help="The pod: namespace/name, or a name with -n.")],
    namespace: PodNamespace = None,
    about: Annotated[
        str | None,
        typer.Option("--node", help="Say what stands against the pod on this node alone."),
    ] = None,
) -> None:
    """Say why a pod is where it is, or why it waits."""
    namespace, name = pod_identity(name, namespace or session.namespace)
    path = session.client.path("namespaces", namespace, "pods", name)
    with suggest_namespaces(session, Target(PODS, namespace, name)):
        explanation = session.client.get(f"{path}/explanation", {"node": about})
    if not session.output.for_people:
        session.output.document(explanation)
        return
    pod = session.client.get(path)
    node = pod["spec"].get("nodeName")
    session.output.prose(f"{namespace}/{name}: {_where(node, explanation)}", style="bold")
    print_explanation(session.output, explanation, chosen=node)


def _where(node: str | None, explanation: Item) -> str:
    if node is not None:
        return f"on {node}"
    return explanation.get("message") or "not placed, but it could be now"
