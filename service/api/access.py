"""Who may do what: each operation declares it, and a request is checked against the one that it was routed to.

The check is the first thing after routing: before a body is read, before a request is handed to another
worker, and before the short way of `direct.py`. What leads nowhere (404, 405) asks for nothing, since
the document that lists all paths and methods is public.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

import msgspec
from litestar.exceptions import ImproperlyConfiguredException
from litestar.handlers import BaseRouteHandler
from litestar.routes import ASGIRoute, BaseRoute, HTTPRoute
from litestar.types import ASGIApp, Receive, Scope, Send

from service.api.problems import Unauthorized

Verb = Literal["read", "place", "edit", "observe", "bind", "evict", "configure"]
"""What a caller may do: `place` decides without stating facts, `edit` changes what is still to be placed,
`observe` states facts (nodes, namespaces), `configure` changes a cluster's settings."""

_ACCESS = "access"
_PRINCIPAL = "moorage.principal"


class Public(msgspec.Struct, frozen=True):
    """Anybody may, without credentials."""


class Cluster(msgspec.Struct, frozen=True):
    """Whoever may do this in the cluster that the path names; in any cluster, where it names none."""

    verb: Verb


class Namespaced(msgspec.Struct, frozen=True):
    """Whoever may do this in the namespace that the path names; in all of the cluster, where it names none."""

    verb: Verb


class Admin(msgspec.Struct, frozen=True):
    """Whoever may do everything on this server."""


Access = Public | Cluster | Namespaced | Admin


class Principal(msgspec.Struct, frozen=True):
    """Who makes a request."""

    name: str


EVERYBODY = Principal("everybody")
"""Whoever reaches a server without a token."""
BOOTSTRAP = Principal("bootstrap")
"""Who has the server's own token."""


def declared(access: Access) -> dict[str, Any]:
    """The `opt` of a Litestar handler that declares who may call it."""
    return {_ACCESS: access}


def access_of(handler: BaseRouteHandler) -> Access:
    """What a handler declares.

    Raises:
        ImproperlyConfiguredException: it declares nothing.
    """
    access = handler.opt.get(_ACCESS)
    if not isinstance(access, Access):
        raise ImproperlyConfiguredException(f"{handler} does not say who may call it.")
    return access


def require_declarations(routes: Iterable[BaseRoute]) -> None:
    """See that everything that is served says who may call it.

    Raises:
        ImproperlyConfiguredException: something does not.
    """
    for route in routes:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                access_of(handler)
        elif isinstance(route, ASGIRoute):
            access_of(route.route_handler)
        else:
            raise ImproperlyConfiguredException(
                f"{route.path} is served by something that is not checked."
            )


def identify(scope: Scope, principal: Principal | None) -> None:
    """Say who makes a request; None: nobody who is known."""
    cast("dict[str, Any]", scope)[_PRINCIPAL] = principal


def principal_of(scope: Scope) -> Principal | None:
    """Who makes a request. Nobody is known where nothing was said of it."""
    principal = cast("Mapping[str, Any]", scope).get(_PRINCIPAL)
    return principal if isinstance(principal, Principal) else None


def check_access(app: ASGIApp) -> ASGIApp:
    """Litestar middleware, the outermost: goes on only if the caller may call what it was routed to."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        _check(access_of(scope["route_handler"]), principal_of(scope))
        await app(scope, receive, send)

    return checked


def _check(access: Access, principal: Principal | None) -> None:
    if principal is None and not isinstance(access, Public):
        raise Unauthorized("Send `Authorization: Bearer <token>` with the server's token.")
