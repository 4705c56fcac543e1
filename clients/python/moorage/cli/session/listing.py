"""Prints objects of one kind: tables and names page by page, documents at the end."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from moorage.cli.render.output import Format
from moorage.cli.render.rows import Clock, Item, labels_of
from moorage.cli.render.tables import TableWriter
from moorage.cli.session.options import Session
from moorage.cli.session.resources import Resource

EVENT_COLUMN = "event"


@dataclass(frozen=True, kw_only=True)
class Style:
    """The style of printed lists, in addition to their format."""

    clock: Clock
    headed: bool = True
    shows_labels: bool = False
    in_namespace: bool = False
    """Whether all objects share a namespace, so that no column is needed for it."""
    with_kinds: bool = False
    """Whether names are shown as `pod/web-0`, because several kinds are listed."""
    with_events: bool = False
    """Whether each row begins with the type of the object's event."""


class ListPrinter:
    """Prints objects of one kind as they arrive."""

    def __init__(self, session: Session, resource: Resource, style: Style) -> None:
        self._output = session.output
        self._resource = resource
        self._style = style
        self._table: TableWriter | None = None
        if self._output.custom is not None:
            self._table = self._output.streamed(self._output.custom.headings, headed=style.headed)
        elif self._output.for_people:
            self._table = self._output.streamed(self._columns(), headed=style.headed)

    @property
    def streams(self) -> bool:
        """Whether objects are printed as they arrive, not all as one document."""
        return self._table is not None or self._output.format is Format.NAME

    def add(self, items: Iterable[Item], event: str = "") -> None:
        """Print more objects."""
        if self._output.custom is not None and self._table is not None:
            self._table.add(map(self._output.custom.row, items))
        elif self._table is not None:
            self._table.add(self._row(item, event) for item in items)
        elif self._output.format is Format.NAME:
            self._output.lines(map(self.name_of, items))
        else:
            for item in items:
                self._output.document(item)

    def name_of(self, item: Item) -> str:
        """Return `pod/NAMESPACE/NAME`, a name that every command accepts."""
        metadata: dict[str, Any] = item.get("metadata", item)
        namespace = None if self._style.in_namespace else metadata.get("namespace")
        parts = (self._resource.singular, namespace, metadata["name"])
        return "/".join(part for part in parts if part)

    @property
    def _has_namespaces(self) -> bool:
        kind = self._resource
        return kind.namespaced and not kind.names_namespace and not self._style.in_namespace

    def _columns(self) -> Sequence[str]:
        wide = self._resource.wide_columns if self._output.format is Format.WIDE else ()
        return (
            *((EVENT_COLUMN,) if self._style.with_events else ()),
            *(("namespace",) if self._has_namespaces else ()),
            *self._resource.columns,
            *wide,
            *(("labels",) if self._style.shows_labels else ()),
        )

    def _row(self, item: Item, event: str) -> Sequence[object]:
        style, kind = self._style, self._resource
        row = kind.row(item, style.clock)
        if style.with_kinds and not kind.names_namespace:
            row = (f"{kind.singular}/{row[0]}", *row[1:])
        if self._has_namespaces:
            row = (item["metadata"].get("namespace"), *row)
        if self._output.format is Format.WIDE:
            row = (*row, *kind.wide(item))
        if style.with_events:
            row = (event, *row)
        return (*row, labels_of(item)) if style.shows_labels else row
