"""`moorage drain`: move all pods except daemons off nodes."""

from enum import StrEnum
from typing import Annotated

import typer

from moorage.cli.changes.nodes import Nodes, act_on_node
from moorage.cli.input.durations import read_seconds
from moorage.cli.progress.plan_waiter import FOREVER, NoWait, Patience, wait_for_plans
from moorage.cli.session.options import DryRun, Session, connected
from moorage.cli.session.resources import node_name


class WhenUnschedulable(StrEnum):
    """The treatment of pods that currently fit on no other node."""

    WAIT = "wait"
    EVICT = "evict"


@connected
def drain(
    session: Session,
    *,
    nodes: Nodes,
    no_wait: NoWait = False,
    timeout: Patience = FOREVER,
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
    plans: list[str] = []
    for name in map(node_name, nodes):
        answer = act_on_node(session, name, "drain", options)
        plan = answer["metadata"]["name"]
        plans.append(plan)
        session.done(answer, f"node/{name} cordoned, plan/{plan} drains it")
    if no_wait or dry_run:
        return
    wait_for_plans(session, plans, seconds)
