"""Checks whose history a database shows: after a failover or a restore it may be another one (P3)."""

import logging
from typing import NamedTuple, Protocol
from weakref import WeakSet

from service.model.core.errors import StorageUnavailable
from service.store.db.hosts import Host

_log = logging.getLogger(__name__)


class History(NamedTuple):
    """The history that a server tells; after a failover or a restore it may be another one (P3)."""

    system: int
    timeline: int


class GuardedConnection(Protocol):
    """A connection, as far as it shows a history and can be ended."""

    @property
    def history(self) -> History | None:
        """The history on which it was opened."""
        ...

    def terminate(self) -> None:
        """Close it without a word."""
        ...


class HistoryGuard:
    """Compares the system identifier and timeline of every new connection (P3).

    `epoch` rises whenever another history is seen: whoever holds state of an earlier epoch drops
    it. A server with an older timeline than was seen before has been replaced, and is refused.
    Connections that were opened before are ended, since nobody may ever answer on them, or a server
    that does not know that it was replaced. `only_host` is the host if there is nothing to choose
    from.
    """

    def __init__(self, only_host: Host | None = None) -> None:
        self.epoch = 0
        self.current: History | None = None
        self.host = only_host
        """The host that showed the present history, or the only one."""
        self._opened: WeakSet[GuardedConnection] = WeakSet()
        self._refused: set[tuple[Host | None, int]] = set()
        """The hosts and older timelines that were refused since the history last changed."""

    def let_in(self, connection: GuardedConnection, host: Host | None = None) -> None:
        """Admit what a new connection shows; end those that show another history.

        Raises:
            StorageUnavailable: the connection leads to a server that was replaced by another one.
        """
        assert connection.history is not None
        self.admit(connection.history, host)
        self._opened.add(connection)
        for each in list(self._opened):
            if each.history != self.current:
                self._opened.discard(each)
                each.terminate()

    def end_all(self) -> None:
        """End all connections: whoever waits for an answer on one is told that there is none."""
        while self._opened:
            self._opened.pop().terminate()

    def admit(self, seen: History, host: Host | None = None) -> None:
        """Take note of what a new connection shows, to one of several hosts or to the only one.

        Raises:
            StorageUnavailable: the connection leads to a server that was replaced by another one.
        """
        known = self.current
        if known is not None and known.system == seen.system and seen.timeline < known.timeline:
            self._tell_refused(seen.timeline, known.timeline, host or self.host)
            raise StorageUnavailable(
                f"The server is on timeline {seen.timeline}, but {known.timeline} was seen already."
            )
        before, self.host = self.host, host or self.host
        if known is not None and known != seen:
            self.epoch += 1
            self._refused.clear()
            told = {"host": _text(self.host), "before": _text(before), "timeline": seen.timeline}
            _log.info("Another PostgreSQL accepts writes.", extra=told)
        self.current = seen

    def _tell_refused(self, timeline: int, known: int, host: Host | None) -> None:
        """Log it once, since connections to a server that was replaced are tried again and again."""
        if (host, timeline) not in self._refused:
            self._refused.add((host, timeline))
            told = {"host": _text(host), "timeline": timeline, "known": known}
            _log.warning("A host on an older timeline is refused.", extra=told)


def _text(host: Host | None) -> str | None:
    return None if host is None else str(host)
