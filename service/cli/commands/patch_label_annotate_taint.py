"""`moorage patch`, `label`, `annotate` and `taint`: single fields of stored objects."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, get_args

import typer
from tenacity import Retrying, retry_if_exception, stop_after_attempt

from moorage.requests import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from service.cli.errors import Refused, WrongUsage
from service.cli.found_in_other_namespaces import telling_whereabouts
from service.cli.manifests.manifest_sources import parse_value, read_value
from service.cli.options import DryRun, Session, connected
from service.cli.printing.table_rows import Item
from service.cli.resources import Target, complete_kind, listed, read_targets
from service.model.core.primitives import TaintEffect

ATTEMPTS = 5
"""How often a change is tried while others change the same object at the same time."""
EFFECTS = get_args(TaintEffect)

Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Their namespace (default: default).")
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace values that are there already.")
]
Selector = Annotated[
    str | None, typer.Option("--selector", "-l", help="All with such labels: app=web,tier!=db.")
]
Words = Annotated[
    list[str],
    typer.Argument(
        metavar="KIND NAME… KEY=VALUE… KEY-…",
        help="Objects as in `get`, what to set (KEY=VALUE), and what to remove (KEY-).",
        autocompletion=complete_kind,
    ),
]


class PatchType(StrEnum):
    """How a patch says what changes."""

    MERGE = "merge"
    JSON = "json"
    STRATEGIC = "strategic"


_CONTENT_TYPES = {
    PatchType.MERGE: MERGE_PATCH,
    PatchType.JSON: JSON_PATCH,
    PatchType.STRATEGIC: STRATEGIC_MERGE_PATCH,
}


@connected
def patch(
    session: Session,
    *,
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="KIND NAME… | KIND/NAME…",
            help="The objects, as in `get`.",
            autocompletion=complete_kind,
        ),
    ],
    text: Annotated[
        str | None, typer.Option("--patch", "-p", help="The patch, in JSON or YAML.")
    ] = None,
    file: Annotated[
        str | None, typer.Option("--patch-file", help="A file with the patch; - is standard input.")
    ] = None,
    patch_type: Annotated[
        PatchType,
        typer.Option("--type", help="A merge patch, a JSON patch or a strategic merge patch."),
    ] = PatchType.MERGE,
    namespace: Namespace = None,
    dry_run: DryRun = False,
) -> None:
    """Change fields of objects, such as `-p '{"spec": {"unschedulable": true}}'`.

    Unlike kubectl's, a patch is a merge patch unless `--type` says something else.
    """
    if (text is None) == (file is None):
        raise WrongUsage("Give either --patch or --patch-file.")
    body = read_value(file) if file is not None else parse_value("--patch", (text or "").encode())
    session = session.trying(dry_run)
    for target in _named(read_targets(what, namespace or session.namespace)):
        path = target.path(session.client)
        with telling_whereabouts(session, target):
            changed = session.client.patch(path, body, _CONTENT_TYPES[patch_type])
        session.done(changed, f"{target.told} patched")


@connected
def label(
    session: Session,
    *,
    what: Words,
    overwrite: Overwrite = False,
    selector: Selector = None,
    namespace: Namespace = None,
    dry_run: DryRun = False,
) -> None:
    """Set or remove labels of objects: `moorage label node n1 disk=ssd tier-`."""
    session = session.trying(dry_run)
    named, changes = _split(what)
    change = _metadata_change("labels", changes, overwrite=overwrite)
    _change_all(session, named, selector, namespace, change, "labeled")


@connected
def annotate(
    session: Session,
    *,
    what: Words,
    overwrite: Overwrite = False,
    selector: Selector = None,
    namespace: Namespace = None,
    dry_run: DryRun = False,
) -> None:
    """Set or remove annotations of objects: `moorage annotate pod web-0 owner=ann`."""
    session = session.trying(dry_run)
    named, changes = _split(what)
    change = _metadata_change("annotations", changes, overwrite=overwrite)
    _change_all(session, named, selector, namespace, change, "annotated")


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
    named, changes = _split(what)
    set_taints = [_read_taint(word) for word in changes if not word.endswith("-")]
    removed = [_read_removed(word[:-1]) for word in changes if word.endswith("-")]

    def change(node: Item) -> object:
        present = [dict(each) for each in node.get("spec", {}).get("taints") or ()]
        return {"spec": {"taints": _tainted(present, set_taints, removed, overwrite=overwrite)}}

    _change_all(session, named, selector, None, change, "tainted", only="Node")


Change = Callable[[Item], object]
"""Returns the merge patch for an object as it is stored.

Raises:
    WrongUsage: the object does not allow the change.
"""


def _change_all(
    session: Session,
    named: Sequence[str],
    selector: str | None,
    namespace: str | None,
    change: Change,
    told: str,
    only: str | None = None,
) -> None:
    targets = read_targets(named, namespace or session.namespace)
    if only is not None and any(target.resource.kind != only for target in targets):
        raise WrongUsage(f"Only a {only} can be {told}.")
    if selector is not None:
        targets = [each for target in targets for each in _matching(session, target, selector)]
    for target in _named(targets):
        with telling_whereabouts(session, target):
            changed = _changed(session, target, change)
        session.done(changed, f"{target.told} {told}")


def _changed(session: Session, target: Target, change: Change) -> object:
    """Read the object and patch what was read; again, if somebody changed it in between.

    Raises:
        Refused: as the server says, also if others were faster each time.
        WrongUsage: the object does not allow the change.
    """
    path = target.path(session.client)

    def attempt() -> object:
        item, tag = session.client.get_tagged(path)
        return session.client.patch(path, change(item), headers={"If-Match": tag})

    tried: object = Retrying(
        stop=stop_after_attempt(ATTEMPTS), retry=retry_if_exception(_is_late), reraise=True
    )(attempt)
    return tried


def _is_late(error: BaseException) -> bool:
    """Whether somebody else has changed the object since it was read."""
    return isinstance(error, Refused) and error.problem.get("code") == "PreconditionFailed"


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split words into what names objects, and the changes after it.

    Raises:
        WrongUsage: no change is given.
    """
    is_change = ["=" in word or ":" in word or word.endswith("-") for word in words]
    if not any(is_change):
        raise WrongUsage("Say what to set or remove: KEY=VALUE or KEY-.")
    first = is_change.index(True)
    if not all(is_change[first:]):
        raise WrongUsage("Name the objects first, and then what to set or remove.")
    return list(words[:first]), list(words[first:])


def _named(targets: Sequence[Target]) -> Sequence[Target]:
    if any(target.name is None for target in targets):
        raise WrongUsage("Name the objects, or give a selector where there is one.")
    return targets


def _matching(session: Session, target: Target, selector: str) -> Iterator[Target]:
    if target.name is not None:
        raise WrongUsage("A selector is for a kind, without names.")
    return listed(session.client, target, selector)


def _metadata_change(field: str, words: Sequence[str], *, overwrite: bool) -> Change:
    values: dict[str, str | None] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals and not word.endswith("-"):
            raise WrongUsage(f"{word}: expected KEY=VALUE or KEY-.")
        values |= {key: value} if equals else {word[:-1]: None}

    def change(item: Item) -> object:
        present: Mapping[str, str] = item["metadata"].get(field) or {}
        for key, value in values.items():
            if value is not None and not overwrite and present.get(key, value) != value:
                raise WrongUsage(
                    f"{item['metadata']['name']} has {key}={present[key]} already; "
                    "--overwrite replaces it."
                )
        return {"metadata": {field: values}}

    return change


def _read_taint(word: str) -> dict[str, str]:
    """Read `KEY=VALUE:EFFECT` or `KEY:EFFECT`.

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
    """Read the key of a taint, and its effect if that is said: `KEY`, `KEY:EFFECT` or `KEY=VALUE:EFFECT`."""
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
    """The taints of a node after a change; a taint is known by its key and effect.

    Raises:
        WrongUsage: one to remove is not there, or one to set has another value and is not to be
            overwritten.
    """
    taints = present
    for key, effect in removed:
        left = [each for each in taints if not _is(each, key, effect)]
        if len(left) == len(taints):
            raise WrongUsage(f"There is no taint {key}{':' + effect if effect else ''} to remove.")
        taints = left
    for new in set_taints:
        old = next((each for each in taints if _is(each, new["key"], new["effect"])), None)
        if old is None:
            taints = [*taints, dict(new)]
        elif old.get("value", "") != new.get("value", "") and not overwrite:
            raise WrongUsage(
                f"There is a taint {new['key']}={old.get('value', '')}:{new['effect']} already; "
                "--overwrite replaces it."
            )
        else:
            taints = [dict(new) if each is old else each for each in taints]
    return taints


def _is(taint: Mapping[str, Any], key: str, effect: str | None) -> bool:
    return taint.get("key") == key and effect in {None, taint.get("effect")}
