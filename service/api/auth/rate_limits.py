"""Limit each principal's rates of requests and writes, and each address's failed authentications.

A request is counted after routing, since requests for public operations are not counted. It is
counted by the worker that receives it, and not again by one to which it is forwarded.
"""

import logging
from collections.abc import Callable
from ipaddress import IPv6Address
from typing import NamedTuple

from litestar.enums import HttpMethod
from litestar.types import HTTPScope

from service.api.auth.forwarded_for import parsed_address
from service.api.http.context import RequestContext
from service.api.http.permissions import Public, access_of
from service.api.http.problems import TooManyFailures, TooManyRequests
from service.settings import Settings

KEYS_MAX = 10_000
"""How many principals and addresses are counted separately; the idlest are dropped first."""
TOLD_SECONDS = 60.0
"""The minimum time between two log lines about failures of one address."""
SUBSCRIBER_PREFIX = 64
"""The bits of an IPv6 address that identify a subscriber, who can choose the rest freely."""

_READS = frozenset({HttpMethod.GET, HttpMethod.HEAD, HttpMethod.OPTIONS})
_log = logging.getLogger(__name__)


class Limit(NamedTuple):
    """A rate limit: bursts of at most `amount`, recovering over `seconds`."""

    what: str
    amount: int
    seconds: int


class Buckets:
    """Leaky buckets: a limit of 10 in 10 s admits ten at once, then one a second.

    Each key takes one number; beyond KEYS_MAX the oldest keys are dropped.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._empty_at: dict[str, float] = {}
        """The time at which each bucket will be empty, most recently hit last."""

    def take(self, key: str, amount: int, seconds: float) -> bool:
        """Add one to a bucket of `amount` that empties in `seconds`; return whether it fits."""
        now = self._monotonic()
        empty_at = max(now, self._empty_at.pop(key, now))
        filled = empty_at + seconds / amount
        fits = filled - now <= seconds + _ROUNDING
        self._empty_at[key] = filled if fits else empty_at
        if len(self._empty_at) > KEYS_MAX:
            del self._empty_at[next(iter(self._empty_at))]
        return fits

    def seconds_until_it_fits(self, key: str, amount: int, seconds: float) -> float:
        """Return the seconds until the bucket has room for one more."""
        full_for = self._empty_at.get(key, 0.0) - self._monotonic()
        return max(0.0, full_for + seconds / amount - seconds)


_ROUNDING = 1e-6


class Rates:
    """The rates of requests to one worker; refuses callers that exceed them."""

    def __init__(self, settings: Settings, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._buckets = Buckets(monotonic)
        burst = settings.failed_authentications_burst
        self._failures = Limit("failures", burst, burst * settings.failed_authentication_seconds)
        self._requests = _a_second(settings.requests_per_second, "requests")
        self._writes = _a_second(settings.writes_per_second, "writes")
        self.bound_principals = bool(self._requests or self._writes)
        """Whether authenticated principals have limits at all."""
        self._told: dict[str, float] = {}
        """The earliest time of the next log line about an address's failures, by address."""

    def count(self, scope: HTTPScope, context: RequestContext) -> None:
        """Count a routed request, whose caller may be unknown.

        Raises:
            TooManyFailures: the caller is unknown, and its address has failed too often. Known
                callers at that address pass, since many may share an address.
            TooManyRequests: the principal exceeds a rate.
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
        """Return how many whole seconds (at least one) the caller should wait before retrying."""
        name = f"{limit.what}/{key}"
        return int(self._buckets.seconds_until_it_fits(name, limit.amount, limit.seconds)) + 1

    def _tell(self, source: str) -> None:
        """Log that an address is guessing tokens, at most once per TOLD_SECONDS."""
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
    """Return whether a request has credentials, and is for an operation that is not public."""
    if isinstance(access_of(scope["route_handler"]), Public):
        return False
    return any(name == b"authorization" for name, _ in scope["headers"])


def _subscriber(address: str) -> str:
    """Return the part of an address that its subscriber cannot choose."""
    parsed = parsed_address(address.partition("%")[0])
    if parsed is None:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    kept = int(parsed) >> SUBSCRIBER_PREFIX << SUBSCRIBER_PREFIX
    return f"{IPv6Address(kept)}/{SUBSCRIBER_PREFIX}"
