"""Records the first answer to an idempotency key with its commit, and gives it again later."""

import re
from collections.abc import Callable
from hashlib import sha256
from typing import Annotated, NamedTuple, TypeVar

import msgspec
from litestar import Response

from service.api.bodies.request_reading import AnyRequest, header, operation_of
from service.api.bodies.responses import json_response
from service.api.bodies.return_minimal import as_applied
from service.api.handler_services.server_services import Services
from service.api.openapi.operation_declaration import Parameter
from service.api.problems import MalformedRequest
from service.api.security.authentication import principal_of, told_caller
from service.api.telemetry.metrics import Metrics
from service.scheduler.protocol.answers import Answer, LinesAnswer, RecordedAnswer, WriteAnswer
from service.scheduler.protocol.intents import Idempotency, Intent

IDEMPOTENCY_KEY = Parameter(
    name="Idempotency-Key",
    place="header",
    type=Annotated[str, msgspec.Meta(pattern="^[!-~]{1,255}$")],
    description="The client's own name for this request. Asked again with the same key, the "
    "first answer is given again and nothing is done twice; kept for 24 hours.",
    example="2f6d1c1e-7a3b-4f0e-9a0b-8f3f0f3c9a11",
)
KEY_PROBLEMS = ("IdempotencyKeyInProgress", "IdempotencyKeyReused", "OutcomeUnknown", "Overloaded")

_KEY = re.compile(r"[!-~]{1,255}")

REPLAYED = "Idempotent-Replayed"
"""The header of an answer that was given before, under the same key."""

A = TypeVar("A", bound=Answer)


class Rendered(msgspec.Struct, frozen=True, array_like=True):
    """An answer ready to be sent, or to be recorded and sent again."""

    body: bytes
    status: int = 200
    etag: str | None = None
    warning: str | None = None
    minimal: bool = False
    """Whether it is as short as the client preferred."""

    def response(self, revision: int) -> Response[bytes]:
        """The answer, given at a revision."""
        response = json_response(
            self.body, revision, status=self.status, etag=self.etag, warning=self.warning
        )
        return as_applied(response) if self.minimal else response


class CallOutcome(NamedTuple):
    """What became of an intent."""

    revision: int
    rendered: Rendered
    is_replayed: bool
    """Whether the answer is that to an earlier request with the same key."""


async def submit_once(
    request: AnyRequest,
    services: Services,
    intent: Intent[A],
    body: bytes,
    render: Callable[[A], Rendered],
) -> Response[bytes]:
    """Submit an intent, under the request's idempotency key if it has one."""
    submitted = await submit_chunk(request, services, intent, body, render)
    response = submitted.rendered.response(submitted.revision)
    return as_replayed(response) if submitted.is_replayed else response


def as_replayed(response: Response[bytes]) -> Response[bytes]:
    """Say of an answer that it was given before."""
    response.headers[REPLAYED] = "true"
    return response


async def submit_chunk(
    request: AnyRequest,
    services: Services,
    intent: Intent[A],
    body: bytes,
    render: Callable[[A], Rendered],
    *,
    chunk: int = 0,
) -> CallOutcome:
    """Submit the intent of one of several commits that a request makes, else like `submit_once`."""
    cluster = request.path_params["cluster"]
    idempotency = idempotency_of(request, body, render, chunk)
    answer = await services.scheduler.submit(
        cluster, intent, idempotency, caller=told_caller(request)
    )
    if isinstance(answer, RecordedAnswer):
        rendered = msgspec.msgpack.decode(answer.answer, type=Rendered)
        return CallOutcome(answer.revision, rendered, is_replayed=True)
    _count_warnings(services.metrics, answer)
    return CallOutcome(answer.revision, render(answer), is_replayed=False)


def _count_warnings(metrics: Metrics, answer: Answer) -> None:
    match answer:
        case WriteAnswer() if answer.warnings:
            metrics.warned(answer.warnings)
        case LinesAnswer():
            for result in answer.results:
                metrics.warned(result.warnings)
        case _:
            pass


def idempotency_of(
    request: AnyRequest, body: bytes, render: Callable[[A], Rendered], chunk: int = 0
) -> Idempotency[A] | None:
    """The request's key as the scheduler needs it; None if the request has none.

    Raises:
        MalformedRequest: the key is empty, too long, or not printable ASCII.
    """
    key = header(request, "idempotency-key")
    if key is None:
        return None
    if _KEY.fullmatch(key) is None:
        raise MalformedRequest("Idempotency-Key has to be 1 to 255 printable ASCII characters.")
    return Idempotency(
        operation=operation_of(request).id,
        key=key,
        chunk=chunk,
        request_hash=_hash(request, body),
        encode=lambda answer: msgspec.msgpack.encode(render(answer)),
    )


def _hash(request: AnyRequest, body: bytes) -> bytes:
    """A hash of all that defines the request, alike in every worker; each part goes in with its length."""
    scope = request.scope
    principal = principal_of(scope)
    texts = (
        scope["method"],
        scope["path"],
        header(request, "content-type") or "",
        principal.name if principal is not None else "",
    )
    hashed = sha256()
    for part in (*(each.encode() for each in texts), scope["query_string"], body):
        hashed.update(len(part).to_bytes(8, "big"))
        hashed.update(part)
    return hashed.digest()
