"""Changes single fields of stored objects, safely with concurrent clients."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated

import typer

from moorage.cli.changes.conflicts import until_current
from moorage.cli.exceptions import WrongUsage
from moorage.cli.render.rows import Item
from moorage.cli.session.hints import suggest_namespaces
from moorage.cli.session.options import Session
from moorage.cli.session.resources import Target, complete_kind, listed, read_targets

ATTEMPTS = 5
"""How many times a change is tried while other clients change the same object."""


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


Change = Callable[[Item], object]
"""Returns the merge patch for a stored object.

Raises:
    WrongUsage: the object does not allow the change.
"""


def change_all(
    session: Session,
    named: Sequence[str],
    selector: str | None,
    namespace: str | None,
    change: Change,
    participle: str,
    only: str | None = None,
) -> None:
    """Patch named or selected objects one by one; `participle` says what was done, such as `labeled`."""
    targets = read_targets(named, namespace or session.namespace)
    if only is not None and any(target.resource.kind != only for target in targets):
        raise WrongUsage(f"Only a {only} can be {participle}.")
    if selector is not None:
        targets = [match for target in targets for match in _matching(session, target, selector)]
    for target in require_names(targets):
        with suggest_namespaces(session, target):
            changed = _changed(session, target, change)
        session.done(changed, f"{target.told} {participle}")


def _changed(session: Session, target: Target, change: Change) -> object:
    """Read an object and patch it, retrying if another client changed it in between.

    Raises:
        Refused: the server refused, or other clients were faster each time.
        WrongUsage: the object does not allow the change.
    """
    path = target.path(session.client)

    def attempt() -> object:
        item, tag = session.client.get_tagged(path)
        return session.client.patch(path, change(item), headers={"If-Match": tag})

    return until_current(attempt, attempts_max=ATTEMPTS)


def split_words(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split words into those that name objects and the changes that follow.

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


def require_names(targets: Sequence[Target]) -> Sequence[Target]:
    """Return the targets, after checking that each names an object.

    Raises:
        WrongUsage: a target is a list.
    """
    if any(target.name is None for target in targets):
        raise WrongUsage("Name the objects, or give a selector where there is one.")
    return targets


def _matching(session: Session, target: Target, selector: str) -> Iterator[Target]:
    if target.name is not None:
        raise WrongUsage("A selector is for a kind, without names.")
    return listed(session.client, target, selector)


def metadata_change(field: str, words: Sequence[str], *, overwrite: bool) -> Change:
    """Return the change of labels or annotations given by words (`KEY=VALUE` or `KEY-`).

    Raises:
        WrongUsage: a word is neither.
    """
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
