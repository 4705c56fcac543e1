"""Requests before they are sent, shared by both clients, without sockets or clocks."""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import msgspec

JSON = "application/json"
NDJSON = "application/x-ndjson"
EVENT_STREAM = "text/event-stream"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+json"

Params = Mapping[str, str | int | bool | None]
Manifest = Mapping[str, Any]
"""A Kubernetes object: a dictionary, such as YAML or kubectl gives it, or one of `moorage.types`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to a server."""

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    repeatable: bool = False
    """Whether sending the request twice has no further effect and returns the same answer."""


def path_of(cluster: str, *parts: str) -> str:
    """Return a path in a cluster: `path_of("default", "pods")` is `/v1/clusters/default/pods`."""
    return "/".join(["/v1/clusters", *(quote(part, safe="") for part in (cluster, *parts))])


def new_key() -> str:
    """Return a new, unique idempotency key."""
    return secrets.token_urlsafe(18)


def dry(*, dry_run: bool) -> Params:
    """Return the query parameter of a dry run, if requested."""
    return {"dryRun": dry_run or None}


def listed(names: Iterable[str] | None) -> str | None:
    """Return the value of a list parameter, or None."""
    return None if names is None else ",".join(names)


def reading(path: str, params: Params | None = None) -> Request:
    """Build a GET."""
    return Request(method="GET", path=path, params=_given(params), repeatable=True)


def putting(
    path: str,
    body: object,
    headers: Mapping[str, str | None] | None = None,
    params: Params | None = None,
) -> Request:
    """Build a PUT; one with preconditions is not retried, since its success makes them fail."""
    conditions = _present(headers)
    return Request(
        method="PUT",
        path=path,
        params=_given(params),
        headers={"Content-Type": JSON, **conditions},
        content=msgspec.json.encode(body),
        repeatable=not conditions and not _has_version(body),
    )


def patching(
    path: str,
    body: object,
    content_type: str = MERGE_PATCH,
    headers: Mapping[str, str | None] | None = None,
    params: Params | None = None,
) -> Request:
    """Build a PATCH, which is sent only once."""
    return Request(
        method="PATCH",
        path=path,
        params=_given(params),
        headers={"Content-Type": content_type, **_present(headers)},
        content=msgspec.json.encode(body),
    )


def deleting(
    path: str, params: Params | None = None, headers: Mapping[str, str | None] | None = None
) -> Request:
    """Build a DELETE of one object, sent only once, since a second would not find the object."""
    return Request(method="DELETE", path=path, params=_given(params), headers=_present(headers))


def deleting_once(path: str, params: Params | None, key: str | None = None) -> Request:
    """Build a DELETE of a list that takes effect only once, even if sent again."""
    headers = {"Idempotency-Key": key or new_key()}
    return Request(
        method="DELETE", path=path, params=_given(params), headers=headers, repeatable=True
    )


def asking(path: str, body: object, params: Params | None = None) -> Request:
    """Build a POST that is safe to repeat."""
    return Request(
        method="POST",
        path=path,
        params=_given(params),
        headers={"Content-Type": JSON},
        content=msgspec.json.encode(body),
        repeatable=True,
    )


def posting(path: str, params: Params | None = None) -> Request:
    """Build a POST without a body, sent only once, since a second would take effect again."""
    return Request(method="POST", path=path, params=_given(params))


def posting_once(
    path: str, body: object, params: Params | None = None, key: str | None = None
) -> Request:
    """Build a POST that takes effect only once, even if sent again."""
    return _keyed(path, msgspec.json.encode(body), JSON, params, key)


def posting_lines(
    path: str, lines: Iterable[object], params: Params | None = None, key: str | None = None
) -> Request:
    """Build a POST of NDJSON that takes effect once; lines given as bytes are sent unchanged."""
    encoded = (line if isinstance(line, bytes) else msgspec.json.encode(line) for line in lines)
    return _keyed(path, b"".join(line + b"\n" for line in encoded), NDJSON, params, key)


def streaming(path: str, params: Params, accept: str = EVENT_STREAM) -> Request:
    """Build a GET whose answer is read as a stream."""
    return Request(method="GET", path=path, params=_given(params), headers={"Accept": accept})


def _keyed(
    path: str, content: bytes, content_type: str, params: Params | None, key: str | None
) -> Request:
    headers = {"Content-Type": content_type, "Idempotency-Key": key or new_key()}
    return Request(
        method="POST",
        path=path,
        params=_given(params),
        headers=headers,
        content=content,
        repeatable=True,
    )


def _given(params: Params | None) -> dict[str, str]:
    return {name: _text(value) for name, value in (params or {}).items() if value is not None}


def _text(value: str | int | bool) -> str:  # noqa: FBT001 - one of the values that a parameter may have
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _present(headers: Mapping[str, str | None] | None) -> dict[str, str]:
    return {name: value for name, value in (headers or {}).items() if value is not None}


def _has_version(body: object) -> bool:
    """Return whether a manifest names the revision at which it was read, a precondition."""
    metadata = body.get("metadata") if isinstance(body, Mapping) else None
    return isinstance(metadata, Mapping) and bool(metadata.get("resourceVersion"))
