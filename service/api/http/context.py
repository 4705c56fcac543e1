"""The state of one request, as one typed object in the ASGI scope."""

import re
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import cached_property
from typing import Any, Protocol, cast

import msgspec
from litestar import Request
from litestar.connection.base import empty_receive, empty_send
from litestar.types import Receive, Scope, Send

from service.api.http.byte_budget import UNCOUNTED, ByteReservation
from service.api.http.operation import Operation
from service.api.http.permissions import NOT_KNOWN
from service.api.http.problems import Unauthorized
from service.model.core.access import Principal
from service.model.log.audit_chain import AuditedCaller
from service.model.log.lease import HeldLeases
from service.scheduler.protocol.callers import Caller
from service.scheduler.protocol.intents import AdvanceGroup
from service.scheduler.protocol.split_groups import ReservationTerms

CONTEXT = "moorage.context"
"""The key of a request's context in its ASGI scope."""
REQUEST_ID_HEADER = b"x-request-id"
AUDITED_CHARACTERS_MAX = 200
"""The maximum number of characters of a name or address stored in the audit log."""

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._~:/+=@-]{1,128}")
_TRACE_PARENT = re.compile(
    rb"(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?"
)
"""The `traceparent` header of W3C Trace Context; version ff and all-zero ids are invalid."""
_CLUSTER = re.compile(r"/v1/clusters/([^/]{1,63})")


class Arrival(msgspec.Struct, frozen=True):
    """What the receiving worker did with a request before routing it."""

    has_turn: bool
    """Whether the request already waited for a slot among anonymous requests."""
    seemed_open: bool
    """Whether the server seemed to require no token, so that cross-origin requests were refused."""


class SubrequestTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The terms of a request that a server itself sends to one cluster; clients cannot set them."""

    leases: HeldLeases | None = None
    """The leases that must still be held when the request's changes are committed."""
    alone: bool = False
    """Whether each pod is placed on its own, regardless of its group."""
    reserving: ReservationTerms | None = None
    """If set, pods are only reserved, as part of a group that spans several clusters."""
    step: AdvanceGroup | None = None
    """If set, the request takes this step and does nothing else."""


class RefusalRecorder(Protocol):
    """Records refused requests for the audit log."""

    def note(self, context: "RequestContext", status: int, times: int = 1) -> None:
        """Note the status of an answer; statuses that are not refusals are ignored."""
        ...


class RequestContext(msgspec.Struct, eq=False, kw_only=True):
    """The state of one request; fields keep their defaults until they are known."""

    request_id: str = ""
    trace_id: str = ""
    """The trace id from the caller's `traceparent`, or an empty string."""
    idempotency_key: str | None = None
    path: str = ""
    address: str = ""
    """The address of the client, or an empty string if unknown, as over a Unix socket."""
    is_head: bool = False
    """Whether the client sent HEAD, which is handled as GET and answered without a body."""
    is_forwarded: bool = False
    """Whether another worker forwarded the request; such a request is never forwarded again."""
    arrival: Arrival | None = None
    """What the receiving worker did; None in forwarded requests and subrequests."""
    principal: Principal | None = None
    """The authenticated caller, or None if the caller is unknown or the operation is public."""
    operation: Operation | None = None
    """The operation that the request was routed to, or None before routing and for HTML pages."""
    cluster: str = ""
    """The cluster in the path of the routed request, or an empty string."""
    reservation: ByteReservation = msgspec.field(default_factory=lambda: UNCOUNTED)
    """The bytes of the process's budget that the request holds."""
    refusals: RefusalRecorder | None = None
    """The recorder of refusals within an answer, or None if no audit log is kept."""
    terms: SubrequestTerms | None = None
    """The terms of a request sent by a server, or None for requests from clients."""

    def require_principal(self) -> Principal:
        """Return the authenticated caller.

        Raises:
            Unauthorized: the caller is unknown, as in requests for public operations.
        """
        if self.principal is None:
            raise Unauthorized(NOT_KNOWN)
        return self.principal

    def caller(self) -> Caller:
        """Return the caller on whose behalf a request about a cluster is decided.

        Raises:
            Unauthorized: the caller is unknown.
        """
        return Caller(self.require_principal(), self.cluster)

    def audited_caller(self) -> AuditedCaller:
        """Return the caller as stored in the audit log; the name is empty if unknown."""
        return AuditedCaller(
            principal=_printable(self.principal.name) if self.principal else "",
            address=_printable(self.address),
            operation="other" if self.operation is None else self.operation.id,
            request_id=self.request_id,
        )

    def note_refused(self, status: int, times: int = 1) -> None:
        """Record refusals within an answer that succeeds as a whole, such as stream lines."""
        if times and self.refusals is not None:
            self.refusals.note(self, status, times)

    def log_fields(self) -> dict[str, str]:
        """Return the fields that identify the request in a log line."""
        cluster = _CLUSTER.match(self.path)
        return {
            "cluster": cluster[1] if cluster else "",
            "request_id": self.request_id,
            "trace_id": self.trace_id,
        }


_CURRENT: ContextVar[RequestContext | None] = ContextVar("request", default=None)


def begin(scope: Scope, context: RequestContext) -> None:
    """Attach a context to a request, and to the log lines of the running task."""
    fields = cast("dict[str, Any]", scope)
    fields[CONTEXT], context.path = context, fields["path"]
    if client := fields.get("client"):
        context.address = str(client[0])
    _CURRENT.set(context)


def context_of(scope: Scope) -> RequestContext:
    """Return the context of a request that has begun."""
    context: RequestContext = cast("Mapping[str, Any]", scope)[CONTEXT]
    return context


class ApiRequest(Request[Any, Any, Any]):
    """A routed request and its context."""

    def __init__(
        self, scope: Scope, receive: Receive = empty_receive, send: Send = empty_send
    ) -> None:
        super().__init__(scope, receive, send)
        self.context = context_of(scope)

    @cached_property
    def audited_caller(self) -> AuditedCaller:
        """The caller as stored in the audit log; reads do without it."""
        return self.context.audited_caller()


def current_request() -> RequestContext | None:
    """Return the context of the request that the running task serves, or None."""
    return _CURRENT.get()


def context_from(
    headers: Iterable[tuple[bytes, bytes]], new_id: Callable[[], str]
) -> RequestContext:
    """Build a request's context from its headers: its ids and its idempotency key.

    The request id is the client's own id, or else its trace id, or else a new id.
    """
    given = trace = b""
    key: str | None = None
    for name, value in headers:
        if name == REQUEST_ID_HEADER:
            if not given and _REQUEST_ID.fullmatch(value):
                given = value
        elif name == b"traceparent" and (match := _TRACE_PARENT.fullmatch(value)):
            trace = match[1]
        elif name == b"idempotency-key" and key is None:
            key = value.decode("latin-1")
    return RequestContext(
        request_id=(given or trace).decode() or new_id(),
        trace_id=trace.decode(),
        idempotency_key=key,
    )


def _printable(text: str) -> str:
    if len(text) <= AUDITED_CHARACTERS_MAX and text.isprintable():
        return text
    return "".join(c if c.isprintable() else "\ufffd" for c in text[:AUDITED_CHARACTERS_MAX])
