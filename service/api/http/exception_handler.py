"""Answer exceptions with problem documents that name no object the caller may not read."""

import logging
from typing import Any

from litestar import Request, Response
from litestar.exceptions import (
    HTTPException,
    LitestarException,
    MethodNotAllowedException,
    NotFoundException,
)
from litestar.types import Message, Send

from service.api.http.context import RequestContext, context_of
from service.api.http.problems import (
    PROBLEM_JSON,
    MalformedRequest,
    MethodNotAllowed,
    NoSuchPath,
    encode_problem,
)
from service.model.core.errors import MoorageError, ObjectUnreadable
from service.model.registry.kinds import sees

_log = logging.getLogger(__name__)


def answer_error(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Return a problem document for any exception; Litestar's exception handler."""
    context = context_of(request.scope)
    known = redact_error(known_error(error), context)
    status, body, headers = encode_problem(known, request.scope["path"], context.request_id)
    if isinstance(error, HTTPException) and error.headers:
        headers |= error.headers
    if "allow" in headers:
        headers["allow"] = _with_head(headers["allow"])
    return Response(body, status_code=status, headers=headers, media_type=PROBLEM_JSON)


async def send_problem(
    send: Send, error: MoorageError, instance: str, context: RequestContext
) -> None:
    """Send a problem document without Litestar, redacted for the caller."""
    seen = redact_error(error, context)
    status, body, headers = encode_problem(seen, instance, context.request_id)
    fields = {"content-type": PROBLEM_JSON, "content-length": str(len(body)), **headers}
    encoded = [(name.encode(), value.encode()) for name, value in fields.items()]
    start: Message = {"type": "http.response.start", "status": status, "headers": encoded}
    await send(start)
    await send({"type": "http.response.body", "body": body, "more_body": False})


def redact_error(error: MoorageError, context: RequestContext) -> MoorageError:
    """Return an error, without the object's name if the caller may not read the object."""
    if not isinstance(error, ObjectUnreadable) or _may_read(error, context):
        return error
    return error.unnamed()


def _may_read(error: ObjectUnreadable, context: RequestContext) -> bool:
    caller, cluster = context.principal, context.cluster
    if caller is None or not cluster:
        return False
    visible = caller.namespaces("read", cluster)
    return caller.may_somewhere("read", cluster) and sees(
        visible, error.kind, error.namespace, error.name
    )


def _with_head(allowed: str) -> str:
    """Add HEAD wherever GET is allowed, since the edge handles HEAD as a GET without a body."""
    methods = {*allowed.split(", ")}
    return ", ".join(sorted(methods | {"HEAD"} if "GET" in methods else methods))


def known_error(error: Exception) -> MoorageError:
    """Return the error to answer with; log an unexpected exception and hide its details."""
    match error:
        case MoorageError():
            return error
        case MethodNotAllowedException():
            return MethodNotAllowed("The path does not take this method.")
        case NotFoundException():
            return NoSuchPath("Nothing is served at this path.")
        case HTTPException() if error.status_code < 500:  # noqa: PLR2004
            return MalformedRequest(error.detail)
        case LitestarException(__cause__=Exception() as cause):  # raised as an answer was made
            return known_error(cause)
        case ExceptionGroup(exceptions=(only,)):
            return known_error(only)
        case _:
            _log.error("A request failed unexpectedly.", exc_info=error)
            return MoorageError("An unexpected fault; the server's log has the details.")
