"""`moorage repairs`: find the smallest changes that make a pod fit."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from moorage.cli.exceptions import ExitCode, WrongUsage
from moorage.cli.input.sources import read_objects
from moorage.cli.session.options import Session, connected
from moorage.cli.session.resources import pod_identity


@connected
def repairs(
    session: Session,
    *,
    name: Annotated[
        str | None, typer.Argument(help="The pod: namespace/name, or a name with -n.")
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", "-f", help="A pod that need not be stored.")
    ] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="The pod's namespace.")
    ] = None,
    changes_max: Annotated[
        int | None, typer.Option("--changes-max", min=1, help="How many changes a repair may have.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="How many repairs are shown.")
    ] = None,
) -> None:
    """Say what would have to change so that a pod fits; nothing is changed.

    The exit code is 1 if the pod does not fit and no repair was found.
    """
    if (name is None) == (file is None):
        raise WrongUsage("Name a stored pod, or one in a --file.")
    namespace = namespace or session.namespace
    bounds = {"changesMax": changes_max, "limit": limit}
    if name is not None:
        namespace, name = pod_identity(name, namespace)
        path = session.client.path("namespaces", namespace, "pods", name, "repairs")
        answer = session.client.get(path, bounds)
    else:
        answer = _of_file(session, file or "", namespace, bounds)
    if session.output.for_people:
        _tell(session, answer)
    else:
        session.output.document(answer)
    if not (answer["fits"] or answer["repairs"]):
        raise typer.Exit(ExitCode.REFUSED)


def _of_file(
    session: Session, file: str, namespace: str | None, bounds: Mapping[str, int | None]
) -> dict[str, Any]:
    """Return a plan's repairs of the pod in a file, in the format for stored pods."""
    objects = read_objects([file])
    if len(objects) != 1:
        raise WrongUsage("--file has to hold exactly one pod.")
    metadata = {"namespace": namespace or "default", **objects[0].get("metadata", {})}
    given = {name: value for name, value in bounds.items() if value is not None}
    goal = {"type": "Fit", "pod": {**objects[0], "metadata": metadata}, **given}
    plan = session.client.post(session.client.path("plans"), {"goal": goal})
    unplaced = plan["unplaced"][0] if plan["unplaced"] else {}
    return {
        "revision": plan["revision"],
        "namespace": metadata["namespace"],
        "name": metadata.get("name", ""),
        "fits": plan["complete"],
        "message": unplaced.get("message"),
        "repairs": plan["repairs"],
        "complete": "unfinished" not in plan,
        "unfinished": plan.get("unfinished"),
    }


def _tell(session: Session, answer: Mapping[str, Any]) -> None:
    output, pod = session.output, f"{answer['namespace']}/{answer['name']}"
    if answer["fits"]:
        output.prose(f"{pod} fits as everything is now.", style="bold")
        return
    output.prose(f"{pod} does not fit: {answer['message']}", style="bold")
    for number, repair in enumerate(answer["repairs"], start=1):
        changes = "; ".join(_change(change) for change in repair["changes"])
        output.line(f"{number}. {changes}: then it gets {repair['places']}")
        for move in repair.get("moves", ()):
            output.line(f"   {_move(move)}")
    if not answer["repairs"]:
        output.line("No set of so few changes would do.")
    if not answer["complete"]:
        output.note(f"There may be others, and smaller ones. {answer['unfinished']}")


def _change(change: Mapping[str, Any]) -> str:
    nodes = ", ".join(change.get("names", ()))
    match change["op"]:
        case "DropRule":
            return f"drop {change['path']}"
        case "AddToleration":
            toleration = change["toleration"]
            value = f"={toleration['value']}" if toleration.get("value") else ""
            return f"tolerate {toleration['key']}{value}:{toleration['effect']}"
        case "LowerRequest":
            return f"request {change['to']} {change['resource']} instead of {change['from']}"
        case "UncordonNodes":
            return f"uncordon {nodes}"
        case "SetLabels":
            labels = ",".join(f"{key}={value}" for key, value in change["labels"].items())
            return f"label {nodes} {labels}"
        case "SetTaints":
            return f"leave {nodes} {_taints(change['taints'])}"
        case "AddNodes":
            return f"add {_shape(change['template'])}"
        case _:
            pods = [f"{change['namespace']}/{name}" for name in change["names"]]
            return f"remove {', '.join(pods)}"


def _move(move: Mapping[str, Any]) -> str:
    where = "finds no other node" if move["to"] is None else f"then finds room on {move['to']}"
    return f"{move['namespace']}/{move['name']} {where}"


def _shape(template: Mapping[str, Any]) -> str:
    """Describe a new node by its allocatable resources and labels."""
    has = [f"{value} {name}" for name, value in template["status"]["allocatable"].items()]
    labels = template["metadata"].get("labels", {})
    pairs = [f"{key}={value}" for key, value in labels.items()]
    return f"a node of {', '.join(has)}" + (f" with the labels {','.join(pairs)}" if pairs else "")


def _taints(taints: list[Mapping[str, Any]]) -> str:
    if not taints:
        return "no taints"
    texts = [f"{taint['key']}={taint.get('value', '')}:{taint['effect']}" for taint in taints]
    return f"the taints {', '.join(texts)} alone"
