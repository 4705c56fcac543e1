"""Makes answers: their headers, entity tags, and manifests and lists put together from bytes."""

from collections.abc import Iterable

import msgspec
from litestar import Response

from service.api.bodies.requests import AnyRequest, entity_tags, header
from service.api.openapi.operations import JSON
from service.model.log import ObjectRow
from service.model.manifest import with_resource_version


def revision_headers(revision: int, etag: str | None = None) -> dict[str, str]:
    """The headers of every answer about a cluster: the head, and the answer's own tag."""
    headers = {"moorage-revision": str(revision)}
    return headers if etag is None else {**headers, "etag": etag}


def json_response(
    body: bytes, revision: int, *, status: int = 200, etag: str | None = None
) -> Response[bytes]:
    """An answer about a cluster whose body is JSON already."""
    headers = revision_headers(revision, etag)
    return Response(body, status_code=status, headers=headers, media_type=JSON)


def encoded_response(value: object, revision: int, *, status: int = 200) -> Response[bytes]:
    """An answer about a cluster that still has to be encoded."""
    return json_response(msgspec.json.encode(value), revision, status=status)


def object_response(
    body: bytes, resource_version: int, revision: int, *, status: int = 200
) -> Response[bytes]:
    """One object as stored: `body` is its manifest without the resourceVersion."""
    return json_response(
        with_resource_version(body, resource_version),
        revision,
        status=status,
        etag=tag_of(resource_version),
    )


def tag_of(resource_version: int) -> str:
    """An object's entity tag: the revision that last changed it."""
    return f'"{resource_version}"'


def not_modified(request: AnyRequest, etag: str, revision: int) -> Response[bytes] | None:
    """A 304 if the client names this tag in If-None-Match, since it has the object already, else None."""
    given = header(request, "if-none-match")
    if given is None:
        return None
    known = entity_tags("If-None-Match", given, weak=True)
    if known != ("*",) and etag.removeprefix("W/").strip('"') not in known:
        return None
    return Response(b"", status_code=304, headers=revision_headers(revision, etag))


def items(rows: Iterable[ObjectRow]) -> bytes:
    """The objects of a JSON array, without its brackets."""
    return b",".join(with_resource_version(row.body, row.revision) for row in rows)


def list_head(kind: str, revision: int, continue_: str | None) -> bytes:
    """The beginning of a list in Kubernetes' form, up to its first item; `]}` ends the list."""
    more = b"" if continue_ is None else b',"continue":"%s"' % continue_.encode()
    return b'{"apiVersion":"v1","kind":"%s","metadata":{"resourceVersion":"%d"%s},"items":[' % (
        kind.encode(),
        revision,
        more,
    )
