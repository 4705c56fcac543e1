"""Hints between processes that a log has grown, over LISTEN and NOTIFY (protocol rule P14).

A hint only makes a process read the log sooner. None is sent within a commit, because that would
lock the whole database. Nothing depends on the arrival of hints; the heads are authoritative.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import suppress

from service.model.core.errors import StorageUnavailable
from service.runtime.tasks import log_failure
from service.store.db.connector import Connection, Connector
from service.store.db.failures import is_unavailable, unavailable_on_failure
from service.store.db.outages import Outages

CHANNEL = "moorage"
NOTIFICATION_INTERVAL_SECONDS = 0.01
"""The time between two notifications: a process sends at most 100 per second."""
RECONNECT_SECONDS = 1.0
SILENCE_SECONDS = 1.0
"""After this long without a hint, the server is asked for a sign of life."""
ANSWER_SECONDS_MAX = 2.5
"""The time limit for that answer; after it, the database counts as lost."""
_CLUSTERS_PER_NOTIFICATION = 300  # a payload has at most 8,000 bytes

_AGAIN = f"LISTEN {CHANNEL}"
"""On a connection that already listens, this has no effect except an answer."""
_NOTIFY = "SELECT pg_notify($1, $2)"
_log = logging.getLogger(__name__)


class LogNotifications:
    """Sends and receives hints; create it within the event loop that uses it.

    Sending and receiving use a connection each, so hints neither wait for a busy pool nor occupy
    it.
    """

    def __init__(
        self,
        connect: Connector,
        outages: Outages | None = None,
        *,
        on_silence: Callable[[], None] = lambda: None,
    ) -> None:
        """Create without connecting; `on_silence` is called if no connection gets an answer."""
        self._connect = connect
        self._on_silence = on_silence
        self._outages = outages or Outages()
        self._sending: Connection | None = None
        self._unsent: set[int] = set()
        self._sender: asyncio.Task[None] | None = None

    def notify(self, cluster_id: int) -> None:
        """Hint to other processes soon that a cluster's log has grown; return at once."""
        self._unsent.add(cluster_id)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())
            self._sender.add_done_callback(log_failure)

    async def close(self) -> None:
        """Stop sending, and close the connection."""
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.wait([self._sender])
        self._disconnect()

    async def _send(self) -> None:
        while self._unsent:
            ids = [self._unsent.pop() for _ in range(_some(self._unsent))]
            try:
                with unavailable_on_failure():
                    if self._sending is None:
                        self._sending = await self._connect()
                    await self._sending.execute(_NOTIFY, CHANNEL, ",".join(map(str, ids)))
            except StorageUnavailable:
                _log.debug("A hint was not sent.", exc_info=True)
                self._disconnect()
            await asyncio.sleep(NOTIFICATION_INTERVAL_SECONDS)

    def _disconnect(self) -> None:
        if self._sending is not None:
            self._sending.terminate()
            self._sending = None

    async def listen(self) -> AsyncGenerator[frozenset[int], None]:
        """Yield the clusters whose logs have grown since the last set.

        An empty set means that hints may have been missed, because the connection is new or could
        not be opened. The iterator never ends and never raises; close it (`aclosing`) when done.
        """
        answered = True
        while True:
            try:
                with unavailable_on_failure():
                    connection = await self._connect()
            except StorageUnavailable as error:
                if not answered and isinstance(error.__cause__, TimeoutError):
                    self._on_silence()
                yield frozenset()
                await asyncio.sleep(RECONNECT_SECONDS)
                continue
            try:
                inbox = _Inbox()
                await inbox.attach(connection)
                yield frozenset()
                answered = True
                while answered and (ids := await inbox.take()) is not None:
                    if ids:
                        yield ids
                    else:
                        answered = await self._answers(connection)
            finally:
                connection.terminate()

    async def _answers(self, connection: Connection) -> bool:
        """Return whether the server answers on a connection that has been silent.

        The kernel notices that a machine has vanished, but not that a proxy or a server hangs with
        its connections open.
        """
        try:
            with self._outages.watched("connection"):
                async with asyncio.timeout(ANSWER_SECONDS_MAX):
                    await connection.execute(_AGAIN)
        except Exception as error:
            if not is_unavailable(error):
                raise
            return False
        return True


class _Inbox:
    """The hinted clusters of one connection that have not been taken yet."""

    def __init__(self) -> None:
        self._heard: set[int] = set()
        self._news = asyncio.Event()
        self._ended = False

    async def attach(self, connection: Connection) -> None:
        connection.add_termination_listener(self._on_end)
        try:
            with unavailable_on_failure():
                await connection.add_listener(CHANNEL, self._on_notification)
        except StorageUnavailable:
            self._on_end(connection)

    async def take(self) -> frozenset[int] | None:
        """Wait for hints and return all of them, or None once the connection is lost.

        The set is empty after a while without hints.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(SILENCE_SECONDS):
                await self._news.wait()
        self._news.clear()
        if self._ended:
            return None
        heard = frozenset(self._heard)
        self._heard.clear()
        return heard

    def _on_notification(self, _: object, __: int, ___: str, payload: object) -> None:
        self._heard.update(_ids(str(payload)))
        self._news.set()

    def _on_end(self, _: object) -> None:
        self._ended = True
        self._news.set()


def _some(ids: set[int]) -> int:
    return min(len(ids), _CLUSTERS_PER_NOTIFICATION)


def _ids(payload: str) -> Iterable[int]:
    """Yield the ids in a payload, ignoring anything else: any client can send to the channel."""
    return (int(part) for part in payload.split(",") if part.isdecimal() and part.isascii())
