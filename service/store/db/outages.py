"""Notes when the database is lost and when it is back, and logs each once.

The pools see it before anybody else: a connection cannot be opened, or a commit fails. What a
single request meets is told to its caller; that all of them will meet it is told here.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from service.store.db.failures import is_unavailable

Sign = Literal["connection", "commit"]
"""What showed that the database works or fails: a connection or a commit.

With a full disk connections can be opened, but no commit works. If a commit works, all is well.
"""

REASON_CHARACTERS_MAX = 300

_log = logging.getLogger(__name__)


class Outages:
    """Whether this process can use its database now, by the last signs of it."""

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        host: Callable[[], object | None] = lambda: None,
    ) -> None:
        """`host` tells which host is used; None as long as none of several has accepted writes."""
        self._monotonic = monotonic
        self._host = host
        self._signs: dict[Sign, str] = {}
        self._since = 0.0
        self.count = 0
        """How often the database was lost."""

    @property
    def reason(self) -> str | None:
        """Why the database cannot be used; None if it can."""
        return next(iter(self._signs.values()), None)

    def failed(self, sign: Sign, reason: str) -> None:
        """Note that a connection or a commit failed as if there were no database."""
        if not self._signs:
            self._since = self._monotonic()
            self.count += 1
            self._tell(
                logging.ERROR, "The database is lost.", reason=reason[:REASON_CHARACTERS_MAX]
            )
        self._signs[sign] = reason

    def worked(self, sign: Sign) -> None:
        """Note that a connection or a commit worked."""
        if not self._signs:
            return
        self._signs.pop(sign, None)
        if sign == "commit":
            self._signs.clear()
        if not self._signs:
            seconds = round(self._monotonic() - self._since, 3)
            self._tell(logging.WARNING, "The database is back.", after_seconds=seconds)

    def _tell(self, level: int, message: str, **told: object) -> None:
        host = self._host()
        _log.log(level, message, extra={**told, **({} if host is None else {"host": str(host)})})

    @contextmanager
    def watched(self, sign: Sign) -> Iterator[None]:
        """Note whether what happens in this context works; what it raises passes through."""
        try:
            yield
        except Exception as error:
            if is_unavailable(error):
                self.failed(sign, reason_of(error))
            raise
        self.worked(sign)


def reason_of(error: BaseException) -> str:
    """Say in a line why the database failed; errors of time limits have no text of their own."""
    if text := " ".join(str(error).split()):
        return text
    return "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
