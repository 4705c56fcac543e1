"""Who may do what: each operation declares it, and a request is checked against the one that it was routed to.

The check is the first thing after routing: before a body is read, before a request is handed to another
worker, and before the short way of `direct.py`. What leads nowhere (404, 405) asks for nothing, since
the document that lists all paths and methods is public.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec
from litestar.exceptions import ImproperlyConfiguredException
from litestar.handlers import BaseRouteHandler
from litestar.routes import ASGIRoute, BaseRoute, HTTPRoute
from litestar.types import ASGIApp, Receive, Scope, Send

from service.api.problems import Unauthorized
from service.model.errors import Forbidden
from service.model.principals import Principal, Verb

_ACCESS = "access"
_PRINCIPAL = "moorage.principal"
_AUTHENTICATE = "moorage.authenticate"

Authenticate = Callable[[Scope], Awaitable[Principal | None]]


class Public(msgspec.Struct, frozen=True):
    """Anybody may, without credentials."""


class Cluster(msgspec.Struct, frozen=True):
    """Whoever may do this in all of the cluster that the path names; in some cluster, where it names none."""

    verb: Verb


class Namespaced(msgspec.Struct, frozen=True):
    """Whoever may do this in the namespace that the path names.

    Where it names none, whoever may do it in some namespace: the handler then looks at each object's.
    """

    verb: Verb
    or_verb: Verb | None = None
    """Another verb that lets in as well, where it is for the handler to tell the two apart."""


class Admin(msgspec.Struct, frozen=True):
    """Whoever may do everything on this server."""


Access = Public | Cluster | Namespaced | Admin


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


def identify_by(scope: Scope, authenticate: Authenticate) -> None:
    """Say how it is found out who makes a request. Nobody asks where that does not matter.

    What is said must not have the scope, which would have itself then, and stay until the garbage collector looks.
    """
    cast("dict[str, Any]", scope)[_AUTHENTICATE] = authenticate


def principal_of(scope: Scope) -> Principal | None:
    """Who makes a request. Nobody is known where nobody had to ask."""
    principal = cast("Mapping[str, Any]", scope).get(_PRINCIPAL)
    return principal if isinstance(principal, Principal) else None


def authenticate(app: ASGIApp) -> ASGIApp:
    """Litestar middleware, the outermost: finds out who calls what is not public."""

    async def authenticated(scope: Scope, receive: Receive, send: Send) -> None:
        if _AUTHENTICATE in scope and access_of(scope["route_handler"]) != Public():
            identify(scope, await cast("dict[str, Any]", scope)[_AUTHENTICATE](scope))
        await app(scope, receive, send)

    return authenticated


def check_access(app: ASGIApp) -> ASGIApp:
    """Litestar middleware: goes on only if the caller may call what it was routed to."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        access = access_of(scope["route_handler"])
        if not isinstance(access, Public):
            _check(access, scope)
        await app(scope, receive, send)

    return checked


def caller_of(scope: Scope) -> Principal:
    """Who makes a request that was let in.

    Raises:
        Unauthorized: nobody is known, as in requests to what is public.
    """
    principal = principal_of(scope)
    if principal is None:
        raise Unauthorized("Send `Authorization: Bearer <token>` with a token of this server.")
    return principal


def require(principal: Principal, verb: Verb, cluster: str, namespace: str | None) -> None:
    """See that somebody may do this in a namespace of a cluster; None: in all of them, and to what is in none.

    Raises:
        Forbidden: they may not.
    """
    require_any(principal, (verb,), cluster, namespace)


def require_any(
    principal: Principal, verbs: Sequence[Verb], cluster: str, namespace: str | None
) -> None:
    """As `require`, for somebody who may do one of several things.

    Raises:
        Forbidden: they may do none of them.
    """
    if not any(principal.may(verb, cluster, namespace) for verb in verbs):
        raise Forbidden(_told(principal, verbs, cluster, namespace))


def _check(access: Cluster | Namespaced | Admin, scope: Scope) -> None:
    principal, path = caller_of(scope), scope["path_params"]
    if isinstance(access, Admin):
        if not principal.is_admin:
            raise Forbidden(f"{principal.name} is not an admin of this server.")
        return
    verbs = [access.verb]
    if isinstance(access, Namespaced) and access.or_verb is not None:
        verbs.append(access.or_verb)
    cluster, namespace = path.get("cluster"), path.get("namespace")
    if cluster is None or (namespace is None and isinstance(access, Namespaced)):
        allowed = any(principal.may_somewhere(each, cluster) for each in verbs)
    else:
        allowed = any(principal.may(each, cluster, namespace) for each in verbs)
    if not allowed:
        raise Forbidden(_told(principal, verbs, cluster, namespace))


def _told(
    principal: Principal, verbs: Sequence[Verb], cluster: str | None, namespace: str | None
) -> str:
    where = "any cluster" if cluster is None else f"the cluster {cluster}"
    within = "" if namespace is None else f" in the namespace {namespace}"
    return f"{principal.name} may not {' or '.join(verbs)}{within} on {where}."
