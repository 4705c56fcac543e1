"""A watch as a byte stream: when to send events and bookmarks, independent of their format."""

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import msgspec

from service.api.auth.redaction import Visibility, Visible
from service.api.http.problems import encode_problem
from service.api.http.streaming import PIECE_BYTES, PageReader, Pieces, TooSlow
from service.model.core.errors import MoorageError, NotFound, ObjectUnreadable, StorageUnavailable
from service.model.log.commit import Change
from service.model.registry.kinds import sees
from service.scheduler.watching import LoggedCommit, Watch


class Writer(Protocol):
    """The format in which a stream reports changes."""

    @property
    def begin(self) -> bytes:
        """The first bytes of a stream, possibly none."""
        ...

    def change(self, change: Change, visibility: Visibility) -> bytes | None:
        """Encode a change as visible to its reader, or return None if it is not selected.

        Raises:
            Compacted: the log no longer shows whether the change is selected.
        """
        ...

    def bookmark(self, revision: int) -> bytes:
        """Encode a mark that all changes up to a revision have been sent."""
        ...

    def problem(self, document: bytes) -> bytes:
        """Encode the problem that ends the stream."""
        ...


class ChangeStream(msgspec.Struct, frozen=True, kw_only=True):
    """The stream of changes that one client watches."""

    watch: Watch
    writer: Writer
    visible: Visible
    """Returns what the watcher may currently see, or raises if the watch must end."""
    cluster: str
    """The name of the watched cluster."""
    path: str
    """The request's path, for problem documents."""
    request_id: str = ""
    refused: Callable[[int], None] = lambda _: None
    """Called with the status of the problem that ends the stream."""
    from_present: bool
    """Whether the watch starts at the current revision, which is then sent as a bookmark."""
    bookmark_seconds: float
    timeout_seconds: float = math.inf

    async def pieces(self) -> Pieces:
        """Yield the stream until its time limit, the server's shutdown, or an error."""
        try:
            yield self.writer.begin + (self._bookmark() if self.from_present else b"")
            async for piece in self._events():
                yield piece
            yield self._bookmark()
        except TooSlow:
            raise
        except Exception as error:
            status, problem = _problem(error, self.path, self.request_id)
            self.refused(status)
            yield self.writer.problem(problem)
            if not isinstance(error, MoorageError):
                raise
        finally:
            self.watch.close()

    async def _events(self) -> Pieces:
        """Yield events and bookmarks; bookmarks are only sent between commits."""
        now = asyncio.get_running_loop().time
        end, due = now() + self.timeout_seconds, now() + self.bookmark_seconds
        while now() < end:
            commits = await self._next(min(due, end) - now())
            if commits is None:
                return
            reader = PageReader(now)
            for written in self._written(commits, await self._visible(commits)):
                # Pieces of this size always have room: the watch holds the bytes of the whole page.
                for start in range(0, len(written), PIECE_BYTES):
                    with reader.reading(min(PIECE_BYTES, len(written) - start)):
                        yield written[start : start + PIECE_BYTES]
            del commits
            if now() >= due:
                yield self._bookmark()
                due = now() + self.bookmark_seconds

    async def _next(self, seconds: float) -> Sequence[LoggedCommit] | None:
        try:
            return await self.watch.next_within(seconds)
        except NotFound:
            raise NotFound(f"There is no cluster {self.cluster!r} any more.") from None

    async def _visible(self, commits: Sequence[LoggedCommit]) -> Visibility:
        """Return what the watcher may currently see.

        If this cannot be read and there are no changes to send, the watch continues, and reads it
        again for the next commits.
        """
        try:
            return await self.visible()
        except StorageUnavailable:
            if commits:
                raise
            return frozenset()

    def _written(self, commits: Sequence[LoggedCommit], visibility: Visibility) -> Iterator[bytes]:
        """Yield the events in pieces; if one cannot be encoded, yield those before it and raise."""
        written: list[bytes] = []
        size = 0
        try:
            for event in self._selected(commits, visibility):
                written.append(event)
                size += len(event)
                if size >= PIECE_BYTES:
                    yield b"".join(written)
                    written, size = [], 0
        except MoorageError:
            yield b"".join(written)
            raise
        yield b"".join(written)

    def _selected(self, commits: Sequence[LoggedCommit], visibility: Visibility) -> Iterator[bytes]:
        for commit in commits:
            for change in commit.changes:
                if not sees(visibility, *change.key):
                    continue
                event = self._event(change, visibility)
                if event is not None:
                    yield event

    def _event(self, change: Change, visibility: Visibility) -> bytes | None:
        try:
            return self.writer.change(change, visibility)
        except (ValueError, msgspec.MsgspecError) as error:
            raise ObjectUnreadable(*change.key) from error

    def _bookmark(self) -> bytes:
        self.watch.advance()
        return self.writer.bookmark(self.watch.revision)


def _problem(error: Exception, path: str, request_id: str) -> tuple[int, bytes]:
    """Return an error's status and problem document."""
    if not isinstance(error, MoorageError):
        error = MoorageError("An unexpected fault; the server's log has the details.")
    status, problem, _ = encode_problem(error, path, request_id)
    return status, problem
