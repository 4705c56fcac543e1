"""Each operation declares who may call it, and each request is checked against its operation.

The check is the first thing after routing: it comes before a body is read, before a request is
forwarded to another worker, and before `fast_path.py`. A request that leads to no operation (404,
405) is not checked, since the document that lists all paths and methods is public.
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
    """Anybody may call the operation, without credentials."""


class Cluster(msgspec.Struct, frozen=True):
    """The caller must have the verb in all of the path's cluster, or in some cluster if it names none."""

    verb: Verb


class Namespaced(msgspec.Struct, frozen=True):
    """The caller must have the verb in the namespace that the path names.

    If the path names none, the verb in some namespace is enough here, and the handler then checks
    the namespace of each object.
    """

    verb: Verb
    or_verb: Verb | None = None
    """Another verb that is enough as well; the handler then checks which of the two is needed."""


class Admin(msgspec.Struct, frozen=True):
    """The caller must be an admin, who may do everything on this server."""


Access = Public | Cluster | Namespaced | Admin


def declared(access: Access) -> dict[str, Any]:
    """The `opt` of a Litestar handler that declares who may call it."""
    return {_ACCESS: access}


def access_of(handler: BaseRouteHandler) -> Access:
    """The access that a handler declares.

    Raises:
        ImproperlyConfiguredException: the handler declares none.
    """
    access = handler.opt.get(_ACCESS)
    if not isinstance(access, Access):
        raise ImproperlyConfiguredException(f"{handler} does not say who may call it.")
    return access


def require_declarations(routes: Iterable[BaseRoute]) -> None:
    """Check that every route declares who may call it.

    Raises:
        ImproperlyConfiguredException: a route does not.
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
    """Store in the scope who makes the request; None means that the caller is not known."""
    cast("dict[str, Any]", scope)[_PRINCIPAL] = principal


def identify_by(scope: Scope, authenticate: Authenticate) -> None:
    """Store in the scope a function that finds out who makes the request; public requests never call it.

    The function must not refer to the scope: the reference cycle would keep the scope in memory
    until the garbage collector runs.
    """
    cast("dict[str, Any]", scope)[_AUTHENTICATE] = authenticate


def principal_of(scope: Scope) -> Principal | None:
    """The principal that makes a request; None if it is unknown or, as in public requests, was not asked."""
    principal = cast("Mapping[str, Any]", scope).get(_PRINCIPAL)
    return principal if isinstance(principal, Principal) else None


def authenticate(app: ASGIApp) -> ASGIApp:
    """Litestar middleware that finds out who makes a request, unless its operation is public."""

    async def authenticated(scope: Scope, receive: Receive, send: Send) -> None:
        if _AUTHENTICATE in scope and access_of(scope["route_handler"]) != Public():
            identify(scope, await cast("dict[str, Any]", scope)[_AUTHENTICATE](scope))
        await app(scope, receive, send)

    return authenticated


def check_access(app: ASGIApp) -> ASGIApp:
    """Litestar middleware that passes a request on only if its caller may call its operation."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        access = access_of(scope["route_handler"])
        if not isinstance(access, Public):
            _check(access, scope)
        await app(scope, receive, send)

    return checked


def caller_of(scope: Scope) -> Principal:
    """The principal that makes a request which passed the check.

    Raises:
        Unauthorized: the principal is not known, as in requests for public operations.
    """
    principal = principal_of(scope)
    if principal is None:
        raise Unauthorized("Send `Authorization: Bearer <token>` with a token of this server.")
    return principal


def require(principal: Principal, verb: Verb, cluster: str, namespace: str | None) -> None:
    """Check that a principal has a verb in a namespace of a cluster.

    If `namespace` is None, it must have the verb in all of the cluster, also outside of namespaces.

    Raises:
        Forbidden: it does not have the verb there.
    """
    require_any(principal, (verb,), cluster, namespace)


def require_any(
    principal: Principal, verbs: Sequence[Verb], cluster: str, namespace: str | None
) -> None:
    """Check as `require` does that a principal has at least one of several verbs.

    Raises:
        Forbidden: it has none of them there.
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
