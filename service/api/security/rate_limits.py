"""Limits how often callers may ask: a principal's requests and writes, an address's failed authentications.

A request is counted after routing, since requests for public operations are not counted. It is
counted by the worker where it arrived, and not once more by one to which it is forwarded.
"""

import logging
from collections.abc import Callable
from ipaddress import IPv6Address
from typing import NamedTuple

from litestar.enums import HttpMethod
from litestar.types import HTTPScope

from service.api.http.context import RequestContext
from service.api.openapi.rights_each_operation_needs import Public, access_of
from service.api.problems import TooManyFailures, TooManyRequests
from service.api.security.trusted_proxies import parsed_address
from service.settings import Settings

KEYS_MAX = 10_000
"""How many principals and addresses are counted apart; beyond that the idlest are forgotten."""
TOLD_SECONDS = 60.0
"""The least time between two lines in the log that one address fails too often."""
SUBSCRIBER_PREFIX = 64
"""The bits of an IPv6 address that belong to one subscriber, who can choose the others freely."""

_READS = frozenset({HttpMethod.GET, HttpMethod.HEAD, HttpMethod.OPTIONS})
_log = logging.getLogger(__name__)


class Limit(NamedTuple):
    """How often something may happen: at most `amount` times at once, which takes `seconds` to recover."""

    what: str
    amount: int
    seconds: int


class Buckets:
    """Buckets that leak steadily: a limit of 10 in 10 s takes ten at once, then one a second.

    Each key has one number, and beyond KEYS_MAX the oldest keys make room.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._empty_at: dict[str, float] = {}
        """The time when each bucket will be empty; the bucket that was hit last is at the end."""

    def take(self, key: str, amount: int, seconds: float) -> bool:
        """Put one into a bucket that holds `amount` and leaks that in `seconds`; return whether it fits."""
        now = self._monotonic()
        empty_at = max(now, self._empty_at.pop(key, now))
        filled = empty_at + seconds / amount
        fits = filled - now <= seconds + _ROUNDING
        self._empty_at[key] = filled if fits else empty_at
        if len(self._empty_at) > KEYS_MAX:
            del self._empty_at[next(iter(self._empty_at))]
        return fits

    def seconds_until_it_fits(self, key: str, amount: int, seconds: float) -> float:
        """Return how long a bucket has to leak until one more fits."""
        full_for = self._empty_at.get(key, 0.0) - self._monotonic()
        return max(0.0, full_for + seconds / amount - seconds)


_ROUNDING = 1e-6


class Rates:
    """Counts the requests to one worker, and refuses callers that ask too often."""

    def __init__(self, settings: Settings, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._buckets = Buckets(monotonic)
        burst = settings.failed_authentications_burst
        self._failures = Limit("failures", burst, burst * settings.failed_authentication_seconds)
        self._requests = _a_second(settings.requests_per_second, "requests")
        self._writes = _a_second(settings.writes_per_second, "writes")
        self.bound_principals = bool(self._requests or self._writes)
        """Whether known principals may ask too often; if not, their requests need not be counted."""
        self._told: dict[str, float] = {}
        """By address, the time when it was last logged that it fails too often."""

    def count(self, scope: HTTPScope, context: RequestContext) -> None:
        """Count a routed request of a principal, which may be unknown.

        Raises:
            TooManyFailures: the caller is not known, and its address has failed too often. Known
                callers from there pass, since many may share an address.
            TooManyRequests: the principal asks, or writes, too often.
        """
        principal = context.principal
        if principal is None:
            if _tries_to_authenticate(scope):
                self._count_failure(context.address)
            return
        self._require(self._requests, principal.name)
        if scope["method"] not in _READS:
            self._require(self._writes, principal.name)

    def _require(self, limit: Limit | None, name: str) -> None:
        if limit is not None and not self._hit(limit, name):
            raise TooManyRequests(
                f"{name} may make {limit.amount} {limit.what} a second.",
                self._retry_after(limit, name),
            )

    def _count_failure(self, address: str) -> None:
        source = _subscriber(address)
        if self._hit(self._failures, source):
            return
        self._tell(source)
        raise TooManyFailures(
            "Too many requests of this address had a wrong token.",
            self._retry_after(self._failures, source),
        )

    def _hit(self, limit: Limit, key: str) -> bool:
        return self._buckets.take(f"{limit.what}/{key}", limit.amount, limit.seconds)

    def _retry_after(self, limit: Limit, key: str) -> int:
        """Return the whole seconds, at least one, after which it is worth trying again."""
        name = f"{limit.what}/{key}"
        return int(self._buckets.seconds_until_it_fits(name, limit.amount, limit.seconds)) + 1

    def _tell(self, source: str) -> None:
        """Log that an address guesses tokens: once in a while, however fast it guesses."""
        now = self._monotonic()
        if now < self._told.get(source, 0.0):
            return
        self._told.pop(source, None)
        self._told[source] = now + TOLD_SECONDS
        if len(self._told) > KEYS_MAX:
            del self._told[next(iter(self._told))]
        _log.warning("Wrong tokens from %s, more often than is answered.", source or "somewhere")


def _a_second(times: int, what: str) -> Limit | None:
    return Limit(what, times, 1) if times else None


def _tries_to_authenticate(scope: HTTPScope) -> bool:
    """Whether a request for an operation that is not public has credentials."""
    if isinstance(access_of(scope["route_handler"]), Public):
        return False
    return any(name == b"authorization" for name, _ in scope["headers"])


def _subscriber(address: str) -> str:
    """The part of an address that its subscriber cannot choose."""
    parsed = parsed_address(address.partition("%")[0])
    if parsed is None:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    kept = int(parsed) >> SUBSCRIBER_PREFIX << SUBSCRIBER_PREFIX
    return f"{IPv6Address(kept)}/{SUBSCRIBER_PREFIX}"
