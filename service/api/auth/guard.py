"""Admit a routed request: authenticate its caller, and check whether the caller may make it now.

This is the first step after routing, before a body is read, before a request is forwarded to
another worker, and before the handler is called. A request that leads to no operation (404, 405)
does not get here, since the document that lists all paths and methods is public.
"""

from functools import partial

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from service.api.auth.authentication import Authentication
from service.api.auth.csrf import BrowserCheck
from service.api.auth.rate_limits import Rates
from service.api.auth.throttle import AnonymousThrottle
from service.api.http.context import context_of
from service.api.http.permissions import ACCESS, Access, Public, check_access
from service.api.http.request import refuse_unhonored
from service.model.core.access import EVERYBODY


class RequestGuard(msgspec.Struct, frozen=True):
    """Litestar middleware that passes a request on only if its caller may make it now."""

    authentication: Authentication
    browsers: BrowserCheck
    rates: Rates
    turns: AnonymousThrottle

    def __call__(self, app: ASGIApp) -> ASGIApp:
        """Wrap the application, so that each request is checked."""

        async def entering(scope: Scope, receive: Receive, send: Send) -> None:
            options = scope["route_handler"].opt
            access: Access = options[ACCESS]  # set for every operation, as checked at startup
            context = context_of(scope)
            context.operation = options.get("operation")
            context.cluster = scope["path_params"].get("cluster", "")
            arrival = context.arrival
            if arrival is None:  # the worker that received the request has authenticated it
                check_access(access, context.principal, scope["path_params"])
                await app(scope, receive, send)
                return
            assert scope["type"] == ScopeType.HTTP
            principal = None
            if not isinstance(access, Public):
                principal = await self.authentication.principal(scope["headers"])
            if principal is EVERYBODY and not arrival.seemed_open:
                # No token is required now, even if one was required a moment ago.
                self.browsers.check(scope)
            context.principal = principal
            if principal is None and not arrival.has_turn:
                unknown = partial(_pass_unknown, app, self.rates, access)
                await self.turns.give(unknown, scope, receive, send)
                return
            if principal is None or self.rates.bound_principals:
                self.rates.count(scope, context)
            if principal is None or not principal.is_admin:
                check_access(access, principal, scope["path_params"])
            refuse_unhonored(scope)
            await app(scope, receive, send)

        return entering


async def _pass_unknown(
    app: ASGIApp, rates: Rates, access: Access, scope: Scope, receive: Receive, send: Send
) -> None:
    assert scope["type"] == ScopeType.HTTP
    rates.count(scope, context_of(scope))
    check_access(access, None, scope["path_params"])
    refuse_unhonored(scope)
    await app(scope, receive, send)
