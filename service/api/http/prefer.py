"""`Prefer: return=minimal` (RFC 7240): answers to writes that omit what the client sent."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec
from litestar import Response

from service.api.http.context import ApiRequest
from service.scheduler.protocol.answers import DeletionResult, LineResult

PREFERENCE = "return=minimal"
APPLIED = "preference-applied"

_DONE = frozenset({"Created", "Changed", "Unchanged", "Deleted"})

R = TypeVar("R", bound=LineResult | DeletionResult)


class _Metadata(msgspec.Struct, rename="camel", omit_defaults=True):
    """The metadata that the server sets, and the object's name."""

    name: str
    namespace: str = ""
    uid: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str = ""


class _Partial(msgspec.Struct, rename="camel"):
    """An object reduced to its metadata, like Kubernetes' PartialObjectMetadata."""

    api_version: str
    kind: str
    metadata: _Metadata


_decoder = msgspec.json.Decoder(_Partial)
_encoder = msgspec.json.Encoder()


def prefers_minimal(request: ApiRequest) -> bool:
    """Return whether the client prefers minimal answers; other preferences are ignored."""
    return any(_asks(value) for name, value in request.scope["headers"] if name == b"prefer")


def _asks(header: bytes) -> bool:
    """Return whether one `Prefer` header, a list with parameters, asks for minimal answers."""
    for item in header.decode("latin-1").lower().split(","):
        name, _, value = item.partition(";")[0].partition("=")
        if (name.strip(), value.strip().strip('"')) == ("return", "minimal"):
            return True
    return False


def minimal_object(body: bytes) -> bytes:
    """Reduce an encoded object to its type, name, uid, and timestamps."""
    return _encoder.encode(_decoder.decode(body))


def minimal_results(results: Sequence[R]) -> list[R]:
    """Drop plain successes from the results."""
    return [result for result in results if result.result not in _DONE or _tells_more(result)]


def _tells_more(result: LineResult | DeletionResult) -> bool:
    return isinstance(result, LineResult) and bool(result.warnings or result.generated)


def as_applied(response: Response[bytes]) -> Response[bytes]:
    """Mark an answer as minimal."""
    response.headers[APPLIED] = PREFERENCE
    return response
