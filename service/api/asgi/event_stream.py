"""A watch as Server-Sent Events (WHATWG HTML, 9.2): how each event is written, and when."""

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence

import msgspec

from service.api.bodies.streams import PIECE_BYTES, Pieces
from service.api.problems import encode_problem
from service.api.security.visibility import Visibility, Visible, seen_body, sees
from service.model.errors import MoorageError, StorageUnavailable
from service.model.log import CLUSTER_KIND, Change
from service.model.manifest import with_resource_version
from service.scheduler.watching import LoggedCommit, Selection, Watch

EVENT_STREAM = "text/event-stream"

_RETRY = b"retry: 1000\n\n"
"""It tells browsers to come back a second after the stream broke.

These are also the first bytes of a stream, by which a client sees that it has begun.
"""


class EventStream(msgspec.Struct, frozen=True, kw_only=True):
    """What one client watches, and how its events are written."""

    watch: Watch
    selection: Selection
    cluster: str
    visible: Visible
    """Returns what the watcher may see at this moment; it raises if the watch has to end."""
    path: str
    """The request's path, for problem documents."""
    request_id: str = ""
    refused: Callable[[int], None] = lambda _: None
    """It is called with the status of the problem that ends the stream."""
    from_present: bool
    """Whether the watch starts at the present revision, which the client is then told."""
    bookmark_seconds: float
    timeout_seconds: float = math.inf

    async def pieces(self) -> Pieces:
        """Yield the stream, which ends after the time asked for, with the server, or with an error."""
        try:
            yield _RETRY + (self._bookmark() if self.from_present else b"")
            async for piece in self._events():
                yield piece
            yield self._bookmark()
        except Exception as error:
            status, event = _error(error, self.path, self.request_id)
            self.refused(status)
            yield event
            if not isinstance(error, MoorageError):
                raise
        finally:
            self.watch.close()

    async def _events(self) -> Pieces:
        """Yield events and bookmarks; a bookmark comes only between commits, never within one."""
        now = asyncio.get_running_loop().time
        end, due = now() + self.timeout_seconds, now() + self.bookmark_seconds
        while now() < end:
            commits = await self._next(min(due, end))
            if commits is None:
                return
            for piece in self._written(commits, await self._visible(commits)):
                yield piece
            if now() >= due:
                yield self._bookmark()
                due = now() + self.bookmark_seconds

    async def _next(self, until: float) -> Sequence[LoggedCommit] | None:
        try:
            async with asyncio.timeout_at(until):
                return await self.watch.next()
        except TimeoutError:
            return ()

    async def _visible(self, commits: Sequence[LoggedCommit]) -> Visibility:
        """What the watcher may see now.

        If that cannot be read and there is nothing to show, the watch goes on: it may be known by
        the time of the next commits.
        """
        try:
            return await self.visible()
        except StorageUnavailable:
            if commits:
                raise
            return frozenset()

    def _written(self, commits: Sequence[LoggedCommit], visibility: Visibility) -> Iterator[bytes]:
        written: list[bytes] = []
        size = 0
        for commit in commits:
            for change in commit.changes:
                event = self.selection.event(change)
                if event is not None and sees(visibility, *change.key):
                    data = _data(change, self.cluster, visibility)
                    written.append(_frame(event, change.revision, data))
                    size += len(data)
                if size >= PIECE_BYTES:
                    yield b"".join(written)
                    written, size = [], 0
        if written:
            yield b"".join(written)

    def _bookmark(self) -> bytes:
        """An event that says that all changes up to its revision have been sent."""
        revision = self.watch.revision
        data = b'{"kind":"Bookmark","object":{"metadata":{"resourceVersion":"%d"}}}' % revision
        return _frame("BOOKMARK", revision, data)


def _frame(event: str, revision: int, data: bytes) -> bytes:
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (revision, event.encode(), data)


def _data(change: Change, cluster: str, visibility: Visibility) -> bytes:
    """The JSON of kind and object; a deleted object has its last state and its deletion's revision."""
    body = seen_body(visibility, change.kind, change.body)
    if change.kind == CLUSTER_KIND:
        body = _cluster(body, change.revision, cluster)
    else:
        body = with_resource_version(body, change.revision)
    return b'{"kind":"%b","object":%b}' % (change.kind.encode(), _on_one_line(body))


def _cluster(config: bytes, revision: int, name: str) -> bytes:
    return b'{"kind":"%b","metadata":{"name":%b,"resourceVersion":"%d"},"config":%b}' % (
        CLUSTER_KIND.encode(),
        msgspec.json.encode(name),
        revision,
        config,
    )


def _on_one_line(body: bytes) -> bytes:
    """Replace line ends by spaces, since a line end would end the event's field.

    In JSON a line end can only stand between tokens, where a space means the same.
    """
    return body.replace(b"\n", b" ").replace(b"\r", b" ")


def _error(error: Exception, path: str, request_id: str) -> tuple[int, bytes]:
    """The error's status, and the last event of the stream.

    The event has no id, so a client that comes back asks for what it lacks.
    """
    if not isinstance(error, MoorageError):
        error = MoorageError("An unexpected fault; the server's log has the details.")
    status, problem, _ = encode_problem(error, path, request_id)
    return status, b"event: ERROR\ndata: %b\n\n" % problem
