"""Events of watches, and what caches make of them; reads streams without knowing where they come from."""

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
    """Kind of the object, such as Pod; Cluster where the configuration changed, Bookmark of bookmarks."""
    object: T
    """The object as of this revision; of a deleted one the last state."""
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Generic[T]):
    """What became different in a cache."""

    type: ChangeType
    object: T
    """The object as it is now; of a deleted one the last state that is known."""
    before: T | None
    """The object as it was in the cache; None of an added one."""


@dataclass(frozen=True, kw_only=True)
class ServerSentEvent:
    """One event of a stream as it is written there.

    `id` is the revision, and `name` is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
    """

    id: str | None
    name: str
    data: str

    def read(self) -> Event[Any]:
        """Return what the event says.

        Raises:
            ProblemError: it says why the stream ends.
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
    """Takes pieces of a text, and gives the lines that are complete."""

    def __init__(self) -> None:
        self._rest = b""

    def ended_by(self, piece: bytes) -> list[bytes]:
        """Return the lines that end in this piece, at LF alone: Python would also split elsewhere."""
        *complete, self._rest = (self._rest + piece).split(b"\n")
        return complete


class EventReader:
    """Takes pieces of a `text/event-stream`, and gives the events that are complete."""

    def __init__(self) -> None:
        self._lines = _Lines()
        self._fields: dict[str, list[str]] = {}

    def feed(self, piece: bytes) -> Iterator[ServerSentEvent]:
        """Yield the events that end in this piece; comments and unknown fields are skipped."""
        return self.feed_lines(
            line.decode(errors="replace") for line in self._lines.ended_by(piece)
        )

    def feed_lines(self, lines: Iterable[str]) -> Iterator[ServerSentEvent]:
        """Yield the events that end in these lines."""
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
    """Takes pieces of one stream, and gives what is complete, with the revision to go on from."""

    def feed(self, piece: bytes) -> Iterator[tuple[int, R_co]]:
        """Yield what ends in this piece.

        Raises:
            ProblemError: it says why the stream ends.
        """
        ...


class ChangeReader:
    """Reads the stream of a watch."""

    def __init__(self) -> None:
        self._events = EventReader()

    def feed(self, piece: bytes) -> Iterator[tuple[int, Event[Any]]]:
        """Yield the changes and bookmarks that end in this piece."""
        for message in self._events.feed(piece):
            event = message.read()
            yield event.revision, event


class BindingReader:
    """Reads a stream of bindings, one record a line."""

    def __init__(self) -> None:
        self._lines = _Lines()

    def feed(self, piece: bytes) -> Iterator[tuple[int, types.BindingChange]]:
        """Yield the records that end in this piece."""
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
