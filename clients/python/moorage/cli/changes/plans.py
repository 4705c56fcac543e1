"""Stores plans that the server carries out, replacing ended plans of the same name."""

from typing import Any

from moorage.cli.exceptions import Refused
from moorage.cli.session.hints import NOT_FOUND
from moorage.cli.session.options import Session

Plan = dict[str, Any]


def keep_plan(session: Session, name: str, spec: Plan, before: Plan | None) -> Plan:
    """Store a plan, replacing an ended plan of this name; a paused plan stays paused.

    `before` is the unfinished plan of this name, or None.
    """
    path = session.client.path("plans", name)
    if before is None:
        _make_room(session, path)
    elif "state" in before["spec"]:
        spec = {**spec, "state": before["spec"]["state"]}
    body = {
        "apiVersion": "moorage.dev/v1alpha1",
        "kind": "Plan",
        "metadata": {"name": name},
        "spec": spec,
    }
    kept: Plan = session.client.put(path, body)
    return kept


def has_ended(plan: Plan) -> bool:
    """Return whether the server no longer works on a plan."""
    return bool((plan.get("status") or {}).get("endedAt"))


def did(before: Plan | None, kept: Plan, begins: str) -> str:
    """Describe what storing a plan did to the running one, or return `begins` if none is running."""
    if before is None:
        return begins
    description = (
        "runs already" if before["spec"] == kept["spec"] else "runs already, and is changed"
    )
    return f"{description}; it is paused" if kept["spec"].get("state") == "Paused" else description


def _make_room(session: Session, path: str) -> None:
    try:
        session.client.delete(path)
    except Refused as error:
        if error.problem.get("code") != NOT_FOUND:
            raise
