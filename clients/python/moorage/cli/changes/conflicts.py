"""Repeats changes that lost a race with another client's change of the same object."""

from collections.abc import Callable
from typing import TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_attempt

from moorage.cli.exceptions import Refused

T = TypeVar("T")


def until_current(attempt: Callable[[], T], *, attempts_max: int) -> T:
    """Retry `attempt`, which reads and then writes, until no other client's change interferes.

    Raises:
        Refused: the server refused, or other clients were faster each time.
    """
    tried: T = Retrying(
        stop=stop_after_attempt(attempts_max), retry=retry_if_exception(_is_late), reraise=True
    )(attempt)
    return tried


def _is_late(error: BaseException) -> bool:
    return isinstance(error, Refused) and error.problem.get("code") == "PreconditionFailed"
