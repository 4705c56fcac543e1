"""`moorage taint`: set or remove taints of nodes."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from moorage.cli.changes.fields import Overwrite, Selector, change_all, split_words
from moorage.cli.exceptions import WrongUsage
from moorage.cli.render.rows import Item
from moorage.cli.session.options import DryRun, Session, connected
from moorage.cli.session.resources import complete_kind

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@connected
def taint(
    session: Session,
    *,
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="node NAME… KEY=VALUE:EFFECT… KEY:EFFECT-… KEY-…",
            help="Nodes, the taints to set (KEY=VALUE:EFFECT or KEY:EFFECT), and those to remove.",
            autocompletion=complete_kind,
        ),
    ],
    overwrite: Overwrite = False,
    selector: Selector = None,
    dry_run: DryRun = False,
) -> None:
    """Set or remove taints of nodes: `moorage taint node n1 gpu=yes:NoSchedule old:NoExecute-`."""
    session = session.trying(dry_run)
    named, changes = split_words(what)
    set_taints = [_read_taint(word) for word in changes if not word.endswith("-")]
    removed = [_read_removed(word[:-1]) for word in changes if word.endswith("-")]

    def change(node: Item) -> object:
        present = [dict(entry) for entry in node.get("spec", {}).get("taints") or ()]
        return {"spec": {"taints": _tainted(present, set_taints, removed, overwrite=overwrite)}}

    change_all(session, named, selector, None, change, "tainted", only="Node")


def _read_taint(word: str) -> dict[str, str]:
    """Parse `KEY=VALUE:EFFECT` or `KEY:EFFECT`.

    Raises:
        WrongUsage: there is no effect, or one that does not exist.
    """
    named, _, effect = word.rpartition(":")
    key, _, value = named.partition("=")
    if not key or effect not in EFFECTS:
        raise WrongUsage(
            f"{word}: expected KEY=VALUE:EFFECT, where EFFECT is one of {', '.join(EFFECTS)}."
        )
    return {"key": key, "effect": effect} | ({"value": value} if value else {})


def _read_removed(word: str) -> tuple[str, str | None]:
    """Parse a taint's key and optional effect: `KEY`, `KEY:EFFECT`, or `KEY=VALUE:EFFECT`."""
    named, _, effect = word.partition(":")
    if effect and effect not in EFFECTS:
        raise WrongUsage(f"{word}-: an effect is one of {', '.join(EFFECTS)}.")
    return named.partition("=")[0], effect or None


def _tainted(
    present: list[dict[str, Any]],
    set_taints: Sequence[Mapping[str, str]],
    removed: Sequence[tuple[str, str | None]],
    *,
    overwrite: bool,
) -> list[dict[str, Any]]:
    """Return the taints of a node after a change; key and effect identify a taint.

    Raises:
        WrongUsage: a taint to remove does not exist, or a taint to set has another value and
            `overwrite` is false.
    """
    taints = present
    for key, effect in removed:
        left = [entry for entry in taints if not _is(entry, key, effect)]
        if len(left) == len(taints):
            raise WrongUsage(f"There is no taint {key}{':' + effect if effect else ''} to remove.")
        taints = left
    for new in set_taints:
        old = next((entry for entry in taints if _is(entry, new["key"], new["effect"])), None)
        if old is None:
            taints = [*taints, dict(new)]
        elif old.get("value", "") != new.get("value", "") and not overwrite:
            raise WrongUsage(
                f"There is a taint {new['key']}={old.get('value', '')}:{new['effect']} already; "
                "--overwrite replaces it."
            )
        else:
            taints = [dict(new) if entry is old else entry for entry in taints]
    return taints


def _is(taint: Mapping[str, Any], key: str, effect: str | None) -> bool:
    return taint.get("key") == key and effect in {None, taint.get("effect")}
