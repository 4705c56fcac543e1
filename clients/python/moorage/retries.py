"""When a request is sent again, and after which pause."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tenacity import RetryCallState, wait_random_exponential

from moorage.errors import ConnectionLostError, ProblemError, TimedOutError, UnreachableError
from moorage.requests import Request

TOO_MANY_REQUESTS = 429
STANDING = frozenset({"EvictionBlocked"})
"""Problems that last until somebody does something: their `Retry-After` is advice for people."""

Sleep = Callable[[float], None]
AsyncSleep = Callable[[float], Awaitable[None]]
"""Lets as many seconds pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How patient a client is.

    A request is repeated only if that does nothing twice: reads, PUT without preconditions, and all
    that carries an idempotency key. Others are sent again only if the server surely did nothing.
    """

    seconds_max: float = 60.0
    """All pauses of one request together; 0 repeats nothing, `math.inf` never gives up."""
    pause_seconds: float = 0.25
    """The least pause. Without `Retry-After` pauses are drawn from a range that doubles each time."""
    pause_seconds_max: float = 5.0
    """The longest pause that is not asked for."""
    retry_after_seconds_max: float = 60.0
    """The longest pause that is made because `Retry-After` asks for it."""
    statuses: frozenset[int] = frozenset({TOO_MANY_REQUESTS, 502, 503, 504})
    """Answers after which the request is repeated, besides those with a `Retry-After`."""
    unreachable: bool = True
    """Whether to try again where nobody listens, as while a server restarts."""
    timed_out: bool = True
    """Whether to try again if the answer does not come in time."""

    def again(self, request: Request) -> Callable[[BaseException], bool]:
        """Return what tells of an error whether the request is worth another try."""

        def is_worth_it(error: BaseException) -> bool:
            if isinstance(error, UnreachableError):
                return self.unreachable
            if isinstance(error, ProblemError):
                if error.code in STANDING:
                    return False
                asked = error.status in self.statuses or error.retry_after_seconds is not None
                return asked and (request.repeatable or error.status == TOO_MANY_REQUESTS)
            if isinstance(error, TimedOutError):
                return request.repeatable and self.timed_out
            return request.repeatable and isinstance(error, ConnectionLostError)

        return is_worth_it

    def pause(self, state: RetryCallState) -> float:
        """Return how many seconds to wait after the attempt that failed last."""
        error = state.outcome.exception() if state.outcome else None
        wanted = error.retry_after_seconds if isinstance(error, ProblemError) else None
        if wanted is not None:
            return max(min(wanted, self.retry_after_seconds_max), self.pause_seconds)
        drawn = wait_random_exponential(multiplier=self.pause_seconds, max=self.pause_seconds_max)
        return max(drawn(state), self.pause_seconds)

    def is_over(self, state: RetryCallState) -> bool:
        """Whether the next pause would be more than all pauses together may be."""
        return state.idle_for + state.upcoming_sleep > self.seconds_max
