"""Handing a request to the worker that decides its cluster's requests (P19).

A hint: whoever cannot reach that worker decides by itself, and the swap of the head keeps it right.
What must not happen is that a request takes effect twice, or is told as refused and takes effect
after all. So, once the other worker may have begun,

- what changes nothing is decided here,
- what has an idempotency key is decided here too, under that key: if the other one has committed
  it, its record answers; if it still tries, only one of the two commits (P11). A refusal alone is
  not recorded, so it is no verdict while the other may go on: the outcome is unknown;
- of anything else the outcome is unknown (P4).
"""

from collections.abc import Awaitable, Callable
from typing import Literal, Protocol, TypeVar

from service.model.errors import OutcomeUnknown

Repeat = Literal["Safe", "Keyed", "Never"]
"""Whether a request may be decided again: it changes nothing, it has a key, it may not."""


class Unreachable(Exception):  # noqa: N818 - a finding, not a failure
    """The other worker was not asked, or did not begin, and never will."""


class AnswerLost(Exception):  # noqa: N818
    """The other worker may have begun, may still go on, and has not answered."""


class Reply(Protocol):
    """An answer of either worker."""

    @property
    def refused(self) -> bool:
        """Whether it is an error, which no idempotency key has on record."""
        ...


Request_contra = TypeVar("Request_contra", contravariant=True)
Answered = TypeVar("Answered", bound=Reply)
Asked = TypeVar("Asked")
Told_co = TypeVar("Told_co", bound=Reply, covariant=True)


class Peers(Protocol[Request_contra, Told_co]):
    """The other workers of this server."""

    async def ask(self, holder: str, request: Request_contra, repeat: Repeat) -> Told_co:
        """Have a request decided there, and never handed on from there.

        What may be repeated need not wait long for a worker that stands still.

        Raises:
            Unreachable: nothing was begun.
            AnswerLost: something may have been.
        """
        ...


async def forward(
    peers: Peers[Asked, Answered],
    holder: str,
    request: Asked,
    repeat: Repeat,
    here: Callable[[], Awaitable[Answered]],
) -> Answered:
    """The answer of the worker `holder`, or, if that cannot be had, the one decided `here`.

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
