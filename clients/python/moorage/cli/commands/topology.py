"""`moorage topology`: show the domains of a topology key."""

from typing import Annotated

import typer

from moorage.cli.render.rows import Item
from moorage.cli.session.options import Session, connected


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


def _count(value: object) -> object:
    return len(value) if isinstance(value, list) else value


def _free(amounts: Item) -> str:
    return ", ".join(f"{name} {_readable(str(amount))}" for name, amount in amounts.items())


def _readable(amount: str) -> str:
    """Format large numbers of bytes in GiB or MiB; return other amounts unchanged."""
    for unit, size in (("Gi", 1 << 30), ("Mi", 1 << 20)):
        if amount.isdigit() and int(amount) >= size:
            return f"{int(amount) / size:.1f}{unit}"
    return amount
