"""`moorage rebalance`: move placed pods to better nodes."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from moorage.cli.changes.plans import did, has_ended, keep_plan
from moorage.cli.exceptions import Refused
from moorage.cli.input.durations import read_seconds
from moorage.cli.input.selectors import label_selector
from moorage.cli.progress.plan_waiter import FOREVER, Patience, wait_for_plans
from moorage.cli.session.hints import NOT_FOUND
from moorage.cli.session.options import Session, connected

_NAME = "rebalance"


@connected
def rebalance(
    session: Session,
    *,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Move pods of this namespace alone."),
    ] = None,
    selector: Annotated[
        str | None,
        typer.Option("--selector", "-l", help="Move pods with these labels alone: app=web."),
    ] = None,
    objective: Annotated[
        list[str] | None,
        typer.Option(
            "--objective",
            help="What is to become less, the most important first: violations, skew, preferences, "
            "spread, packing or fragmentation.",
        ),
    ] = None,
    resource: Annotated[
        str | None,
        typer.Option("--resource", help="The resource of the objective fragmentation."),
    ] = None,
    block: Annotated[
        str | None,
        typer.Option(
            "--block", help="How much of it pods take at once; what is less is of no use."
        ),
    ] = None,
    moves_max: Annotated[
        int | None, typer.Option("--moves-max", min=0, help="How many pods may move.")
    ] = None,
    protect: Annotated[
        str | None, typer.Option("--protect", help="The labels of pods that do not move.")
    ] = None,
    protect_priority: Annotated[
        int | None,
        typer.Option("--protect-priority", help="Pods of at least this priority do not move."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="The name of the plan; else rebalance-NAMESPACE.")
    ] = None,
    plan_only: Annotated[
        bool,
        typer.Option("--plan-only", "--dry-run", help="Say who would move, but move nobody."),
    ] = False,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow/--no-wait", help="Wait for the end, and say how far it is; or do not."
        ),
    ] = True,
    timeout: Patience = FOREVER,
) -> None:
    """Have placed pods move to where they are placed better, as the objectives say.

    Without objectives, fewer rules are broken, and soft spread constraints are kept better.

    The server does it, a few pods at a time: each is evicted as budgets and rules allow it, and room
    is kept on its new node until another pod comes in its place. It goes on if this command is
    stopped: `moorage get plans` shows how far it has come, and deleting the plan ends it.
    """
    seconds = read_seconds("--timeout", timeout)
    namespace = namespace or session.namespace
    goal = _without_nothing(
        {
            "type": "Rebalance",
            "namespace": namespace,
            "selector": None if selector is None else label_selector(selector, "--selector"),
            "objectives": None if not objective else [word.capitalize() for word in objective],
            "resource": resource,
            "block": block,
            "movesMax": moves_max,
        }
    )
    bounds = _bounds(protect, protect_priority)
    if plan_only:
        body = {"goal": goal, "explain": "Summary", **bounds}
        _tell_plan(session, session.client.post(session.client.path("plans"), body))
        return
    name = name or (_NAME if namespace is None else f"{_NAME}-{namespace}")
    before = _running(session, name)
    kept = keep_plan(session, name, {"goal": goal, **bounds}, before)
    session.done(kept, f"plan/{name} {did(before, kept, 'moves pods')}")
    if follow:
        wait_for_plans(session, [name], seconds)
        ended = session.client.get(session.client.path("plans", name))
        _tell_objectives(session, (ended.get("status") or {}).get("objectives") or ())


def _without_nothing(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _bounds(selector: str | None, priority: int | None) -> dict[str, Any]:
    """Return the `bounds` of a plan, or nothing if no pods are protected."""
    labels = None if selector is None else label_selector(selector, "--protect")
    protect = _without_nothing({"selector": labels, "priority": priority})
    return {"bounds": {"protect": protect}} if protect else {}


def _running(session: Session, name: str) -> dict[str, Any] | None:
    """Return the plan of this name if it has not ended, or None."""
    try:
        plan: dict[str, Any] = session.client.get(session.client.path("plans", name))
    except Refused as error:
        if error.problem.get("code") != NOT_FOUND:
            raise
        return None
    over = has_ended(plan) or plan["spec"].get("state") == "Cancelled"
    return None if over else plan


def _tell_plan(session: Session, plan: dict[str, Any]) -> None:
    output = session.output
    if not output.for_people:
        output.document(plan)
        return
    steps = [step for step in plan["steps"] if step["action"] == "Evict"]
    if not steps:
        output.line("No move is better.")
        return
    output.table(
        ("wave", "pod", "from", "to", "why"),
        (
            (
                step["wave"],
                f"{step['namespace']}/{step['name']}",
                step["from"],
                step["to"],
                step["reason"],
            )
            for step in steps
        ),
    )
    output.line()
    _tell_totals(session, plan)
    others = plan.get("otherSteps")
    if others:
        output.note(f"{others} more steps are about pods of others.")
    if not plan["complete"]:
        output.note("There may be more; this is as far as the plan's bounds and its time go.")


def _tell_totals(session: Session, plan: dict[str, Any]) -> None:
    pairs = zip(plan["before"]["objectives"], plan["after"]["objectives"], strict=True)
    rows = ((before["objective"], before["value"], after["value"]) for before, after in pairs)
    session.output.table(("objective", "before", "after"), rows)


def _tell_objectives(session: Session, objectives: Sequence[dict[str, Any]]) -> None:
    if session.output.for_people:
        rows = (
            (objective["name"], objective["before"], objective["now"]) for objective in objectives
        )
        session.output.table(("objective", "before", "now"), rows)
