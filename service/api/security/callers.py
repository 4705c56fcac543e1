"""Knows of a request who makes it, and describes that caller for the audit."""

import re
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from ipaddress import IPv6Address, ip_address
from typing import Any, NamedTuple, cast

from litestar.types import Scope

from service.api.bodies.request_reading import AnyRequest
from service.api.openapi.operation_declaration import Operation
from service.api.openapi.rights_each_operation_needs import NOT_KNOWN
from service.api.problems import REQUEST_ID, Unauthorized
from service.model.log.audit import AuditedCaller
from service.model.principals import Principal
from service.settings import IPAddress

REQUEST_ID_HEADER = b"x-request-id"
TOLD_MAX = 200
"""How many characters of a name or an address the audit keeps."""

_PRINCIPAL = "moorage.principal"
_GIVEN = re.compile(rb"[A-Za-z0-9._~:/+=@-]{1,128}")
_TRACE = re.compile(
    rb"(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?"
)
"""The header `traceparent` of W3C's Trace Context; the version ff, and ids of zeros, are invalid."""
_CLUSTER = re.compile(r"/v1/clusters/([^/]{1,63})")


class LoggedRequest(NamedTuple):
    """What the log tells of the request that the running task serves."""

    request_id: str
    trace_id: str
    """The id of the trace that the caller's `traceparent` names; empty if it names none."""
    path: str

    def fields(self) -> dict[str, str]:
        """The fields that tell of it in a line of the log."""
        cluster = _CLUSTER.match(self.path)
        return {
            "cluster": cluster[1] if cluster else "",
            "request_id": self.request_id,
            "trace_id": self.trace_id,
        }


_CURRENT: ContextVar[LoggedRequest | None] = ContextVar("request", default=None)


def current_request() -> LoggedRequest | None:
    """What the log tells of the request that the running task serves; None if it serves none."""
    return _CURRENT.get()


def identify(scope: Scope, principal: Principal | None) -> None:
    """Store in the scope who makes the request; None means that the caller is not known."""
    cast("dict[str, Any]", scope)[_PRINCIPAL] = principal


def principal_of(scope: Scope) -> Principal | None:
    """The principal that makes a request; None if it is unknown or, as in public requests, was not asked."""
    principal = cast("Mapping[str, Any]", scope).get(_PRINCIPAL)
    return principal if isinstance(principal, Principal) else None


def caller_of(scope: Scope) -> Principal:
    """The principal that makes a request which was let in.

    Raises:
        Unauthorized: the principal is not known, as in requests for public operations.
    """
    principal = principal_of(scope)
    if principal is None:
        raise Unauthorized(NOT_KNOWN)
    return principal


def told_caller(request: AnyRequest) -> AuditedCaller:
    """The caller of a routed request, as the audit keeps it."""
    return caller_in(request.scope)


def caller_in(scope: Scope) -> AuditedCaller:
    """The caller of the request in a scope, as the audit keeps it; its name is empty if not known."""
    principal = principal_of(scope)
    return AuditedCaller(
        principal=_printable(principal.name) if principal else "",
        address=_printable(address_of(scope)),
        operation=operation_id_of(scope),
        request_id=cast("Mapping[str, Any]", scope).get(REQUEST_ID, ""),
    )


def address_of(scope: Scope) -> str:
    """The address that a request came from; empty if it is not known, as over a Unix socket."""
    client = cast("Mapping[str, Any]", scope).get("client")
    return str(client[0]) if client else ""


def parsed_address(text: str) -> IPAddress | None:
    """Parse an address; None if the text is none. An IPv4 address within IPv6 becomes plain IPv4."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def operation_id_of(scope: Scope) -> str:
    """The operation's id; `other` for requests without one (unknown paths, pages for people)."""
    handler = cast("Mapping[str, Any]", scope).get("route_handler")
    operation = handler.opt.get("operation") if handler is not None else None
    return operation.id if isinstance(operation, Operation) else "other"


def name_request(scope: Scope, request_id: str, trace_id: str = "") -> None:
    """Give a request its id, and have the log tell it in all that this task writes from now on."""
    cast("dict[str, Any]", scope)[REQUEST_ID] = request_id
    _CURRENT.set(LoggedRequest(request_id, trace_id, cast("Mapping[str, Any]", scope)["path"]))


def ids_in(headers: Iterable[tuple[bytes, bytes]], new_id: Callable[[], str]) -> tuple[str, str]:
    """The ids of a request and of its trace; the latter is empty if the client named none.

    The request's id is the one that the client gave it, else that of its trace, else a new one.
    """
    given = trace = b""
    for name, value in headers:
        if name == REQUEST_ID_HEADER:
            if not given and _GIVEN.fullmatch(value):
                given = value
        elif name == b"traceparent" and (found := _TRACE.fullmatch(value)):
            trace = found[1]
    return (given or trace).decode() or new_id(), trace.decode()


def _printable(text: str) -> str:
    if len(text) <= TOLD_MAX and text.isprintable():
        return text
    return "".join(c if c.isprintable() else "\ufffd" for c in text[:TOLD_MAX])
