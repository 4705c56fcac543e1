"""`moorage simulate`: place pods on a cluster that exists only in a file."""

from typing import Annotated, Any

import typer

from moorage.cli.exceptions import ExitCode, WrongUsage
from moorage.cli.input.sources import read_document, read_objects
from moorage.cli.render.differences import print_differences
from moorage.cli.render.explanations import (
    PLACED,
    count_outcomes,
    describe_outcomes,
    print_results,
)
from moorage.cli.session.options import Session, connected

REQUEST_FIELDS = frozenset(
    {
        "config",
        "namespaces",
        "nodes",
        "objects",
        "pods",
        "pod",
        "place",
        "policy",
        "preemption",
        "preemptionScope",
        "compareTo",
    }
)


@connected
def simulate(
    session: Session,
    *,
    file: Annotated[
        list[str],
        typer.Option(
            "--file", "-f", help="The cluster: manifests, or one whole request to /v1/simulations."
        ),
    ],
    place: Annotated[
        list[str] | None,
        typer.Option(
            "--place", "-p", help="The pods to place; default: those of the cluster without a node."
        ),
    ] = None,
    all_or_nothing: Annotated[
        bool, typer.Option("--all-or-nothing", help="Place all pods, or none.")
    ] = False,
    compare_to: Annotated[
        str | None,
        typer.Option(
            "--compare-to", help="Also say what another Kubernetes version would choose, as 1.35."
        ),
    ] = None,
) -> None:
    """Place pods on a cluster given in files, with full explanations; nothing is stored."""
    request = _whole_request(file) or _request_of_manifests(read_objects(file), place)
    if all_or_nothing:
        request["policy"] = "AllOrNothing"
    if compare_to:
        request["compareTo"] = compare_to
    answer = session.client.post("/v1/simulations", request)
    results = answer["results"]
    if session.output.for_people:
        print_results(session.output, results)
        session.output.line()
        changes = [result["difference"] for result in results if "difference" in result]
        print_differences(session.output, changes)
        if other := request.get("compareTo"):
            session.output.prose(
                f"{len(changes)} of {len(results)} pods would get another node with Kubernetes {other}."
            )
        session.output.prose(describe_outcomes(count_outcomes(results)))
    else:
        session.output.document(answer)
    if any(result["outcome"] not in PLACED for result in results):
        raise typer.Exit(ExitCode.REFUSED)


def _whole_request(files: list[str]) -> dict[str, Any] | None:
    """Return the request if a single file holds a complete one, or else None."""
    if len(files) != 1 or not files[0].removesuffix(".gz").endswith((".json", ".yaml", ".yml")):
        return None
    objects = read_objects(files)
    if len(objects) == 1 and "kind" not in objects[0] and objects[0].keys() <= REQUEST_FIELDS:
        return read_document(files[0])
    return None


def _request_of_manifests(objects: list[dict[str, Any]], place: list[str] | None) -> dict[str, Any]:
    """Build the request from mixed manifests, sorted by kind."""
    by_kind: dict[str, list[dict[str, Any]]] = {"Namespace": [], "Node": [], "Pod": []}
    for item in objects:
        kind = str(item.get("kind"))
        if kind not in by_kind:
            raise WrongUsage(f"A simulation takes nodes, namespaces and pods, not {kind}.")
        by_kind[kind].append(item)
    pods = by_kind["Pod"]
    waiting = [pod for pod in pods if not pod.get("spec", {}).get("nodeName")]
    there = pods if place else [pod for pod in pods if pod.get("spec", {}).get("nodeName")]
    wanted = read_objects(place) if place else waiting
    return {
        "namespaces": by_kind["Namespace"],
        "nodes": by_kind["Node"],
        "pods": there,
        "place": wanted,
    }
