"""The command `delete`: one object, several by name or from files, or all that a selector matches."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
import typer

from service.cli.batches import in_batches
from service.cli.errors import ExitCode, WrongUsage
from service.cli.options import Session, connected
from service.cli.resources import Resource, find_resource, identity, split_identity
from service.cli.sources import read_objects

LINES_PER_REQUEST = 1_000

Answers = list[dict[str, Any]]


@connected
def delete(
    session: Session,
    *,
    kind: Annotated[
        str | None, typer.Argument(help="Such as node, pod, resourcequota; not with -f.")
    ] = None,
    names: Annotated[
        list[str] | None, typer.Argument(help="The objects; namespace/name for pods and the like.")
    ] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Their namespace (default: default).")
    ] = None,
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="With a selector: in all namespaces.")
    ] = False,
    selector: Annotated[
        str | None, typer.Option("--selector", "-l", help="All with such labels: app=web,tier!=db.")
    ] = None,
    field_selector: Annotated[
        str | None, typer.Option("--field-selector", help="All such as spec.nodeName=node-1.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All objects of the kind.")] = False,
    file: Annotated[
        list[str] | None,
        typer.Option("--file", "-f", help="The objects in a file, folder or - (standard input)."),
    ] = None,
) -> None:
    """Delete objects at once: by name, by a selector, or those in files."""
    filters = {"labelSelector": selector, "fieldSelector": field_selector}
    by_filter = everything or any(filters.values())
    if [bool(names), by_filter, bool(file)].count(True) != 1 or (kind is None) != bool(file):
        raise WrongUsage("Name a kind, and objects, a selector or --all; or files with -f.")
    if kind is None:
        _delete_lines(session, [_line(each) for each in read_objects(file or [])])
        return
    resource = find_resource(kind)
    if not names:
        params = filters | {"all": "true" if everything else None}
        scope = _scope(resource, namespace, all_namespaces=all_namespaces)
        _delete_matching(session, resource, scope, params)
    elif len(names) == 1:
        _delete_one(session, resource, names[0], namespace)
    else:
        _delete_lines(session, [_named(resource, each, namespace) for each in names])


def _delete_one(session: Session, resource: Resource, name: str, namespace: str | None) -> None:
    scope: Sequence[str] = ()
    if resource.namespaced:
        namespace, name = split_identity(name, namespace)
        scope = ("namespaces", namespace)
    answer = session.client.delete(session.client.path(*scope, resource.plural, name))
    if session.output.for_people:
        session.output.line(f"{resource.kind} {name} deleted")
    else:
        session.output.document(answer)


def _scope(resource: Resource, namespace: str | None, *, all_namespaces: bool) -> Sequence[str]:
    if all_namespaces and namespace:
        raise WrongUsage("--all-namespaces and --namespace contradict each other.")
    if all_namespaces or not resource.namespaced:
        return ()
    return ("namespaces", namespace or "default")


def _delete_matching(
    session: Session, resource: Resource, scope: Sequence[str], params: dict[str, str | None]
) -> None:
    """Delete until nothing is left that matches and can be deleted."""
    path = session.client.path(*scope, resource.plural)
    results: dict[str, dict[str, Any]] = {}
    while True:
        answer = session.client.delete_once(path, params)
        results |= {identity(each): each for each in answer["results"]}
        if not answer["remaining"] or not answer["deleted"]:
            break
    _tell(
        session,
        list(results.values()),
        lambda each: f"{resource.kind} {identity(each)}: {each.get('message')}",
    )


def _delete_lines(session: Session, lines: Sequence[dict[str, Any]]) -> None:
    path = session.client.path("apply")
    results: Answers = []
    for batch in in_batches(session.output, "deleting", lines, LINES_PER_REQUEST):
        before = len(results)
        answers = session.client.post_lines(path, [msgspec.json.encode(line) for line in batch])
        results += [{**answer, "line": before + answer["line"]} for answer in answers]
    _tell(session, results, _why_not)


def _tell(session: Session, results: Answers, why_not: Callable[[dict[str, Any]], str]) -> None:
    left = [each for each in results if each["result"] != "Deleted"]
    if session.output.for_people:
        for each in left:
            session.output.line(why_not(each))
        session.output.line(f"{len(results) - len(left)} deleted")
    else:
        session.output.document({"results": results})
    if left:
        raise typer.Exit(ExitCode.REFUSED)


def _why_not(result: dict[str, Any]) -> str:
    why = "; ".join(each["message"] for each in result.get("errors") or ())
    named = f"{result.get('kind')} {identity(result)}" if result.get("name") else "object"
    return f"{named}: {result['result']}: {why}"


def _line(manifest: dict[str, Any]) -> dict[str, Any]:
    """The deletion of what a manifest is named; it may be newer than the file, so no more is compared."""
    metadata = manifest.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    kept = {key: named[key] for key in ("namespace", "name") if key in named}
    return {"delete": {"kind": manifest.get("kind"), "metadata": kept}}


def _named(resource: Resource, name: str, namespace: str | None) -> dict[str, Any]:
    metadata = {"name": name}
    if resource.namespaced:
        namespace, own = split_identity(name, namespace)
        metadata = {"namespace": namespace, "name": own}
    return {"delete": {"kind": resource.kind, "metadata": metadata}}
