"""`moorage scale-in`: remove the pods that the others can best spare."""

from typing import Annotated, Any

import typer

from moorage.cli.exceptions import ExitCode
from moorage.cli.input.selectors import label_selector
from moorage.cli.session.options import Session, connected


@connected
def scale_in(
    session: Session,
    *,
    selector: Annotated[
        str, typer.Option("--selector", "-l", help="The labels of the pods: app=web,tier=front.")
    ],
    by: Annotated[int, typer.Option("--by", min=1, help="How many of them are to go.")],
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="The pods' namespace.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Plan, but change nothing.")] = False,
    respect_budgets: Annotated[
        bool, typer.Option("--respect-budgets", help="Let disruption budgets keep pods.")
    ] = False,
) -> None:
    """Have those pods leave without which the others are spread and placed best, all in one commit.

    They are marked as to be stopped, as by an eviction; if not all can go, none does, and the exit
    code is 1.
    """
    body = {
        "goal": {
            "type": "Remove",
            "namespace": namespace or session.namespace,
            "selector": label_selector(selector, "--selector"),
            "count": by,
        },
        "bounds": {"respectBudgets": respect_budgets},
    }
    if dry_run:
        plan = session.client.post(session.client.path("plans"), body)
    else:
        plan = session.client.post_once(session.client.path("plan-commits"), body)
    _tell(session, plan, dry_run=dry_run)
    if not plan["complete"]:
        raise typer.Exit(ExitCode.REFUSED)


def _tell(session: Session, plan: dict[str, Any], *, dry_run: bool) -> None:
    output = session.output
    if not output.for_people:
        output.document(plan)
        return
    goes = "would go" if dry_run or plan["status"] != "Committed" else "goes"
    for step in plan["steps"]:
        where = f" from {step['from']}" if step.get("from") else ""
        output.line(f"{step['namespace']}/{step['name']} {goes}{where}: {step['reason']}")
    for pod in plan["unplaced"]:
        output.line(f"{pod['namespace']}/{pod['name']} stays: {pod['message']}")
    if not plan["complete"]:
        output.note(f"Only {plan['stepsTotal']} of the pods can go; nothing was done.")
