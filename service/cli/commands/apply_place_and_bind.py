"""Commands that change a cluster: apply, place, bind, evict, config."""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer

from moorage.requests import Params
from service.cli.arguments.cluster_setting_arguments import read_setting
from service.cli.batches import REFUSED, apply_lines, in_batches
from service.cli.errors import ExitCode, WrongUsage
from service.cli.manifests.manifest_sources import read_objects
from service.cli.manifests.manifests import read_manifests, told_by_manifest
from service.cli.manifests.workload_expansion import Expansion, Origin, pod_of
from service.cli.options import DryRun, Session, connected
from service.cli.printing.explanations import (
    PLACED,
    count_outcomes,
    describe_outcomes,
    print_results,
    print_results_over_clusters,
    reasons_of_refusals,
)
from service.cli.printing.table_rows import identity
from service.cli.resources import RESOURCES, pod_identity

LIST_OBJECTS_MAX = 10_000
"""By default, the server takes at most so many objects in one commit (`apply_objects_max`)."""

_OVER_CLUSTERS = "/v1/placements"

RESULTS_SHOWN = 50
"""If there are more results, only counts and reasons are printed (with -o json all results)."""

Files = Annotated[
    list[str],
    typer.Option("--file", "-f", help="File, folder or - (YAML, JSON, JSON Lines, also .gz)."),
]
Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="The pod's namespace.")]


class Detail(StrEnum):
    """How much of a placement is explained."""

    NONE = "none"
    SUMMARY = "summary"
    FULL = "full"


@connected
def apply(
    session: Session,
    *,
    file: Files,
    prune: Annotated[
        str | None,
        typer.Option("--prune", help="Kinds (Node,Pod) of which to remove what the files lack."),
    ] = None,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Use many commits, and skip and report bad objects. Without it, one commit holds all or nothing.",
        ),
    ] = False,
    no_pods: Annotated[
        bool, typer.Option("--no-pods", help="Make no pods of StatefulSets and ReplicaSets.")
    ] = False,
    server_side: Annotated[
        bool,
        typer.Option(
            "--server-side",
            help="Share objects with other managers: merge the fields in the files into each object.",
        ),
    ] = False,
    field_manager: Annotated[
        str, typer.Option("--field-manager", help="Who applies, with --server-side.")
    ] = "moorage",
    force_conflicts: Annotated[
        bool,
        typer.Option(
            "--force-conflicts",
            help="Take over fields that others manage, with --server-side.",
        ),
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Create or change objects, such as nodes, pods and quotas; a Deployment becomes its pods."""
    session = session.trying(dry_run)
    if force_conflicts and not server_side:
        raise WrongUsage("--force-conflicts needs --server-side.")
    if server_side and (prune or stream):
        raise WrongUsage("--server-side goes with neither --prune nor --stream.")
    expansion = read_manifests(session, file, as_they_are=no_pods)
    if server_side:
        params = {"fieldManager": field_manager, "force": force_conflicts or None}
        _apply_each(session, expansion, params)
        return
    if stream or len(expansion.objects) > LIST_OBJECTS_MAX:
        if prune:
            raise WrongUsage(
                f"--prune needs one commit: at most {LIST_OBJECTS_MAX} objects, no --stream."
            )
        _apply_lines(session, expansion)
        return
    answer = _apply_at_once(session, expansion, prune)
    if session.output.for_people:
        for each in answer.get("generated") or ():
            session.output.line(f"{each['kind']} {identity(each)} created{session.suffix}")
        session.output.line(_applied(answer) + session.suffix)
    else:
        session.output.document(answer)


@connected
def place(
    session: Session,
    *,
    pods: Annotated[
        list[str] | None, typer.Argument(help="Stored pending pods, namespace/name each.")
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option(
            "--file",
            "-f",
            help="Manifests of pods, or of workloads such as Deployments: created if they are new.",
        ),
    ] = None,
    all_or_nothing: Annotated[
        bool, typer.Option("--all-or-nothing", help="Place all pods in one commit, or none.")
    ] = False,
    queue: Annotated[
        bool, typer.Option("--queue", help="Keep pending what cannot be placed now.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide, but change nothing.")] = False,
    explain: Annotated[
        Detail, typer.Option("--explain", help="How much to explain.")
    ] = Detail.NONE,
    replicas: Annotated[
        int | None,
        typer.Option(
            "--replicas", min=1, help="Place this many copies of the one pod in the file."
        ),
    ] = None,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Pods in one request.")] = 500,
    clusters: Annotated[
        str | None,
        typer.Option(
            "--clusters",
            help="Names of clusters (a,b), or all: place each pod in the one with most room.",
        ),
    ] = None,
    split_groups: Annotated[
        bool,
        typer.Option(
            "--split-groups",
            help="With --clusters: place a group in several clusters if no single one takes all of it.",
        ),
    ] = False,
) -> None:
    """Place pods, and store where they are; the exit code is 1 if one of them found no place."""
    options: dict[str, Any] = {
        "policy": "AllOrNothing" if all_or_nothing else "BestEffort",
        "onUnschedulable": "Queue" if queue else "Reject",
        "dryRun": dry_run,
        "explain": explain.value.capitalize(),
    }
    if bool(pods) == bool(file):
        raise WrongUsage("Name stored pods, or files with -f: one of the two.")
    if clusters is not None:
        _require_new_pods(pods, explain)
        del options["explain"]
        options["splitGroups"] = split_groups
        options |= {} if clusters == "all" else {"clusters": clusters.split(",")}
        _place_over_clusters(
            session, file or [], options, replicas, None if all_or_nothing else batch
        )
        return
    if replicas is not None:
        subject = _template(read_objects(file or []), replicas)
        answers = [_place_once(session, {**subject, **options})]
    elif pods:
        size = max(len(pods), 1) if all_or_nothing else batch
        answers = [
            _place_once(session, {"podRefs": part, **options})
            for part in in_batches(
                session.output, "placing", _references(pods, session.namespace), size
            )
        ]
    else:
        answers = _place_files(session, file or [], options, None if all_or_nothing else batch)
    _report(session, answers)


@connected
def bind(
    session: Session,
    *,
    pod: Annotated[str, typer.Argument(help="namespace/name")],
    node: Annotated[str, typer.Argument(help="The node to bind it to.")],
    namespace: Namespace = None,
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
    _done(session, answer, f"{namespace}/{name} bound to {node}")


@connected
def evict(
    session: Session,
    *,
    pod: Annotated[str, typer.Argument(help="namespace/name")],
    namespace: Namespace = None,
    dry_run: DryRun = False,
) -> None:
    """Ask that a pod leave its node."""
    session = session.trying(dry_run)
    namespace, name = pod_identity(pod, namespace or session.namespace)
    path = session.client.path("namespaces", namespace, "pods", name, "eviction")
    _done(session, session.client.post_once(path, {}), f"{namespace}/{name} is being evicted")


@connected
def config(
    session: Session,
    *,
    settings: Annotated[
        list[str] | None, typer.Argument(help="name=value, the value as YAML; null resets it.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Show a cluster's configuration, or change some of its settings."""
    session = session.trying(dry_run)
    path = session.client.path()
    if settings:
        changes = dict(read_setting(text) for text in settings)
        answer = session.client.patch(path, {"config": changes})
    else:
        answer = session.client.get(path)
    if session.output.for_people:
        rows = (
            (name, msgspec.json.encode(value).decode()) for name, value in answer["config"].items()
        )
        session.output.table(("setting", "value"), rows)
    else:
        session.output.document(answer["config"])


def _apply_each(session: Session, expansion: Expansion, params: Params) -> None:
    """Apply objects one by one, server-side; the first that is refused ends it."""
    for each in expansion.objects:
        kind, metadata = each.get("kind"), each.get("metadata") or {}
        resource = next((known for known in RESOURCES if known.kind == kind), None)
        if resource is None or not metadata.get("name"):
            raise WrongUsage(
                f"--server-side needs objects with a name, of a kind with objects, not {kind}."
            )
        namespace = metadata.get("namespace") or session.namespace
        path = resource.path(session.client, namespace, metadata["name"])
        answer = session.client.apply(path, each, params)
        told = f"{kind} {identity(answer['metadata'])} applied"
        _done(session, answer, told)


def _apply_at_once(session: Session, expansion: Expansion, prune: str | None) -> dict[str, Any]:
    body = {"apiVersion": "v1", "kind": "List", "items": expansion.objects}
    with told_by_manifest(expansion):
        answer: dict[str, Any] = session.client.post_once(
            session.client.path("apply"), body, {"prune": prune}
        )
    return answer


def _place_files(
    session: Session, files: Sequence[str], options: dict[str, Any], batch: int | None
) -> list[dict[str, Any]]:
    """Place the pods in files; what else is there is stored before, as the pods may need it."""
    expansion = read_manifests(session, files)
    others, pods = expansion.only(pods=False), expansion.only(pods=True)
    if others.objects and not options["dryRun"]:
        _apply_at_once(session, others, None)
        session.output.note(f"stored first: {len(others.objects)} other objects")
    size = batch or max(len(pods.objects), 1)
    answers = []
    for numbers in in_batches(session.output, "placing", range(len(pods.objects)), size):
        part = pods.part(numbers[0], numbers[-1] + 1)
        with told_by_manifest(part):
            answers.append(_place_once(session, {"pods": part.objects, **options}))
    return answers


def _require_new_pods(pods: Sequence[str] | None, explain: Detail) -> None:
    if pods or explain is not Detail.NONE:
        raise WrongUsage("--clusters goes with files (-f), and not with --explain.")


def _place_over_clusters(
    session: Session,
    files: Sequence[str],
    options: dict[str, Any],
    replicas: int | None,
    batch: int | None,
) -> None:
    """Place the pods in files in one of several clusters each; nothing else may be in the files."""
    if replicas is not None:
        requests = [_template(read_objects(files), replicas)]
    else:
        expansion = read_manifests(session, files)
        if expansion.only(pods=False).objects:
            raise WrongUsage(
                "--clusters takes files of pods alone: apply all else to each cluster."
            )
        pods = expansion.objects
        size = batch or max(len(pods), 1)
        requests = [{"pods": part} for part in in_batches(session.output, "placing", pods, size)]
    answers = [session.client.post(_OVER_CLUSTERS, {**each, **options}) for each in requests]
    results = [result for answer in answers for result in answer["results"]]
    if session.output.for_people:
        print_results_over_clusters(session.output, results)
        session.output.line()
        session.output.prose(describe_outcomes(count_outcomes(results)))
    else:
        session.output.document(answers[0] if len(answers) == 1 else {"results": results})
    if any(result["outcome"] not in PLACED for result in results):
        raise typer.Exit(ExitCode.REFUSED)


def _apply_lines(session: Session, expansion: Expansion) -> None:
    results = apply_lines(session.client, session.output, "applying", expansion.objects)
    bad = [result for result in results if result["result"] in REFUSED]
    if session.output.for_people:
        for result in bad:
            session.output.prose(_bad_line(result, expansion.origins[result["line"] - 1]))
        told = describe_outcomes(Counter(result["result"] for result in results))
        session.output.prose(told + session.suffix)
    else:
        session.output.document({"results": results})
    if bad:
        raise typer.Exit(ExitCode.REFUSED)


def _bad_line(result: dict[str, Any], origin: Origin | None) -> str:
    """Say what is wrong with an object, in the manifest in which it was written."""
    if origin is None:
        return f"object {result['line']}: {result['result']}: {_errors(result, '')}"
    return f"{origin.workload}: {result['result']}: {_errors(result, f'{origin.template}.')}"


def _errors(result: dict[str, Any], prefix: str) -> str:
    errors = result.get("errors") or ()
    told = (f"{prefix}{error['field']}: {error['message']}" for error in errors)
    return "; ".join(told) or "refused"


def _applied(answer: dict[str, Any]) -> str:
    counts = ", ".join(
        f"{answer[word]} {word}" for word in ("created", "changed", "unchanged", "deleted")
    )
    return f"{counts} (revision {answer['revision']})"


def _references(pods: Sequence[str], namespace: str | None) -> list[dict[str, str]]:
    pairs = (pod_identity(pod, namespace) for pod in pods)
    return [{"namespace": namespace, "name": name} for namespace, name in pairs]


def _template(objects: Sequence[dict[str, Any]], replicas: int) -> dict[str, Any]:
    if len(objects) != 1:
        raise WrongUsage(f"--replicas needs a file with one pod; there are {len(objects)}.")
    subject = pod_of(objects[0])
    template = {part: subject.get(part, {}) for part in ("metadata", "spec")}
    return {"template": template, "replicas": replicas}


def _place_once(session: Session, request: dict[str, Any]) -> dict[str, Any]:
    path = session.client.path("placements")
    send = session.client.post if request["dryRun"] else session.client.post_once
    answer: dict[str, Any] = send(path, request)
    return answer


def _report(session: Session, answers: Sequence[dict[str, Any]]) -> None:
    """Print the answers as one, and end with exit code 1 unless every pod has its place."""
    results = [result for answer in answers for result in answer["results"]]
    if session.output.for_people:
        _report_to_people(session, answers, results)
    else:
        session.output.document(answers[0] if len(answers) == 1 else {"results": results})
    if any(result["outcome"] not in PLACED for result in results):
        raise typer.Exit(ExitCode.REFUSED)


def _report_to_people(
    session: Session, answers: Sequence[dict[str, Any]], results: Sequence[dict[str, Any]]
) -> None:
    if len(results) <= RESULTS_SHOWN:
        print_results(session.output, results)
    else:
        refusals = reasons_of_refusals(results).most_common()
        if refusals:
            session.output.table(("pods", "not placed because"), [(n, why) for why, n in refusals])
    for group in (answer["group"] for answer in answers if answer.get("group")):
        session.output.prose(f"group refused: {group.get('plugin')}: {group.get('message')}")
    session.output.line()
    revision = answers[-1]["revision"] if answers else "unchanged"
    session.output.prose(f"{describe_outcomes(count_outcomes(results))} (revision {revision})")


def _done(session: Session, answer: object, sentence: str) -> None:
    if session.output.for_people:
        session.output.prose(sentence + session.suffix)
    else:
        session.output.document(answer)
