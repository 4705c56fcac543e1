"""Tracks whether the database is available, and logs the beginning and end of each outage.

The pools see an outage first: a connection cannot be opened, or a commit fails. Each request
reports its own failure to its caller; the outage that affects all of them is logged here.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from service.store.db.failures import is_unavailable

Sign = Literal["connection", "commit"]
"""The event that showed whether the database works: a connection or a commit.

With a full disk, connections can be opened, but no commit works. A successful commit ends every
outage.
"""

REASON_CHARACTERS_MAX = 300

_log = logging.getLogger(__name__)


class Outages:
    """The outages of the database, as this process observes them."""

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        host: Callable[[], object | None] = lambda: None,
    ) -> None:
        """Create a tracker; `host` returns the host that last accepted writes, or None."""
        self._monotonic = monotonic
        self._host = host
        self._signs: dict[Sign, str] = {}
        self._since = 0.0
        self.count = 0
        """The number of outages so far."""

    @property
    def reason(self) -> str | None:
        """Why the database cannot be used, or None if it can."""
        return next(iter(self._signs.values()), None)

    def failed(self, sign: Sign, reason: str) -> None:
        """Record that a connection or a commit failed because the database is unavailable."""
        if not self._signs:
            self._since = self._monotonic()
            self.count += 1
            self._log(logging.ERROR, "The database is lost.", reason=reason[:REASON_CHARACTERS_MAX])
        self._signs[sign] = reason

    def worked(self, sign: Sign) -> None:
        """Record that a connection or a commit worked."""
        if not self._signs:
            return
        self._signs.pop(sign, None)
        if sign == "commit":
            self._signs.clear()
        if not self._signs:
            seconds = round(self._monotonic() - self._since, 3)
            self._log(logging.WARNING, "The database is back.", after_seconds=seconds)

    def _log(self, level: int, message: str, **fields: object) -> None:
        host = self._host()
        _log.log(level, message, extra={**fields, **({} if host is None else {"host": str(host)})})

    @contextmanager
    def watched(self, sign: Sign) -> Iterator[None]:
        """Record whether the body of this context works; its exceptions propagate."""
        try:
            yield
        except Exception as error:
            if is_unavailable(error):
                self.failed(sign, reason_of(error))
            raise
        self.worked(sign)


def reason_of(error: BaseException) -> str:
    """Return in one line why the database failed; timeouts have no text of their own."""
    if text := " ".join(str(error).split()):
        return text
    return "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
