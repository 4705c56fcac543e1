"""Commands that answer questions: explain, violations, topology, status."""

from typing import Annotated

import typer

from service.cli.found_in_other_namespaces import telling_whereabouts
from service.cli.options import Session, connected
from service.cli.printing.explanations import print_explanation
from service.cli.printing.table_rows import Item, identity
from service.cli.resources import PODS, Target, pod_identity

Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="The pod's namespace.")]


@connected
def explain(
    session: Session,
    *,
    name: Annotated[str, typer.Argument(help="The pod: namespace/name, or a name with -n.")],
    namespace: Namespace = None,
    about: Annotated[
        str | None,
        typer.Option("--node", help="Say what stands against the pod on this node alone."),
    ] = None,
) -> None:
    """Say why a pod is where it is, or why it waits."""
    namespace, name = pod_identity(name, namespace or session.namespace)
    path = session.client.path("namespaces", namespace, "pods", name)
    with telling_whereabouts(session, Target(PODS, namespace, name)):
        explanation = session.client.get(f"{path}/explanation", {"node": about})
    if not session.output.for_people:
        session.output.document(explanation)
        return
    pod = session.client.get(path)
    node = pod["spec"].get("nodeName")
    session.output.prose(f"{namespace}/{name}: {_where(node, explanation)}", style="bold")
    print_explanation(session.output, explanation, chosen=node)


@connected
def violations(session: Session) -> None:
    """List the placed pods that break a required rule now."""
    answer = session.client.get(session.client.path("violations"))
    if not session.output.for_people:
        session.output.document(answer)
        return
    session.output.table(
        ("pod", "node", "plugin", "rule", "reason"),
        (
            (identity(item), item["nodeName"], item["plugin"], item["rule"], item["reason"])
            for item in answer["items"]
        ),
    )


@connected
def topology(
    session: Session,
    *,
    key: Annotated[str, typer.Argument(help="A node label.")] = "topology.kubernetes.io/zone",
) -> None:
    """Show the domains of a topology key, with their nodes, pods and free resources."""
    answer = session.client.get(session.client.path("topology"), {"key": key})
    if not session.output.for_people:
        session.output.document(answer)
        return
    session.output.table(
        (key, "nodes", "pods", "free"),
        (
            (d["value"], _count(d["nodes"]), _count(d["pods"]), _free(d["free"]))
            for d in answer["domains"]
        ),
    )


@connected
def status(session: Session) -> None:
    """Tell whether the server is ready (exit code 0) or not (exit code 3)."""
    answer = session.client.get("/readyz")
    if session.output.for_people:
        session.output.line(f"{session.client.url} is ready")
    else:
        session.output.document(answer)


def _where(node: str | None, explanation: Item) -> str:
    if node is not None:
        return f"on {node}"
    return explanation.get("message") or "not placed, but it could be now"


def _count(value: object) -> object:
    return len(value) if isinstance(value, list) else value


def _free(amounts: Item) -> str:
    return ", ".join(f"{name} {_readable(str(amount))}" for name, amount in amounts.items())


def _readable(amount: str) -> str:
    """Write large numbers of bytes in GiB or MiB, and other amounts as they are."""
    for unit, size in (("Gi", 1 << 30), ("Mi", 1 << 20)):
        if amount.isdigit() and int(amount) >= size:
            return f"{int(amount) / size:.1f}{unit}"
    return amount
