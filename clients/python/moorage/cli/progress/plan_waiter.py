"""Waits for plans that the server carries out, and reports their progress."""

import time
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from moorage.cli.exceptions import Refused
from moorage.cli.progress.waiter import Waiter
from moorage.cli.render.output import Output
from moorage.cli.render.rows import Item
from moorage.cli.session.options import Session
from moorage.cli.session.resources import Target, find_resource

FOREVER = "0s"
_NEVER = 1e12
"""A time that is never reached, in monotonic seconds."""

NoWait = Annotated[
    bool, typer.Option("--no-wait", help="Do not wait for the end; the server goes on.")
]
Patience = Annotated[
    str, typer.Option("--timeout", help="How long to wait, such as 30s or 5m; 0s: for ever.")
]


def wait_for_plans(session: Session, names: Iterable[str], seconds: float) -> None:
    """Wait until plans have succeeded, and report waiting pods meanwhile; 0 seconds means forever.

    Raises:
        Refused: a plan does not exist, was canceled, or makes no progress.
        TimedOut: the time is over.
    """
    plans = find_resource("plans")
    waiting = Waiter(session, _Progress(session.output), absent_is_met=False)
    deadline = time.monotonic() + seconds if seconds else _NEVER
    waiting.until_met([Target(plans, None, name) for name in names], deadline)


class _Progress:
    """Checks whether a plan has succeeded, and reports which pods are waiting and why."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._told: set[tuple[str, str, str]] = set()
        self._leaving = 0

    def __call__(self, item: Item | None) -> str | None:
        """Return what a plan that has succeeded did, or None.

        Raises:
            Refused: the plan was cancelled, or has exceeded its progress deadline.
        """
        status = (item or {}).get("status") or {}
        if status.get("phase") == "Cancelled":
            name = (item or {})["metadata"]["name"]
            raise Refused({"code": "Cancelled", "detail": f"plan/{name} was cancelled."})
        if status.get("reason") == "ProgressDeadlineExceeded":
            name = (item or {})["metadata"]["name"]
            detail = (
                f"plan/{name} makes no progress; the server goes on with it until it is deleted."
            )
            raise Refused({"code": "ProgressDeadlineExceeded", "detail": detail})
        self._tell_leaving(status.get("leaving", 0))
        for pod in status.get("waitingPods") or ():
            self._tell(pod)
        if status.get("phase") != "Succeeded":
            return None
        return f"has succeeded: {_done(item or {}, status)}"

    def _tell_leaving(self, count: int) -> None:
        if count not in {0, self._leaving}:
            pods = "1 pod is" if count == 1 else f"{count} pods are"
            self._output.note(f"{pods} leaving, until an agent reports that it has ended.")
        self._leaving = count

    def _tell(self, pod: dict[str, Any]) -> None:
        key = str(pod.get("namespace")), str(pod.get("name")), str(pod.get("reason"))
        if key not in self._told:
            self._told.add(key)
            who = f"{key[0]}/{key[1]} waits: " if pod.get("name") else ""
            self._output.note(f"{who}{pod.get('message')}")


_ENDED_BY = {
    "MovesMax": "as many moved as may",
    "EvictionsMax": "as many were evicted as may be",
    "SecondsOver": "the time for the last search was over",
}
"""Why a rebalancing plan ended before it ran out of improving moves."""


def _done(plan: Item, status: dict[str, Any]) -> str:
    """Describe what a plan that has succeeded did."""
    if (plan["spec"].get("goal") or {}).get("type") != "Rebalance":
        return f"{status.get('evicted', 0)} pods evicted"
    parts = [f"{status.get('moved', 0)} of {status.get('evicted', 0)} pods moved as planned"]
    elsewhere, missing = status.get("elsewhere"), status.get("missing")
    if elsewhere:
        parts.append(f"{elsewhere} came elsewhere")
    if missing:
        parts.append(f"{missing} did not come")
    if status.get("reason") in _ENDED_BY:
        parts.append(_ENDED_BY[status["reason"]])
    return ", ".join(parts)
