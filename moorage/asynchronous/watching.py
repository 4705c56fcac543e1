"""Watches: changes as they are committed, from one connection to the next."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from moorage.asynchronous.connection import AsyncConnection
from moorage.errors import NoAnswerError, UnavailableError
from moorage.events import Event, EventReader, ServerSentEvent
from moorage.requests import Params, streaming


async def events_in(pieces: AsyncIterator[bytes]) -> AsyncGenerator[ServerSentEvent]:
    """Yield the events of a stream, until it ends."""
    reader = EventReader()
    async for piece in pieces:
        for event in reader.feed(piece):
            yield event


async def watched(
    connection: AsyncConnection, path: str, params: Params, since: int | None
) -> AsyncGenerator[Event[Any]]:
    """Yield events without end; a stream that ends or breaks is taken up where it ended.

    Without `since` the first stream begins at the present. A server that is away is waited for as
    long as the client is patient, each time anew.

    Raises:
        ExpiredError: the log does not reach back far enough: list again.
        ProblemError: the server refused, or the caller's rights changed.
        NoAnswerError: the server stayed away for too long.
    """
    retries = connection.retries
    waited = 0.0
    pause = retries.pause_seconds
    while True:
        request = streaming(path, {**params, "sinceRevision": since})
        try:
            async with connection.stream(request) as pieces, aclosing(events_in(pieces)) as events:
                async for each in events:
                    event = each.read()
                    waited, pause = 0.0, retries.pause_seconds
                    yield event
                    since = event.revision
        except (NoAnswerError, UnavailableError) as error:
            if waited + pause > retries.seconds_max:
                raise
            wanted = getattr(error, "retry_after_seconds", None) or 0.0
            pause = max(pause, min(wanted, retries.retry_after_seconds_max))
        await connection.sleep(pause)
        waited += pause
        pause = min(2 * pause, retries.pause_seconds_max)
