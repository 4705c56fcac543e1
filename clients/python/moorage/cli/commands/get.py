"""`moorage get`: show objects of any kind, as tables, names, documents, or by template."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Annotated, Any

import msgspec
import typer

from moorage.cli.exceptions import ExitCode, Refused, WrongUsage
from moorage.cli.progress.follower import WatchFollower
from moorage.cli.render.jsonpath import Path, read_path, shown
from moorage.cli.render.output import print_error
from moorage.cli.render.rows import Clock
from moorage.cli.session.hints import NOT_FOUND, suggest_namespaces
from moorage.cli.session.listing import ListPrinter, Style
from moorage.cli.session.options import (
    AllNamespaces,
    LabelSelector,
    OneNamespace,
    Session,
    connected,
)
from moorage.cli.session.resources import (
    EVENTS,
    RESOURCES,
    Resource,
    Target,
    complete_kind,
    read_targets,
)
from moorage.events import ServerSentEvent
from moorage.quantity import InvalidQuantity, parse_quantity

FieldSelector = Annotated[
    str | None, typer.Option("--field-selector", help="Such as spec.nodeName=node-1.")
]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The options of a `get`, apart from the objects."""

    style: Style
    selector: str | None
    field_selector: str | None
    sort_by: Path | None
    ignores_missing: bool
    revision: int | None


@connected
def get(
    session: Session,
    *,
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="KIND[,KIND…] [NAME…] | KIND/NAME…",
            help=f"Kinds: {', '.join(resource.plural for resource in RESOURCES)}, in the plural, the singular or "
            "short. A name may be NAMESPACE/NAME.",
            autocompletion=complete_kind,
        ),
    ],
    namespace: OneNamespace = None,
    all_namespaces: AllNamespaces = False,
    selector: LabelSelector = None,
    field_selector: FieldSelector = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="List, then show each change until Ctrl-C.")
    ] = False,
    output_watch_events: Annotated[
        bool, typer.Option("--output-watch-events", help="With -w: say what each change is.")
    ] = False,
    sort_by: Annotated[
        str | None, typer.Option("--sort-by", help="The path of a field, such as .spec.nodeName.")
    ] = None,
    show_labels: Annotated[
        bool, typer.Option("--show-labels", help="One more column with the labels.")
    ] = False,
    no_headers: Annotated[
        bool, typer.Option("--no-headers", help="Leave the headings out.")
    ] = False,
    revision: Annotated[
        int | None,
        typer.Option("--revision", min=0, help="As of this earlier revision of the cluster."),
    ] = None,
    ignore_not_found: Annotated[
        bool, typer.Option("--ignore-not-found", help="An absent object is no error.")
    ] = False,
) -> None:
    """Show objects: a table, or as -o says. A list is of all namespaces unless -n names one."""
    if all_namespaces and namespace:
        raise WrongUsage("-A and -n exclude each other.")
    within = None if all_namespaces else namespace or session.namespace
    targets = read_targets(what, within)
    kinds = {target.resource.plural for target in targets}
    style = Style(
        clock=Clock(datetime.now(UTC)),  # noqa: TID251 - the user's own time
        headed=not no_headers,
        shows_labels=show_labels,
        in_namespace=within is not None,
        with_kinds=len(kinds) > 1,
        with_events=watch and output_watch_events,
    )
    selection = Selection(
        style=style,
        selector=selector,
        field_selector=field_selector,
        sort_by=read_path(sort_by) if sort_by else None,
        ignores_missing=ignore_not_found,
        revision=revision,
    )
    if revision is not None and (watch or any(_has_no_past(target) for target in targets)):
        raise WrongUsage("--revision is for objects of a cluster other than events, without -w.")
    if watch:
        _watch(session, targets, selection)
    else:
        _Getting(session, selection).show(targets)


class _Getting:
    """Fetches objects and prints them, reporting absent ones at the end."""

    def __init__(self, session: Session, selection: Selection) -> None:
        self._session = session
        self._selection = selection
        self._absent: list[Refused] = []

    def show(self, targets: Sequence[Target]) -> None:
        """Print the objects of the targets.

        Raises:
            Refused: the one object that was asked for is not there.
        """
        if any(target.name for target in targets) and (
            self._selection.selector or self._selection.field_selector
        ):
            raise WrongUsage("A selector is for lists, not for objects by name.")
        groups = [(kind, list(some)) for kind, some in groupby(targets, key=lambda t: t.resource)]
        if ListPrinter(self._session, groups[0][0], self._selection.style).streams:
            self._show_tables(groups)
        else:
            self._show_document(groups, is_one=len(targets) == 1 and targets[0].name is not None)
        if len(self._absent) == 1 and len(targets) == 1:
            raise self._absent[0]
        for error in self._absent:
            print_error(error)
        if self._absent:
            raise typer.Exit(ExitCode.REFUSED)

    def _show_tables(self, groups: Sequence[tuple[Resource, list[Target]]]) -> None:
        shown = 0
        for resource, targets in groups:
            listing = ListPrinter(self._session, resource, self._selection.style)
            filled = 0
            for page in self._pages(resource, targets):
                if page and not filled and shown and self._session.output.for_people:
                    self._session.output.line()
                listing.add(page)
                filled += len(page)
            shown += filled
        if not shown and not self._absent and self._session.output.for_people:
            where = {target.namespace for _, targets in groups for target in targets} - {None}
            of = f" in the namespace {where.pop()}" if len(where) == 1 else ""
            self._session.output.note(
                f"No {', '.join(kind.plural for kind, _ in groups)} found{of}."
            )

    def _show_document(
        self, groups: Sequence[tuple[Resource, list[Target]]], *, is_one: bool
    ) -> None:
        items = [
            item
            for resource, targets in groups
            for page in self._pages(resource, targets)
            for item in page
        ]
        if not is_one:
            self._session.output.document({"apiVersion": "v1", "kind": "List", "items": items})
        elif items:
            self._session.output.document(items[0])

    def _pages(self, resource: Resource, targets: Sequence[Target]) -> Iterator[list[Any]]:
        pages = (page for target in targets for page in self._pages_of(target) if page)
        order = self._selection.sort_by
        if order is None and resource.order is None:
            return pages
        items = [item for page in pages for item in page]
        if order is not None:
            return iter([sorted_by(items, order)])
        return iter([sorted(items, key=resource.order)])

    def _pages_of(self, target: Target) -> Iterable[list[Any]]:
        client = self._session.client
        if target.name is not None:
            return self._one(target)
        if target.resource.of_server:
            return [client.get(target.path(client))["items"]]
        filters = _filters(self._selection, target)
        return client.pages(target.path(client), {**filters, "revision": self._selection.revision})

    def _one(self, target: Target) -> Iterable[list[Any]]:
        client = self._session.client
        if target.resource is EVENTS:
            # Events can be listed alone, so that one of them is a list by its name.
            named = {"fieldSelector": f"metadata.name={target.name}"}
            return client.pages(replace(target, name=None).path(client), named)
        try:
            with suggest_namespaces(self._session, target):
                return [[client.get(target.path(client), {"revision": self._selection.revision})]]
        except Refused as error:
            if error.problem.get("code") != NOT_FOUND:
                raise
            if not self._selection.ignores_missing:
                self._absent.append(error)
            return []


def sorted_by(items: list[Any], path: Path) -> list[Any]:
    """Sort objects by a field, as quantities if all its values are, or else as text; absent values first."""
    first_values = {id(item): path(item)[:1] for item in items}
    values = [value for some in first_values.values() for value in some]
    key = _amount if all(_amount(value) is not None for value in values) else shown
    return sorted(items, key=lambda item: [key(value) for value in first_values[id(item)]])


def _amount(value: Any) -> int | None:
    """Return a value as a quantity, or None if it is not one."""
    try:
        return parse_quantity(value) if isinstance(value, str | int | float) else None
    except InvalidQuantity:
        return None


def _has_no_past(target: Target) -> bool:
    """Return whether earlier states of a target cannot be read."""
    return target.resource.of_server or target.resource is EVENTS


def _filters(selection: Selection, target: Target) -> dict[str, str | None]:
    """Return the query parameters of a list request for the target."""
    by_name = f"metadata.name={target.name}" if target.name else None
    fields = [selector for selector in (selection.field_selector, by_name) if selector]
    return {"labelSelector": selection.selector, "fieldSelector": ",".join(fields) or None}


def _watch(session: Session, targets: Sequence[Target], selection: Selection) -> None:
    """List a target's objects, then follow their changes."""
    if len(targets) != 1 or _has_no_past(targets[0]):
        raise WrongUsage("-w follows one kind of a cluster's objects, or one object.")
    if selection.sort_by is not None:
        raise WrongUsage("-w shows changes as they come: leave --sort-by out.")
    [target] = targets
    client, listing = session.client, ListPrinter(session, target.resource, selection.style)
    revision: str | None = None
    for page in client.whole_pages(
        replace(target, name=None).path(client), _filters(selection, target)
    ):
        revision = revision or page["metadata"].get("resourceVersion")
        listing.add(page["items"], "ADDED")

    def show(_: Session, event: ServerSentEvent) -> None:
        item = msgspec.json.decode(event.data)["object"]
        if target.name in {None, item["metadata"]["name"]}:
            listing.add([item], event.name)

    filters = {
        "kind": target.resource.kind,
        "namespace": target.namespace,
        "labelSelector": selection.selector,
        "fieldSelector": selection.field_selector,
    }
    with suppress(KeyboardInterrupt):
        WatchFollower(session, filters, revision, show).follow_until_stopped()
