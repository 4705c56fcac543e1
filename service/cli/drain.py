"""`moorage drain`, `cordon` and `uncordon`: nodes that are to be empty, or to take no new pods."""

import time
from enum import StrEnum
from typing import Annotated, Any

import typer

from service.cli.durations import read_seconds
from service.cli.errors import Refused
from service.cli.options import DryRun, Session, connected
from service.cli.output import Output
from service.cli.resources import Target, find_resource, node_name
from service.cli.rows import Item
from service.cli.wait import Waiting

FOREVER = "0s"
NEVER = 1e12
"""A time that does not come, in seconds of the machine's clock."""

Nodes = Annotated[list[str], typer.Argument(metavar="NODE…", help="The names of the nodes.")]


class WhenUnschedulable(StrEnum):
    """What becomes of a pod for which there is no other node now."""

    WAIT = "wait"
    EVICT = "evict"


@connected
def cordon(session: Session, *, nodes: Nodes, dry_run: DryRun = False) -> None:
    """Have nodes take no new pods; those that are there stay."""
    session = session.trying(dry_run)
    for name in map(node_name, nodes):
        _done(session, _act(session, name, "cordon"), f"node/{name} cordoned")


@connected
def uncordon(session: Session, *, nodes: Nodes, dry_run: DryRun = False) -> None:
    """Have nodes take new pods again."""
    session = session.trying(dry_run)
    for name in map(node_name, nodes):
        _done(session, _act(session, name, "uncordon"), f"node/{name} uncordoned")


@connected
def drain(
    session: Session,
    *,
    nodes: Nodes,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not wait for the end; the server goes on.")
    ] = False,
    timeout: Annotated[
        str, typer.Option("--timeout", help="How long to wait, such as 30s or 5m; 0s: for ever.")
    ] = FOREVER,
    when_unschedulable: Annotated[
        WhenUnschedulable,
        typer.Option(
            "--when-unschedulable",
            help="Whether a pod for which there is no other node waits, or is evicted all the same.",
        ),
    ] = WhenUnschedulable.WAIT,
    as_always: Annotated[
        bool,
        typer.Option("--ignore-daemonsets", "--delete-emptydir-data", "--force", hidden=True),
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Have all pods but daemons leave nodes, as disruption budgets and rules allow it.

    The server does it, and goes on if this command is stopped: `moorage get plans` shows how far it
    has come, and deleting the plan ends it. What kubectl has to be told by `--ignore-daemonsets`,
    `--delete-emptydir-data` and `--force` is always so; these options are taken, and change nothing.
    """
    del as_always
    session = session.trying(dry_run)
    seconds = read_seconds("--timeout", timeout)
    options = {"whenUnschedulable": when_unschedulable.value.capitalize()}
    plans = []
    for name in map(node_name, nodes):
        answer = _act(session, name, "drain", options)
        plan = answer["metadata"]["name"]
        plans.append(Target(find_resource("plans"), None, plan))
        _done(session, answer, f"node/{name} cordoned, plan/{plan} drains it")
    if no_wait or dry_run:
        return
    waiting = Waiting(session, Progress(session.output), absent_is_met=False)
    waiting.until_met(plans, time.monotonic() + seconds if seconds else NEVER)


class Progress:
    """Tells whether a plan has succeeded, and meanwhile which pods wait, and for what."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._told: set[tuple[str, str, str]] = set()
        self._leaving = 0

    def __call__(self, item: Item | None) -> str | None:
        """Return what is to be said of a plan that has succeeded; None if it has not.

        Raises:
            Refused: it was cancelled, or has made no progress for as long as it may.
        """
        status = (item or {}).get("status") or {}
        if status.get("phase") == "Cancelled":
            name = (item or {})["metadata"]["name"]
            raise Refused({"code": "Cancelled", "detail": f"plan/{name} was cancelled."})
        if status.get("reason") == "ProgressDeadlineExceeded":
            name = (item or {})["metadata"]["name"]
            told = f"plan/{name} makes no progress; the server goes on with it until it is deleted."
            raise Refused({"code": "ProgressDeadlineExceeded", "detail": told})
        self._tell_leaving(status.get("leaving", 0))
        for each in status.get("waitingPods") or ():
            self._tell(each)
        if status.get("phase") != "Succeeded":
            return None
        return f"has succeeded: {status.get('evicted', 0)} pods evicted"

    def _tell_leaving(self, count: int) -> None:
        if count not in {0, self._leaving}:
            pods = "1 pod is" if count == 1 else f"{count} pods are"
            self._output.note(f"{pods} leaving, until an agent reports that it has ended.")
        self._leaving = count

    def _tell(self, pod: dict[str, Any]) -> None:
        told = str(pod.get("namespace")), str(pod.get("name")), str(pod.get("reason"))
        if told not in self._told:
            self._told.add(told)
            who = f"{told[0]}/{told[1]} waits: " if pod.get("name") else ""
            self._output.note(f"{who}{pod.get('message')}")


def _act(session: Session, node: str, action: str, options: dict[str, Any] | None = None) -> Any:
    path = session.client.path("nodes", node, action)
    return session.client.post_once(path, options or {})


def _done(session: Session, answer: Any, told: str) -> None:
    if session.output.for_people:
        session.output.line(told + session.suffix)
    else:
        session.output.document(answer)
