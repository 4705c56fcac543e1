"""`moorage delete`: delete objects by name, from files, or by selector."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from moorage.cli.changes.batches import apply_lines
from moorage.cli.exceptions import ExitCode, Refused, WrongUsage
from moorage.cli.input.manifests import kept_objects, nodes_for_daemon
from moorage.cli.input.sources import read_objects
from moorage.cli.input.workloads import Expansion, Origin, expand
from moorage.cli.render.output import print_error
from moorage.cli.render.rows import identity
from moorage.cli.session.hints import NOT_FOUND, suggest_namespaces
from moorage.cli.session.options import DryRun, Session, connected
from moorage.cli.session.resources import Target, complete_kind, read_targets

CLAIM = "PersistentVolumeClaim"

Answers = list[dict[str, Any]]


@connected
def delete(
    session: Session,
    *,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KIND NAME… | KIND/NAME… | KIND]",
            help="What to delete, by name as in `get`; a cluster with all that is in it. A kind "
            "alone takes a selector or --all.",
            autocompletion=complete_kind,
        ),
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
    ignore_not_found: Annotated[
        bool, typer.Option("--ignore-not-found", help="An absent object is no error.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Delete objects at once: by name, by a selector, or those in files.

    Of a workload in a file, such as a Deployment, its pods are deleted, but not the claims that a
    StatefulSet has made.
    """
    session = session.trying(dry_run)
    filters = {"labelSelector": selector, "fieldSelector": field_selector}
    if file:
        if what or everything or any(filters.values()):
            raise WrongUsage("With -f, the files say what to delete.")
        objects = kept_objects(session, read_objects(file))
        expansion = expand(objects, lambda pod: nodes_for_daemon(session, pod))
        _delete_objects(session, expansion, ignore_not_found=ignore_not_found)
        return
    targets = read_targets(what or [], namespace or session.namespace)
    if everything or any(filters.values()):
        params = filters | {"all": "true" if everything else None}
        if all_namespaces and namespace:
            raise WrongUsage("--all-namespaces and --namespace contradict each other.")
        for target in targets:
            _delete_matching(session, target, params, all_namespaces=all_namespaces)
        return
    if any(target.name is None for target in targets):
        raise WrongUsage("Name the objects to delete, or give a selector or --all.")
    _delete_named(session, targets, ignore_not_found=ignore_not_found)


def _delete_named(session: Session, targets: Sequence[Target], *, ignore_not_found: bool) -> None:
    """Delete objects one by one, and report failures at the end."""
    errors = []
    for target in targets:
        try:
            with suggest_namespaces(session, target):
                answer = session.client.delete(target.path(session.client))
        except Refused as error:
            if not (ignore_not_found and error.problem.get("code") == NOT_FOUND):
                errors.append(error)
        else:
            session.done(answer, f"{target.told} deleted")
    for failure in errors:
        print_error(failure)
    if errors:
        raise typer.Exit(ExitCode.REFUSED)


def _delete_matching(
    session: Session, target: Target, params: dict[str, str | None], *, all_namespaces: bool
) -> None:
    """Delete matching objects until none that can be deleted is left; a dry run asks once."""
    resource = target.resource
    if target.name is not None or resource.of_server:
        raise WrongUsage("A selector and --all are for a kind of a cluster, without names.")
    own = resource.namespaced and not all_namespaces
    scope = ("namespaces", target.namespace or "default") if own else ()
    path = session.client.path(*scope, resource.plural)
    results: dict[str, dict[str, Any]] = {}
    while True:
        answer = session.client.delete_once(path, params)
        results |= {identity(result): result for result in answer["results"]}
        if session.suffix or not answer["remaining"] or not answer["deleted"]:
            break
    _tell(
        session,
        list(results.values()),
        lambda result: f"{resource.kind} {identity(result)}: {result.get('message')}",
    )


def _delete_objects(session: Session, expansion: Expansion, *, ignore_not_found: bool) -> None:
    """Delete the objects in files, and those made from the workloads in them."""
    parts = [
        (item, origin)
        for item, origin in zip(expansion.objects, expansion.origins, strict=True)
        if origin is None or item["kind"] != CLAIM
    ]
    # A namespace is deleted after its contents, so that each object in it gets a result.
    parts.sort(key=lambda part: part[0].get("kind") == "Namespace")
    lines = [_line(item) for item, _ in parts]
    results = apply_lines(session.client, session.output, "deleting", lines)
    results = _by_workload(results, [origin for _, origin in parts])
    if ignore_not_found:
        results = [result for result in results if result["result"] != NOT_FOUND]
    _tell(session, results, _why_not)


def _by_workload(results: Answers, origins: Sequence[Origin | None]) -> Answers:
    """Drop the absent objects of workloads; a workload with no other objects is absent itself."""
    kept, workloads = [], dict[str, bool]()
    for result in results:
        origin, absent = origins[result["line"] - 1], result["result"] == NOT_FOUND
        if origin is not None:
            workloads[origin.workload] = workloads.get(origin.workload, True) and absent
        if origin is None or not absent:
            kept.append(result)
    for workload in (name for name, is_absent in workloads.items() if is_absent):
        kind, _, identity_told = workload.partition(" ")
        namespace, _, name = identity_told.partition("/")
        missing = {"kind": kind, "namespace": namespace, "name": name, "result": NOT_FOUND}
        kept.append(missing | {"errors": [{"field": "", "message": "none of its pods is there"}]})
    return kept


def _tell(session: Session, results: Answers, why_not: Callable[[dict[str, Any]], str]) -> None:
    left = [result for result in results if result["result"] != "Deleted"]
    if session.output.for_people:
        for result in left:
            session.output.prose(why_not(result))
        session.output.line(f"{len(results) - len(left)} deleted{session.suffix}")
    else:
        session.output.document({"results": results})
    if left:
        raise typer.Exit(ExitCode.REFUSED)


def _why_not(result: dict[str, Any]) -> str:
    why = "; ".join(error["message"] for error in result.get("errors") or ())
    named = f"{result.get('kind')} {identity(result)}" if result.get("name") else "object"
    return f"{named}: {result['result']}: {why}"


def _line(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the deletion of a manifest's object, by name only: the object may have changed."""
    metadata = manifest.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    kept = {key: named[key] for key in ("namespace", "name") if key in named}
    return {"delete": {"kind": manifest.get("kind"), "metadata": kept}}
