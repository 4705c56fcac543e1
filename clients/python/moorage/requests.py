"""Requests before they are sent: what both clients share, and neither a socket nor a clock."""

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
    """What is asked of a server."""

    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    repeatable: bool = False
    """Whether the request does nothing twice if it is sent twice, and gets the same answer."""


def path_of(cluster: str, *parts: str) -> str:
    """Make a path in a cluster: `path_of("default", "pods")` is `/v1/clusters/default/pods`."""
    return "/".join(["/v1/clusters", *(quote(part, safe="") for part in (cluster, *parts))])


def new_key() -> str:
    """Make an idempotency key that nobody else has."""
    return secrets.token_urlsafe(18)


def dry(*, dry_run: bool) -> Params:
    """Make the parameter of a write that is to be decided as usual and to change nothing."""
    return {"dryRun": dry_run or None}


def listed(names: Iterable[str] | None) -> str | None:
    """Make the value of a parameter that is a list."""
    return None if names is None else ",".join(names)


def reading(path: str, params: Params | None = None) -> Request:
    """Make a GET."""
    return Request(method="GET", path=path, params=_given(params), repeatable=True)


def putting(
    path: str,
    body: object,
    headers: Mapping[str, str | None] | None = None,
    params: Params | None = None,
) -> Request:
    """Make a PUT. One with preconditions is not repeated: if it was heard, they do not hold any more."""
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
    """Make a PATCH, which is sent once."""
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
    """Make a DELETE of one object, which is sent once: the second would not find the object."""
    return Request(method="DELETE", path=path, params=_given(params), headers=_present(headers))


def deleting_once(path: str, params: Params | None, key: str | None = None) -> Request:
    """Make a DELETE of a list, which takes effect once, however often it is sent."""
    headers = {"Idempotency-Key": key or new_key()}
    return Request(
        method="DELETE", path=path, params=_given(params), headers=headers, repeatable=True
    )


def asking(path: str, body: object, params: Params | None = None) -> Request:
    """Make a POST that is harmless to repeat."""
    return Request(
        method="POST",
        path=path,
        params=_given(params),
        headers={"Content-Type": JSON},
        content=msgspec.json.encode(body),
        repeatable=True,
    )


def posting(path: str, params: Params | None = None) -> Request:
    """Make a POST without a body, which is sent once: the second would do it again."""
    return Request(method="POST", path=path, params=_given(params))


def posting_once(
    path: str, body: object, params: Params | None = None, key: str | None = None
) -> Request:
    """Make a POST that takes effect once, however often it is sent."""
    return _keyed(path, msgspec.json.encode(body), JSON, params, key)


def posting_lines(
    path: str, lines: Iterable[object], params: Params | None = None, key: str | None = None
) -> Request:
    """Make a POST of NDJSON that takes effect once; a line that is bytes is one as it is."""
    encoded = (line if isinstance(line, bytes) else msgspec.json.encode(line) for line in lines)
    return _keyed(path, b"".join(line + b"\n" for line in encoded), NDJSON, params, key)


def streaming(path: str, params: Params, accept: str = EVENT_STREAM) -> Request:
    """Make a GET whose answer is read as it comes."""
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
    """Whether a manifest names the revision that it was read at, which is a precondition."""
    metadata = body.get("metadata") if isinstance(body, Mapping) else None
    return isinstance(metadata, Mapping) and bool(metadata.get("resourceVersion"))
