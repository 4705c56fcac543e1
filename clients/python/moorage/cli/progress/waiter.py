"""Waits until a condition holds for objects, following their changes."""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from moorage.cli.exceptions import CliError, ExitCode, Refused, Unavailable, WrongUsage
from moorage.cli.progress.follower import RECONNECT_SECONDS
from moorage.cli.render.rows import Item
from moorage.cli.session.hints import NOT_FOUND
from moorage.cli.session.options import Session
from moorage.cli.session.resources import Target

STREAM_SECONDS_MAX = 300


Condition = Callable[[Item | None], str | None]
"""Returns a word or two if an object meets the condition, or None if not. The argument is None for
an object that does not exist."""


class TimedOut(CliError):  # noqa: N818 - a verdict, not a fault
    """Some condition was not met in time."""

    exit_code = ExitCode.REFUSED


class Waiter:
    """Checks objects, and then their changes, until a condition holds for each object."""

    def __init__(self, session: Session, condition: Condition, *, absent_is_met: bool) -> None:
        self._session = session
        self._condition = condition
        self._absent_is_met = absent_is_met

    def until_met(self, targets: Sequence[Target], deadline: float) -> None:
        """Wait for all targets.

        Raises:
            Refused: an object does not exist, or is deleted meanwhile.
            TimedOut: the deadline (monotonic seconds) has passed.
        """
        client = self._session.client
        if not targets and not self._absent_is_met:
            raise WrongUsage("There is nothing to wait for.")
        remaining = list(targets)
        while remaining:
            revision = str(client.get(client.path())["revision"])
            remaining = [
                target for target in remaining if not self._is_met(target, self._read(target))
            ]
            if remaining and time.monotonic() >= deadline:
                names = ", ".join(target.told for target in remaining[:10])
                raise TimedOut(f"Timed out: {len(remaining)} still to come, such as {names}.")
            if remaining:
                remaining = self._follow(remaining, revision, deadline)

    def _read(self, target: Target) -> Item | None:
        try:
            item: Item = self._session.client.get(target.path(self._session.client))
        except Refused as error:
            if error.problem.get("code") == NOT_FOUND and self._absent_is_met:
                return None
            raise
        return item

    def _is_met(self, target: Target, item: Item | None) -> bool:
        outcome = self._condition(item)
        if outcome is not None:
            self._session.output.line(f"{target.told} {outcome}")
        return outcome is not None

    def _follow(self, targets: Sequence[Target], revision: str, deadline: float) -> list[Target]:
        """Follow the changes since a revision for a while; return the targets still to be met."""
        client = self._session.client
        remaining = {
            (target.resource.kind, target.namespace, target.name): target for target in targets
        }
        seconds = min(max(math.ceil(deadline - time.monotonic()), 1), STREAM_SECONDS_MAX)
        params: dict[str, str | int | None] = {
            "kind": ",".join(sorted({kind for kind, _, _ in remaining})),
            "sinceRevision": revision,
            "timeoutSeconds": seconds,
        }
        try:
            with client.events(client.path("watch"), params) as events:
                for event in events:
                    if event.name == "ERROR":
                        break
                    if event.name != "BOOKMARK":
                        self._take(remaining, event.name, msgspec.json.decode(event.data))
                    if not remaining or time.monotonic() >= deadline:
                        break
        except Unavailable as error:
            self._session.output.note(f"{error} Trying again.")
            time.sleep(RECONNECT_SECONDS)
        return [*remaining.values()]

    def _take(self, remaining: dict[Any, Target], event: str, data: dict[str, Any]) -> None:
        metadata = data["object"].get("metadata") or {}
        key = (data["kind"], metadata.get("namespace"), metadata.get("name"))
        target = remaining.get(key)
        if target is None:
            return
        item = None if event == "DELETED" else data["object"]
        if item is None and not self._absent_is_met:
            raise Refused({"code": NOT_FOUND, "detail": f"{target.told} was deleted meanwhile."})
        if self._is_met(target, item):
            del remaining[key]
