"""`moorage place`: place pods in one cluster or in one of several."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from moorage.cli.changes.batches import apply_at_once, in_batches
from moorage.cli.exceptions import ExitCode, WrongUsage
from moorage.cli.input.manifests import read_manifests, told_by_manifest
from moorage.cli.input.sources import read_objects
from moorage.cli.input.workloads import pod_of
from moorage.cli.render.explanations import (
    PLACED,
    count_outcomes,
    describe_outcomes,
    print_results,
    print_results_over_clusters,
    reasons_of_refusals,
)
from moorage.cli.session.options import Session, connected
from moorage.cli.session.resources import pod_identity

_OVER_CLUSTERS = "/v1/placements"


RESULTS_SHOWN = 50
"""Beyond this many results, only counts and reasons are printed (-o json prints all)."""


class Detail(StrEnum):
    """How detailed the explanation of a placement is."""

    NONE = "none"
    SUMMARY = "summary"
    FULL = "full"


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


def _place_files(
    session: Session, files: Sequence[str], options: dict[str, Any], batch: int | None
) -> list[dict[str, Any]]:
    """Place the pods in files, after storing the other objects, which pods may need."""
    expansion = read_manifests(session, files)
    others, pods = expansion.only(pods=False), expansion.only(pods=True)
    if others.objects and not options["dryRun"]:
        apply_at_once(session, others, None)
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
    """Place each pod of the files in one of several clusters; the files may contain only pods."""
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
    answers = [session.client.post(_OVER_CLUSTERS, {**request, **options}) for request in requests]
    results = [result for answer in answers for result in answer["results"]]
    if session.output.for_people:
        print_results_over_clusters(session.output, results)
        session.output.line()
        session.output.prose(describe_outcomes(count_outcomes(results)))
    else:
        session.output.document(answers[0] if len(answers) == 1 else {"results": results})
    if any(result["outcome"] not in PLACED for result in results):
        raise typer.Exit(ExitCode.REFUSED)


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
    """Print the answers as one, and exit with 1 unless every pod was placed."""
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
