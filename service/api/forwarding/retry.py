"""Handle forwarded requests that the other worker does not answer (P19).

Forwarding only avoids races: a worker that cannot reach the other one decides by itself, and the
compare-and-swap of the head keeps the log right. But no request may take effect twice, or be
refused and take effect after all. So, once the other worker may have begun,

- a request that changes nothing is decided here,
- one with an idempotency key is decided here too, under that key: if the other worker has committed
  it, its record answers; if it is still trying, only one of the two commits (P11). A refusal is not
  recorded, so it proves nothing while the other worker may continue: the outcome is unknown;
- the outcome of any other request is unknown (P4).
"""

from collections.abc import Awaitable, Callable
from typing import Literal, Protocol, TypeVar

from service.model.core.errors import OutcomeUnknown

Repeat = Literal["Safe", "Keyed", "Never"]
"""Whether a request may be decided again.

It may if it changes nothing (`Safe`) or has an idempotency key (`Keyed`), and never otherwise.
"""


class Unreachable(Exception):  # noqa: N818 - a finding, not a failure
    """The other worker has not begun to decide the request, and never will."""


class OtherOwner(Unreachable):
    """The other worker has passed the cluster on, and names the new owner."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder
        """The worker that decides the cluster's requests now."""


class AnswerLost(Exception):  # noqa: N818
    """The other worker has not answered, but may have begun the request, and may continue."""


class Reply(Protocol):
    """An answer to a request, from any worker."""

    @property
    def refused(self) -> bool:
        """Whether the answer is an error; errors are not recorded under idempotency keys."""
        ...


Request_contra = TypeVar("Request_contra", contravariant=True)
Answered = TypeVar("Answered", bound=Reply)
Asked = TypeVar("Asked")
Told_co = TypeVar("Told_co", bound=Reply, covariant=True)


class Peers(Protocol[Request_contra, Told_co]):
    """The workers that a request can be forwarded to."""

    async def ask(self, holder: str, request: Request_contra, repeat: Repeat) -> Told_co:
        """Have the worker `holder` decide a request; that worker does not forward it again.

        A request that may be repeated does not wait long for an unresponsive worker.

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
    """Return the answer of the worker `holder`, or decide the request `here` if there is none.

    Raises:
        OutcomeUnknown: the answer was lost, and the request must not be decided again.
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
