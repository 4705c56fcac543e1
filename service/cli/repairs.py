"""`moorage repairs`: the least that would have to change so that a pod fits."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from service.cli.errors import ExitCode
from service.cli.options import Session, connected
from service.cli.resources import pod_identity


@connected
def repairs(
    session: Session,
    *,
    name: Annotated[str, typer.Argument(help="The pod: namespace/name, or a name with -n.")],
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
    namespace, name = pod_identity(name, namespace or session.namespace)
    path = session.client.path("namespaces", namespace, "pods", name, "repairs")
    answer = session.client.get(path, {"changesMax": changes_max, "limit": limit})
    if session.output.for_people:
        _tell(session, answer)
    else:
        session.output.document(answer)
    if not (answer["fits"] or answer["repairs"]):
        raise typer.Exit(ExitCode.REFUSED)


def _tell(session: Session, answer: Mapping[str, Any]) -> None:
    output, pod = session.output, f"{answer['namespace']}/{answer['name']}"
    if answer["fits"]:
        output.prose(f"{pod} fits as everything is now.", style="bold")
        return
    output.prose(f"{pod} does not fit: {answer['message']}", style="bold")
    for number, repair in enumerate(answer["repairs"], start=1):
        changes = "; ".join(_change(each) for each in repair["changes"])
        output.line(f"{number}. {changes}: then it gets {repair['places']}")
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
        case _:
            pods = [f"{change['namespace']}/{name}" for name in change["names"]]
            return f"remove {', '.join(pods)}"


def _taints(taints: list[Mapping[str, Any]]) -> str:
    if not taints:
        return "no taints"
    told = [f"{each['key']}={each.get('value', '')}:{each['effect']}" for each in taints]
    return f"the taints {', '.join(told)} alone"
