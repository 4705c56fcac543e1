"""Commands that only read: get, explain, violations, topology, status."""

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from service.cli.explanations import print_explanation
from service.cli.options import Session, connected
from service.cli.output import Format
from service.cli.resources import (
    RESOURCES,
    Item,
    Resource,
    find_resource,
    identity,
    split_identity,
)

Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Only this namespace (default: all).")
]
Selector = Annotated[
    str | None, typer.Option("--selector", "-l", help="Label selector, such as app=web,tier!=db.")
]
FieldSelector = Annotated[
    str | None, typer.Option("--field-selector", help="Such as spec.nodeName=node-1.")
]


@connected
def get(
    session: Session,
    *,
    kind: Annotated[
        str,
        typer.Argument(help=f"{', '.join(each.plural for each in RESOURCES)}, clusters."),
    ],
    name: Annotated[
        str | None, typer.Argument(help="One object; namespace/name for a pod.")
    ] = None,
    namespace: Namespace = None,
    selector: Selector = None,
    field_selector: FieldSelector = None,
    no_headers: Annotated[
        bool, typer.Option("--no-headers", help="Leave the headings out.")
    ] = False,
) -> None:
    """Show objects in a table, or their manifests with -o json."""
    if kind.lower() in {"clusters", "cluster"}:
        _print_clusters(session, name)
        return
    resource = find_resource(kind)
    if name is not None:
        _print_one(
            session, resource, session.client.get(_path_of_one(session, resource, name, namespace))
        )
        return
    filters = {"labelSelector": selector, "fieldSelector": field_selector}
    parts = ["namespaces", namespace] if namespace and resource.namespaced else []
    path = session.client.path(*parts, resource.plural)
    pages = session.client.pages(path, filters)
    if resource.order is not None:
        pages = iter([sorted((item for page in pages for item in page), key=resource.order)])
    _print_pages(session, resource, pages, headed=not no_headers)


@connected
def explain(
    session: Session,
    *,
    name: Annotated[str, typer.Argument(help="The pod: namespace/name, or a name with -n.")],
    namespace: Namespace = None,
) -> None:
    """Say why a pod is where it is, or why it waits."""
    namespace, name = split_identity(name, namespace)
    path = session.client.path("namespaces", namespace, "pods", name)
    explanation = session.client.get(f"{path}/explanation")
    if not session.output.for_people:
        session.output.document(explanation)
        return
    pod = session.client.get(path)
    node = pod["spec"].get("nodeName")
    session.output.line(f"{namespace}/{name}: {_where(node, explanation)}", style="bold")
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


def _path_of_one(session: Session, resource: Resource, name: str, namespace: str | None) -> str:
    if not resource.namespaced:
        return session.client.path(resource.plural, name)
    namespace, name = split_identity(name, namespace)
    return session.client.path("namespaces", namespace, resource.plural, name)


def _print_one(session: Session, resource: Resource, item: Item) -> None:
    if session.output.format in {Format.JSON, Format.YAML}:
        session.output.document(item)
    else:
        _print_pages(session, resource, [[item]])


def _print_pages(
    session: Session, resource: Resource, pages: Iterable[list[Any]], *, headed: bool = True
) -> None:
    """Print the objects of a list; tables and names as the pages come in."""
    if session.output.format is Format.NAME:
        for page in pages:
            for item in page:
                session.output.line(identity(item))
    elif session.output.for_people:
        table = session.output.streamed(resource.columns, headed=headed)
        for page in pages:
            table.add(map(resource.row, page))
        table.end()
    else:
        items = [item for page in pages for item in page]
        session.output.document({"apiVersion": "v1", "kind": "List", "items": items})


def _print_clusters(session: Session, name: str | None) -> None:
    path = "/v1/clusters"
    clusters = [session.client.get(f"{path}/{name}")] if name else session.client.get(path)["items"]
    if not session.output.for_people:
        session.output.document({"items": clusters})
        return
    session.output.table(
        ("name", "revision", "nodes", "pods", "pending"),
        (
            (
                c["name"],
                c["revision"],
                *(c["counts"][count] for count in ("nodes", "pods", "pending")),
            )
            for c in clusters
        ),
    )


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
