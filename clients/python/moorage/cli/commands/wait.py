"""`moorage wait`: wait until objects are placed, deleted, or meet a condition."""

import time
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

from moorage.cli.exceptions import WrongUsage
from moorage.cli.input.durations import read_seconds
from moorage.cli.progress.waiter import Condition, Waiter
from moorage.cli.render.jsonpath import read_path, shown
from moorage.cli.render.rows import Item
from moorage.cli.session.options import (
    AllNamespaces,
    LabelSelector,
    OneNamespace,
    Session,
    connected,
)
from moorage.cli.session.resources import EVENTS, Target, complete_kind, listed, read_targets


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
    namespace: OneNamespace = None,
    all_namespaces: AllNamespaces = False,
    selector: LabelSelector = None,
) -> None:
    """Wait until all objects are as wanted; the exit code is 1 if they are not in time."""
    condition = _read_condition(for_)
    seconds = read_seconds("--timeout", timeout)
    within = None if all_namespaces else namespace or session.namespace
    targets = read_targets(what, within)
    if any(target.resource.of_server or target.resource is EVENTS for target in targets):
        raise WrongUsage("`wait` is for objects of a cluster that can be watched.")
    waiting = Waiter(session, condition, absent_is_met=for_ == "delete")
    waiting.until_met([*_named(session, targets, selector)], time.monotonic() + seconds)


def _named(session: Session, targets: Sequence[Target], selector: str | None) -> Iterable[Target]:
    """Yield the targets, with each list replaced by its current objects."""
    for target in targets:
        if target.name is not None:
            yield target
        else:
            yield from listed(session.client, target, selector)


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
        pairs = {
            (str(condition.get("type")).lower(), str(condition.get("status")).lower())
            for condition in conditions
        }
        return f"has {kind}={status or 'True'}" if wanted in pairs else None

    return met


def _has_value(text: str) -> Condition:
    path, _, value = text.rpartition("}=")
    if not path:
        raise WrongUsage(f"--for=jsonpath={text}: expected jsonpath={{PATH}}=VALUE.")
    values = read_path(f"{path}}}")

    def met(item: Item | None) -> str | None:
        texts = [] if item is None else [shown(match) for match in values(item)]
        return f"has {value}" if value in texts else None

    return met
