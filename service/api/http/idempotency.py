"""Record the first answer to an idempotency key with its commit, and replay it later."""

import re
from collections.abc import Callable
from hashlib import sha256
from typing import Annotated, TypeVar

import msgspec
from litestar import Response

from service.api.http.context import ApiRequest, context_of
from service.api.http.operation import Parameter
from service.api.http.problems import MalformedRequest
from service.api.http.request import header, operation_of
from service.scheduler.protocol.answers import Answer
from service.scheduler.protocol.intents import Idempotency

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
"""The header that marks a replayed answer."""

A = TypeVar("A", bound=Answer)


class Rendered(msgspec.Struct, frozen=True, array_like=True):
    """An answer that is ready to be sent, or to be recorded and replayed."""

    body: bytes
    status: int = 200
    etag: str | None = None
    warning: str | None = None
    minimal: bool = False
    """Whether the answer was shortened because the client prefers minimal answers."""


def as_replayed(response: Response[bytes]) -> Response[bytes]:
    """Mark an answer as replayed."""
    response.headers[REPLAYED] = "true"
    return response


def idempotency_of(
    request: ApiRequest, key: str, body: bytes, render: Callable[[A], Rendered], chunk: int
) -> Idempotency[A]:
    """Build the scheduler's idempotency record from the request's key.

    Raises:
        MalformedRequest: the key is empty, too long, or not printable ASCII.
    """
    if _KEY.fullmatch(key) is None:
        raise MalformedRequest("Idempotency-Key has to be 1 to 255 printable ASCII characters.")
    return Idempotency(
        operation=operation_of(request).id,
        key=key,
        chunk=chunk,
        request_hash=_hash(request, body),
        encode=lambda answer: msgspec.msgpack.encode(render(answer)),
    )


def _hash(request: ApiRequest, body: bytes) -> bytes:
    """Hash everything that defines the request, with the same result in every worker.

    Each part is preceded by its length, so that different parts never join to the same bytes.
    """
    scope = request.scope
    principal = context_of(scope).principal
    texts = (
        scope["method"],
        scope["path"],
        header(request, "content-type") or "",
        principal.name if principal is not None else "",
    )
    hashed = sha256()
    for part in (*(text.encode() for text in texts), scope["query_string"], body):
        hashed.update(len(part).to_bytes(8, "big"))
        hashed.update(part)
    return hashed.digest()
