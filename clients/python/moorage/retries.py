"""When a request is retried, and after which pause."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tenacity import RetryCallState, wait_random_exponential

from moorage.errors import ConnectionLostError, ProblemError, TimedOutError, UnreachableError
from moorage.requests import Request

TOO_MANY_REQUESTS = 429
STANDING = frozenset({"EvictionBlocked"})
"""Problems that last until someone acts; their `Retry-After` is advice for people."""

Sleep = Callable[[float], None]
AsyncSleep = Callable[[float], Awaitable[None]]
"""Sleeps for a number of seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How long and after which errors a client retries requests.

    A request is retried freely only if it is safe to repeat: reads, PUTs without preconditions, and
    requests with an idempotency key. Others are retried only if the server certainly did nothing.
    """

    seconds_max: float = 60.0
    """The limit on all pauses of one request together; 0 disables retries, `math.inf` never gives
    up."""
    pause_seconds: float = 0.25
    """The shortest pause. Without `Retry-After`, pauses are drawn from a range that doubles each
    time."""
    pause_seconds_max: float = 5.0
    """The longest pause without a `Retry-After`."""
    retry_after_seconds_max: float = 60.0
    """The longest pause for a `Retry-After`."""
    statuses: frozenset[int] = frozenset({TOO_MANY_REQUESTS, 502, 503, 504})
    """Status codes to retry, in addition to answers with a `Retry-After`."""
    unreachable: bool = True
    """Whether to retry if no server is listening, as during a restart."""
    timed_out: bool = True
    """Whether to retry if the answer does not arrive in time."""

    def again(self, request: Request) -> Callable[[BaseException], bool]:
        """Return a predicate that decides whether a request is worth retrying after an error."""

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
        """Return how many seconds to wait after the last failed attempt."""
        error = state.outcome.exception() if state.outcome else None
        wanted = error.retry_after_seconds if isinstance(error, ProblemError) else None
        if wanted is not None:
            return max(min(wanted, self.retry_after_seconds_max), self.pause_seconds)
        drawn = wait_random_exponential(multiplier=self.pause_seconds, max=self.pause_seconds_max)
        return max(drawn(state), self.pause_seconds)

    def is_over(self, state: RetryCallState) -> bool:
        """Return whether the next pause would exceed the limit on all pauses."""
        return state.idle_for + state.upcoming_sleep > self.seconds_max
