"""`moorage top`: show each node's used and free resources."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from moorage.cli.exceptions import WrongUsage
from moorage.cli.render.output import Format
from moorage.cli.render.rows import Item, sizes_of
from moorage.cli.session.node_usage import Usage, readable, usage_of_nodes
from moorage.cli.session.options import LabelSelector, Session, connected
from moorage.cli.session.resources import NODES, complete_kind, read_targets

SHOWN = ("cpu", "memory", "pods")


@connected
def top(
    session: Session,
    *,
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="nodes [NAME…]", help="Nodes, all or by name.", autocompletion=complete_kind
        ),
    ],
    selector: LabelSelector = None,
    sort_by: Annotated[
        str | None, typer.Option("--sort-by", help="cpu, memory, pods: the most used ones first.")
    ] = None,
    no_headers: Annotated[
        bool, typer.Option("--no-headers", help="Leave the headings out.")
    ] = False,
) -> None:
    """Show what the pods on each node request, and what is free; -o wide shows all resources."""
    if sort_by not in {None, *SHOWN}:
        raise WrongUsage(f"--sort-by {sort_by}: expected one of {', '.join(SHOWN)}.")
    nodes = _nodes(session, what, selector)
    usage = usage_of_nodes(session.client)
    known = [(node, usage[name]) for node in nodes if (name := node["metadata"]["name"]) in usage]
    if not session.output.for_people:
        session.output.document(
            {"items": [_as_document(node, node_usage) for node, node_usage in known]}
        )
        return
    if sort_by is not None:
        known.sort(key=lambda pair: _share(pair[0], pair[1], sort_by), reverse=True)
    table = session.output.streamed(_columns(session), headed=not no_headers)
    table.add(_row(session, node, node_usage) for node, node_usage in known)
    table.end()


def _nodes(session: Session, what: Sequence[str], selector: str | None) -> list[Item]:
    targets = read_targets(what, None)
    if any(target.resource is not NODES for target in targets):
        raise WrongUsage("`top` shows nodes.")
    nodes: list[Item] = []
    for target in targets:
        path = target.path(session.client)
        if target.name is not None:
            nodes.append(session.client.get(path))
            continue
        pages = session.client.pages(path, {"labelSelector": selector})
        nodes += [node for page in pages for node in page]
    return nodes


def _columns(session: Session) -> Sequence[str]:
    columns = [heading for name in SHOWN for heading in (name, f"{name} %", f"{name} free")]
    wide = ["other resources free"] if session.output.format is Format.WIDE else []
    return ["name", *columns, *wide]


def _row(session: Session, node: Item, usage: Usage) -> Sequence[object]:
    sizes = sizes_of(node)
    cells = [
        cell
        for name in SHOWN
        for cell in (usage.shown(name, sizes[name]) if name in sizes else (None, None, None))
    ]
    others = [
        f"{name} {readable(name, usage.amounts(name, size)[2])}"
        for name, size in sizes.items()
        if name not in SHOWN
    ]
    wide = [", ".join(others)] if session.output.format is Format.WIDE else []
    return [node["metadata"]["name"], *cells, *wide]


def _share(node: Item, usage: Usage, resource: str) -> float:
    size = sizes_of(node).get(resource)
    if size is None:
        return 0.0
    whole, used, _ = usage.amounts(resource, size)
    return used / whole if whole else 0.0


def _as_document(node: Item, usage: Usage) -> dict[str, Any]:
    sizes = sizes_of(node)
    amounts = {name: usage.amounts(name, size) for name, size in sizes.items()}
    used = {name: readable(name, amount[1]) for name, amount in amounts.items()}
    return {
        "name": node["metadata"]["name"],
        "allocatable": dict(sizes),
        "used": used,
        "free": dict(usage.free),
    }
