"""Detects that a failover or a restore has changed a database's history (protocol rule P3)."""

import logging
from typing import NamedTuple, Protocol
from weakref import WeakSet

from service.model.core.errors import StorageUnavailable
from service.store.db.hosts import Host

_log = logging.getLogger(__name__)


class DatabaseHistory(NamedTuple):
    """The history of a database, which a failover or a restore may change (protocol rule P3)."""

    system: int
    timeline: int


class GuardedConnection(Protocol):
    """A connection to a database with a history."""

    @property
    def history(self) -> DatabaseHistory | None:
        """The history on which it was opened, or None before that is known."""
        ...

    def terminate(self) -> None:
        """Close the connection without notifying the server."""
        ...


class HistoryGuard:
    """Compares the system identifier and timeline of every new connection (protocol rule P3).

    `epoch` rises whenever another history is seen; state of an earlier epoch must be dropped. A
    server with an older timeline than one seen before has been replaced, and is refused.
    Connections that were opened before the change are closed, since they may never get an answer,
    or may lead to a server that does not know that it was replaced. `only_host` is the URL's host
    if it names just one.
    """

    def __init__(self, only_host: Host | None = None) -> None:
        self.epoch = 0
        self.current: DatabaseHistory | None = None
        self.host = only_host
        """The host that showed the current history, or the only one."""
        self._opened: WeakSet[GuardedConnection] = WeakSet()
        self._refused: set[tuple[Host | None, int]] = set()
        """The hosts and older timelines refused since the history last changed."""

    def register(self, connection: GuardedConnection, host: Host | None = None) -> None:
        """Check the history of a new connection; close connections with another history.

        Raises:
            StorageUnavailable: the connection leads to a server that was replaced by another one.
        """
        assert connection.history is not None
        self.check(connection.history, host)
        self._opened.add(connection)
        for known in list(self._opened):
            if known.history != self.current:
                self._opened.discard(known)
                known.terminate()

    def terminate_all(self) -> None:
        """Close all connections; pending statements fail."""
        while self._opened:
            self._opened.pop().terminate()

    def check(self, seen: DatabaseHistory, host: Host | None = None) -> None:
        """Check and record the history that a new connection shows, to `host` or to the only one.

        Raises:
            StorageUnavailable: the connection leads to a server that was replaced by another one.
        """
        known = self.current
        if known is not None and known.system == seen.system and seen.timeline < known.timeline:
            self._log_refused(seen.timeline, known.timeline, host or self.host)
            raise StorageUnavailable(
                f"The server is on timeline {seen.timeline}, but {known.timeline} was seen already."
            )
        before, self.host = self.host, host or self.host
        if known is not None and known != seen:
            self.epoch += 1
            self._refused.clear()
            fields = {"host": _text(self.host), "before": _text(before), "timeline": seen.timeline}
            _log.info("Another PostgreSQL accepts writes.", extra=fields)
        self.current = seen

    def _log_refused(self, timeline: int, known: int, host: Host | None) -> None:
        """Log a refusal once, since connections to a replaced server are retried."""
        if (host, timeline) not in self._refused:
            self._refused.add((host, timeline))
            fields = {"host": _text(host), "timeline": timeline, "known": known}
            _log.warning("A host on an older timeline is refused.", extra=fields)


def _text(host: Host | None) -> str | None:
    return None if host is None else str(host)
