"""`moorage wait`: until objects are placed, are gone, or have a condition."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

import msgspec
import typer

from service.cli.arguments.durations import read_seconds
from service.cli.commands.get import AllNamespaces, Namespace, Selector
from service.cli.commands.watch import RECONNECT_SECONDS
from service.cli.errors import CliError, ExitCode, Refused, Unavailable, WrongUsage
from service.cli.found_in_other_namespaces import NOT_FOUND
from service.cli.options import Session, connected
from service.cli.printing.jsonpath import read_path, shown
from service.cli.printing.table_rows import Item
from service.cli.resources import EVENTS, Target, complete_kind, listed, read_targets

STREAM_SECONDS_MAX = 300

Condition = Callable[[Item | None], str | None]
"""Tells in a word or two that an object is as it was waited for; None: it is not. None for an object
that is not there."""


class TimedOut(CliError):  # noqa: N818 - a verdict, not a fault
    """Not everything came about in time."""

    exit_code = ExitCode.REFUSED


@connected
def wait(
    session: Session,
    *,
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="KIND [NAME…] | KIND/NAME…",
            help="What to wait for, as in `get`; without names all that are there now.",
            autocompletion=complete_kind,
        ),
    ],
    for_: Annotated[
        str,
        typer.Option(
            "--for", help="placed, delete, condition=TYPE[=STATUS] or jsonpath={PATH}=VALUE."
        ),
    ],
    timeout: Annotated[
        str, typer.Option("--timeout", help="How long to wait, such as 30s or 5m.")
    ] = "30s",
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    selector: Selector = None,
) -> None:
    """Wait until all objects are as wanted; the exit code is 1 if they are not in time."""
    condition = _read_condition(for_)
    seconds = read_seconds("--timeout", timeout)
    within = None if all_namespaces else namespace or session.namespace
    targets = read_targets(what, within)
    if any(target.resource.of_server or target.resource is EVENTS for target in targets):
        raise WrongUsage("`wait` is for objects of a cluster that can be watched.")
    waiting = Waiting(session, condition, absent_is_met=for_ == "delete")
    waiting.until_met([*_named(session, targets, selector)], time.monotonic() + seconds)


def _named(session: Session, targets: Sequence[Target], selector: str | None) -> Iterable[Target]:
    """Turn lists into the objects that are in them now."""
    for target in targets:
        if target.name is not None:
            yield target
        else:
            yield from listed(session.client, target, selector)


class Waiting:
    """Looks at objects, and then at their changes, until a condition holds for each of them."""

    def __init__(self, session: Session, condition: Condition, *, absent_is_met: bool) -> None:
        self._session = session
        self._condition = condition
        self._absent_is_met = absent_is_met

    def until_met(self, targets: Sequence[Target], deadline: float) -> None:
        """Wait for all targets.

        Raises:
            Refused: an object is not there, or goes away meanwhile.
            TimedOut: the deadline (monotonic seconds) has passed.
        """
        client = self._session.client
        if not targets and not self._absent_is_met:
            raise WrongUsage("There is nothing to wait for.")
        remaining = list(targets)
        while remaining:
            revision = str(client.get(client.path())["revision"])
            remaining = [each for each in remaining if not self._is_met(each, self._read(each))]
            if remaining and time.monotonic() >= deadline:
                told = ", ".join(each.told for each in remaining[:10])
                raise TimedOut(f"Timed out: {len(remaining)} still to come, such as {told}.")
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
        told = self._condition(item)
        if told is not None:
            self._session.output.line(f"{target.told} {told}")
        return told is not None

    def _follow(self, targets: Sequence[Target], revision: str, deadline: float) -> list[Target]:
        """Follow the changes since a revision for a while; return the targets that still wait."""
        client = self._session.client
        remaining = {(each.resource.kind, each.namespace, each.name): each for each in targets}
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


def _read_condition(text: str) -> Condition:
    name, _, rest = text.partition("=")
    if text == "placed":
        return _is_placed
    if text == "delete":
        return lambda item: "is gone" if item is None else None
    if name == "condition" and rest:
        return _has_condition(rest)
    if name == "jsonpath" and rest:
        return _has_value(rest)
    raise WrongUsage(
        f"--for={text}: expected placed, delete, condition=TYPE[=STATUS] or jsonpath={{PATH}}=VALUE."
    )


def _is_placed(item: Item | None) -> str | None:
    node = ((item or {}).get("spec") or {}).get("nodeName")
    return f"is on {node}" if node else None


def _has_condition(text: str) -> Condition:
    kind, _, status = text.partition("=")
    wanted = (kind.lower(), (status or "True").lower())

    def met(item: Item | None) -> str | None:
        conditions = ((item or {}).get("status") or {}).get("conditions") or ()
        found = {
            (str(each.get("type")).lower(), str(each.get("status")).lower()) for each in conditions
        }
        return f"has {kind}={status or 'True'}" if wanted in found else None

    return met


def _has_value(text: str) -> Condition:
    path, _, value = text.rpartition("}=")
    if not path:
        raise WrongUsage(f"--for=jsonpath={text}: expected jsonpath={{PATH}}=VALUE.")
    values = read_path(f"{path}}}")

    def met(item: Item | None) -> str | None:
        found = [] if item is None else [shown(each) for each in values(item)]
        return f"has {value}" if value in found else None

    return met
