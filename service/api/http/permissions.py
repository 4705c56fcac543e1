"""Access control: each operation declares its required permissions, and requests are checked."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from litestar.exceptions import ImproperlyConfiguredException
from litestar.handlers import BaseRouteHandler
from litestar.routes import ASGIRoute, BaseRoute, HTTPRoute

from service.api.http.problems import Unauthorized
from service.model.core.access import Principal, Verb
from service.model.core.errors import Forbidden
from service.scheduler.protocol.callers import Caller

ACCESS = "access"
"""The key in a handler's `opt` for its declared access."""

NOT_KNOWN = "Send `Authorization: Bearer <token>` with a token of this server."
"""The error message for a caller without credentials."""


class Public(msgspec.Struct, frozen=True):
    """Allows anyone to call the operation, without credentials."""


class Cluster(msgspec.Struct, frozen=True):
    """Requires the verb on the whole cluster in the path.

    If the path names no cluster, having the verb on any cluster suffices.
    """

    verb: Verb


class Namespaced(msgspec.Struct, frozen=True):
    """Requires the verb in the namespace in the path.

    If the path names none, having the verb in any namespace suffices for this check, and the
    handler checks the namespace of each object.
    """

    verb: Verb
    or_verb: Verb | None = None
    """An alternative verb; the handler checks which of the two is needed."""


class Admin(msgspec.Struct, frozen=True):
    """Requires the caller to be an admin."""


Access = Public | Cluster | Namespaced | Admin


def declared(access: Access) -> dict[str, Any]:
    """Build the `opt` of a Litestar handler from its required access."""
    return {ACCESS: access}


def access_of(handler: BaseRouteHandler) -> Access:
    """Return the access that a handler declares.

    Raises:
        ImproperlyConfiguredException: the handler declares none.
    """
    access = handler.opt.get(ACCESS)
    if not isinstance(access, Access):
        raise ImproperlyConfiguredException(f"{handler} does not say who may call it.")
    return access


def require_declarations(routes: Iterable[BaseRoute]) -> None:
    """Check that every route declares its access.

    Raises:
        ImproperlyConfiguredException: a route declares none.
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


def require(principal: Principal, verb: Verb, cluster: str, namespace: str | None) -> None:
    """Check that a principal has a verb in a namespace of a cluster.

    If `namespace` is None, the principal must have the verb on the whole cluster, including objects
    outside namespaces.

    Raises:
        Forbidden: the principal does not have the verb there.
    """
    require_any(principal, (verb,), cluster, namespace)


def require_any(
    principal: Principal, verbs: Sequence[Verb], cluster: str, namespace: str | None
) -> None:
    """Check that a principal has at least one of several verbs, as in `require`.

    Raises:
        Forbidden: the principal has none of them there.
    """
    if not any(principal.may(verb, cluster, namespace) for verb in verbs):
        raise Forbidden(_told(principal, verbs, cluster, namespace))


def require_for(caller: Caller, verbs: Sequence[Verb], namespace: str | None, place: str) -> None:
    """Check that a caller has one of the verbs that a part of a body requires, as in `require_any`.

    Raises:
        Forbidden: the caller has none of them there; the error names the `place` in the body.
    """
    try:
        require_any(caller.principal, verbs, caller.cluster, namespace)
    except Forbidden as forbidden:
        raise forbidden.under(place) from None


def check_access(access: Access, principal: Principal | None, path: Mapping[str, Any]) -> None:
    """Check that a caller may call an operation; `path` contains the request's path parameters.

    Raises:
        Unauthorized: the caller is unknown.
        Forbidden: the caller may not call the operation there.
    """
    if isinstance(access, Public):
        return
    if principal is None:
        raise Unauthorized(NOT_KNOWN)
    if isinstance(access, Admin):
        if not principal.is_admin:
            raise Forbidden(f"{principal.name} is not an admin of this server.")
        return
    verbs = [access.verb]
    if isinstance(access, Namespaced) and access.or_verb is not None:
        verbs.append(access.or_verb)
    cluster, namespace = path.get("cluster"), path.get("namespace")
    if cluster is None or (namespace is None and isinstance(access, Namespaced)):
        held = [verb for verb in verbs if principal.may_somewhere(verb, cluster)]
    else:
        held = [verb for verb in verbs if principal.may(verb, cluster, namespace)]
    if not held:
        raise Forbidden(_told(principal, verbs, cluster, namespace))


def _told(
    principal: Principal, verbs: Sequence[Verb], cluster: str | None, namespace: str | None
) -> str:
    where = "any cluster" if cluster is None else f"the cluster {cluster}"
    within = "" if namespace is None else f" in the namespace {namespace}"
    return f"{principal.name} may not {' or '.join(verbs)}{within} on {where}."
