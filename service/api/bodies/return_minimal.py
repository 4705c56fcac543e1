"""`Prefer: return=minimal` (RFC 7240): answers to writes without what the client has sent itself."""

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
    """What a client cannot know of an object that it has written."""

    name: str
    namespace: str = ""
    uid: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str = ""


class _Partial(msgspec.Struct, rename="camel"):
    """An object without all that is not metadata, as Kubernetes' PartialObjectMetadata."""

    api_version: str
    kind: str
    metadata: _Metadata


_decoder = msgspec.json.Decoder(_Partial)
_encoder = msgspec.json.Encoder()


def prefers_minimal(request: ApiRequest) -> bool:
    """Whether the client wants answers that are as short as possible; what it prefers besides is passed over."""
    return any(_asks(value) for name, value in request.scope["headers"] if name == b"prefer")


def _asks(header: bytes) -> bool:
    """Whether one header names the preference: a list, each with parameters of its own."""
    for each in header.decode("latin-1").lower().split(","):
        name, _, value = each.partition(";")[0].partition("=")
        if (name.strip(), value.strip().strip('"')) == ("return", "minimal"):
            return True
    return False


def minimal_object(body: bytes) -> bytes:
    """The members of a rendered object that say what it is, and its name, uid and times."""
    return _encoder.encode(_decoder.decode(body))


def minimal_results(results: Sequence[R]) -> list[R]:
    """The results that say more than that all went well."""
    return [each for each in results if each.result not in _DONE or _tells_more(each)]


def _tells_more(result: LineResult | DeletionResult) -> bool:
    return isinstance(result, LineResult) and bool(result.warnings or result.generated)


def as_applied(response: Response[bytes]) -> Response[bytes]:
    """Say of an answer that it is minimal because the client prefers that."""
    response.headers[APPLIED] = PREFERENCE
    return response
