"""Watches: streams of committed changes that continue across connections."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from moorage.errors import NoAnswerError, UnavailableError
from moorage.events import ChangeReader, Event, EventReader, Reader, ServerSentEvent
from moorage.requests import Params, Request, streaming
from moorage.synchronous.connection import Connection

R = TypeVar("R")


def events_in(pieces: Iterator[bytes]) -> Generator[ServerSentEvent]:
    """Yield the events of a stream, until it ends."""
    reader = EventReader()
    for piece in pieces:
        for event in reader.feed(piece):
            yield event


def watched(
    connection: Connection, path: str, params: Params, since: int | None
) -> Generator[Event[Any]]:
    """Yield the events of a watch endlessly, with the reconnections of `followed`."""
    return followed(connection, streaming(path, params), since, ChangeReader)


def followed(
    connection: Connection,
    request: Request,
    since: int | None,
    open_reader: Callable[[], Reader[R]],
) -> Generator[R]:
    """Yield the changes of a stream without end; resume where a stream ended or broke.

    Without `since`, the first stream begins at the present revision. Each outage of the server may
    last as long as the client's retries allow.

    Raises:
        ExpiredError: the log does not reach back far enough; list again.
        ProblemError: the server refused, or the caller's rights changed.
        NoAnswerError: the server was unreachable for too long.
    """
    retries = connection.retries
    waited = 0.0
    pause = retries.pause_seconds
    while True:
        reader = open_reader()
        try:
            with connection.stream(_since(request, since)) as pieces:
                for piece in pieces:
                    for revision, change in reader.feed(piece):
                        waited, pause = 0.0, retries.pause_seconds
                        yield change
                        since = revision
        except (NoAnswerError, UnavailableError) as error:
            if waited + pause > retries.seconds_max:
                raise
            wanted = getattr(error, "retry_after_seconds", None) or 0.0
            pause = max(pause, min(wanted, retries.retry_after_seconds_max))
        connection.sleep(pause)
        waited += pause
        pause = min(2 * pause, retries.pause_seconds_max)


def _since(request: Request, since: int | None) -> Request:
    """Return the request for records after a revision."""
    if since is None:
        return request
    return replace(request, params={**request.params, "sinceRevision": str(since)})
