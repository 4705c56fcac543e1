"""Events of watches and changes of caches, and parsers of their streams without I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, cast

import msgspec

from moorage.errors import error_of_document

if TYPE_CHECKING:
    from moorage import types

T = TypeVar("T")

WatchedType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
ChangeType = Literal["Added", "Changed", "Deleted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(Generic[T]):
    """One event of a watch."""

    type: WatchedType
    kind: str
    """The object's kind, such as Pod; Cluster for configuration changes, Bookmark for bookmarks."""
    object: T
    """The object at this revision, or the last state of a deleted object."""
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Generic[T]):
    """A change of a cached object, with the object before and after."""

    type: ChangeType
    object: T
    """The current object, or the last known state of a deleted object."""
    before: T | None
    """The object previously in the cache, or None for an added object."""


@dataclass(frozen=True, kw_only=True)
class ServerSentEvent:
    """A raw event of a stream.

    `id` is the revision, and `name` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
    """

    id: str | None
    name: str
    data: str

    def read(self) -> Event[Any]:
        """Decode the event.

        Raises:
            ProblemError: the event says why the stream ends.
        """
        data = msgspec.json.decode(self.data, type=dict[str, Any])
        if self.name == "ERROR":
            raise error_of_document({"status": 500, **data})
        return Event(
            type=self.name,  # type: ignore[arg-type]
            kind=data["kind"],
            object=data["object"],
            revision=int(self.id or 0),
        )


class _Lines:
    """Collects pieces of a text, and returns complete lines."""

    def __init__(self) -> None:
        self._rest = b""

    def ended_by(self, piece: bytes) -> list[bytes]:
        """Return the lines completed by this piece, split at LF only, unlike `str.splitlines`."""
        *complete, self._rest = (self._rest + piece).split(b"\n")
        return complete


class EventReader:
    """Collects pieces of a `text/event-stream`, and yields complete events."""

    def __init__(self) -> None:
        self._lines = _Lines()
        self._fields: dict[str, list[str]] = {}

    def feed(self, piece: bytes) -> Iterator[ServerSentEvent]:
        """Yield the events completed by this piece, skipping comments and unknown fields."""
        return self.feed_lines(
            line.decode(errors="replace") for line in self._lines.ended_by(piece)
        )

    def feed_lines(self, lines: Iterable[str]) -> Iterator[ServerSentEvent]:
        """Yield the events completed by these lines."""
        for line in lines:
            if line:
                name, _, value = line.partition(":")
                self._fields.setdefault(name, []).append(value.removeprefix(" "))
            elif self._fields:
                fields, self._fields = self._fields, {}
                if "data" in fields or "event" in fields:
                    yield _event(fields)


R_co = TypeVar("R_co", covariant=True)


class Reader(Protocol[R_co]):
    """Collects pieces of one stream, and yields complete records with their revisions."""

    def feed(self, piece: bytes) -> Iterator[tuple[int, R_co]]:
        """Yield the records completed by this piece.

        Raises:
            ProblemError: an event says why the stream ends.
        """
        ...


class ChangeReader:
    """Parses the stream of a watch."""

    def __init__(self) -> None:
        self._events = EventReader()

    def feed(self, piece: bytes) -> Iterator[tuple[int, Event[Any]]]:
        """Yield the changes and bookmarks completed by this piece."""
        for message in self._events.feed(piece):
            event = message.read()
            yield event.revision, event


class BindingReader:
    """Parses a stream of bindings, one record per line."""

    def __init__(self) -> None:
        self._lines = _Lines()

    def feed(self, piece: bytes) -> Iterator[tuple[int, types.BindingChange]]:
        """Yield the records completed by this piece."""
        for line in self._lines.ended_by(piece):
            record = msgspec.json.decode(line, type=dict[str, Any])
            if "action" not in record:
                raise error_of_document({"status": 500, **record})
            yield record["revision"], cast("types.BindingChange", record)


def _event(fields: dict[str, list[str]]) -> ServerSentEvent:
    return ServerSentEvent(
        id=fields["id"][-1] if "id" in fields else None,
        name=fields.get("event", ["message"])[-1],
        data="\n".join(fields.get("data", [])),
    )
