"""Lets a routed request in: finds out who makes it, and whether its caller may make it now.

This is the first thing after routing. It comes before a body is read, before a request is forwarded
to another worker, and before `fast_path.py`. A request that leads to no operation (404, 405) does
not come here, since the document that lists all paths and methods is public.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from service.api.bodies.preconditions import refuse_unhonored
from service.api.openapi.rights_each_operation_needs import ACCESS, Access, Public, check_access
from service.api.security.anonymous_concurrency import AnonymousConcurrency
from service.api.security.authentication import Authentication, identify, principal_of
from service.api.security.cross_origin_checks import BrowserCheck
from service.api.security.rate_limits import Rates
from service.model.core.access import EVERYBODY

ARRIVAL = "moorage.arrival"
"""The key under which the edge stores an `Arrival` in the scope of a request."""


class Entrance(msgspec.Struct, frozen=True):
    """What checks the requests that arrive at one worker."""

    authentication: Authentication
    browsers: BrowserCheck
    rates: Rates
    turns: AnonymousConcurrency


class Arrival(msgspec.Struct, frozen=True):
    """What was done for a request before it was routed, by the worker where it arrived.

    It is missing in a request that another worker forwarded. That one has found out who makes the
    request, and has counted it.
    """

    entrance: Entrance
    has_turn: bool
    """Whether the request has waited for its turn already."""
    seemed_open: bool
    """Whether no token seemed to be asked for, so that it was checked that no web page made the request."""


def enter(app: ASGIApp) -> ASGIApp:
    """Litestar middleware that passes a request on only if its caller may make it now."""

    async def entering(scope: Scope, receive: Receive, send: Send) -> None:
        access: Access = scope["route_handler"].opt[ACCESS]  # each has one, or no server starts
        arrival = cast("Mapping[str, Any]", scope).get(ARRIVAL)
        if not isinstance(arrival, Arrival):
            check_access(access, principal_of(scope), scope["path_params"])
            await app(scope, receive, send)
            return
        assert scope["type"] == ScopeType.HTTP
        principal = None
        if not isinstance(access, Public):
            principal = await arrival.entrance.authentication.principal(scope["headers"])
        if principal is EVERYBODY and not arrival.seemed_open:
            # No token is asked for now, even if one was a moment ago.
            arrival.entrance.browsers.check(scope)
        identify(scope, principal)
        if principal is None and not arrival.has_turn:
            unknown = partial(_pass_unknown, app, arrival.entrance.rates, access)
            await arrival.entrance.turns.give(unknown, scope, receive, send)
            return
        rates = arrival.entrance.rates
        if principal is None or rates.bound_principals:
            rates.count(scope, principal)
        if principal is None or not principal.is_admin:
            check_access(access, principal, scope["path_params"])
        refuse_unhonored(scope)
        await app(scope, receive, send)

    return entering


async def _pass_unknown(
    app: ASGIApp, rates: Rates, access: Access, scope: Scope, receive: Receive, send: Send
) -> None:
    assert scope["type"] == ScopeType.HTTP
    rates.count(scope, None)
    check_access(access, None, scope["path_params"])
    refuse_unhonored(scope)
    await app(scope, receive, send)
