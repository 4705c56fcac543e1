"""Defines what happens if the worker that a request is forwarded to does not answer (P19).

Forwarding only avoids races: a worker that cannot reach the other one decides by itself, and the
swap of the head keeps the log right. But no request may take effect twice, or be answered with a
refusal and take effect after all. So, once the other worker may have begun,

- what changes nothing is decided here,
- what has an idempotency key is decided here too, under that key: if the other one has committed
  it, its record answers; if it still tries, only one of the two commits (P11). A refusal alone is
  not recorded, so it is no verdict while the other may go on: the outcome is unknown;
- of anything else the outcome is unknown (P4).
"""

from collections.abc import Awaitable, Callable
from typing import Literal, Protocol, TypeVar

from service.model.core.errors import OutcomeUnknown

Repeat = Literal["Safe", "Keyed", "Never"]
"""Whether a request may be decided again.

It may if it changes nothing (`Safe`) or has an idempotency key (`Keyed`), and else never.
"""


class Unreachable(Exception):  # noqa: N818 - a finding, not a failure
    """The other worker has not begun to decide the request, and never will."""


class OtherOwner(Unreachable):
    """The other worker has passed the cluster on, and says to whom."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder
        """The worker that decides the cluster's requests now."""


class AnswerLost(Exception):  # noqa: N818
    """The other worker may have begun, may still go on, and has not answered."""


class Reply(Protocol):
    """An answer to a request, whichever worker gave it."""

    @property
    def refused(self) -> bool:
        """Whether the answer is an error; errors are not recorded under idempotency keys."""
        ...


Request_contra = TypeVar("Request_contra", contravariant=True)
Answered = TypeVar("Answered", bound=Reply)
Asked = TypeVar("Asked")
Told_co = TypeVar("Told_co", bound=Reply, covariant=True)


class Peers(Protocol[Request_contra, Told_co]):
    """The other workers of this server."""

    async def ask(self, holder: str, request: Request_contra, repeat: Repeat) -> Told_co:
        """Have the worker `holder` decide a request, which it does not forward again.

        A request that may be repeated does not wait long for a worker that stands still.

        Raises:
            Unreachable: the other worker has not begun, and never will.
            AnswerLost: the other worker may have begun.
        """
        ...


async def forward(
    peers: Peers[Asked, Answered],
    holder: str,
    request: Asked,
    repeat: Repeat,
    here: Callable[[], Awaitable[Answered]],
) -> Answered:
    """The answer of the worker `holder`, or the one decided `here` if that worker gives none.

    Raises:
        OutcomeUnknown: the answer got lost, and the request must not simply be decided again.
    """
    try:
        return await peers.ask(holder, request, repeat)
    except Unreachable:
        return await here()
    except AnswerLost:
        if repeat == "Never":
            raise _unknown() from None
    reply = await here()
    if repeat == "Keyed" and reply.refused:
        raise _unknown()
    return reply


def _unknown() -> OutcomeUnknown:
    return OutcomeUnknown("The worker that was deciding this request did not answer.")
