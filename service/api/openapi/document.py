"""Generate the OpenAPI 3.1 document from route handlers, their operations, and their body types.

Litestar derives its document from handler signatures, but our handlers read raw bytes, so the
document is generated from what each handler declares (`service.api.http.operation`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from litestar.handlers import HTTPRouteHandler

from service.api.http.operation import Body, Operation, Parameter
from service.api.http.permissions import Public
from service.api.http.problems import PROBLEM_JSON, PROBLEMS, Problem, headers_of
from service.api.openapi.links import link_operations
from service.api.openapi.problem_examples import example_of
from service.api.openapi.schemas import Document, reference_to, schemas_of
from service.model.registry.kinds import DECLARED_KINDS

VERSION = "v1"

_EVERYWHERE = (
    "MalformedRequest",
    "CrossOriginRequest",
    "MisdirectedRequest",
    "URLTooLong",
    "HeadersTooLarge",
    "TooManyBytes",
    "Internal",
)
_GUARDED = {"Unauthorized", "Forbidden", "TooManyRequests", "TooManyFailures"}
_WITH_BODY = ("MalformedJSON", "BodyTimeout", "BodyTooLarge", "UnsupportedMediaType")
_IN_A_CLUSTER = ("NotFound", "ObjectUnreadable", "PluginMissing", "StorageUnavailable")

_LABEL = {"maxLength": 63, "pattern": "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"}
_SUBDOMAIN = {
    "maxLength": 253,
    "pattern": r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$",
}
_PATH_PARAMETERS: Mapping[str, tuple[str, str, Document]] = {
    "cluster": ("Name of the cluster; `default` is there from the start.", "default", _LABEL),
    "namespace": ("Name of the namespace.", "shop", _LABEL),
    "name": ("Name of the object.", "web-0", {"minLength": 1}),
}

_TAGS = {
    "clusters": "Clusters, their configuration and their size.",
    "nodes": "Where pods can go.",
    "namespaces": "What namespace selectors read.",
    "pods": "Pods, pending and placed.",
    "placements": "Deciding where pods go, and why.",
    "extender": "What kube-scheduler asks of Moorage as its extender.",
    "plans": "What would happen, and what to do then.",
    "webhooks": "What is sent to those who cannot keep a stream open.",
    "events": "What happened to pods.",
    "bulk": "Many objects at once, in and out.",
    "access": "Who may make requests, and which.",
    "server": "The server itself.",
    **{kind.plural: kind.description for kind in DECLARED_KINDS.values()},
}

_INFO = {
    "title": "Moorage",
    "version": VERSION,
    "summary": "Scheduling as a service",
    "description": "Keep a cluster's nodes, namespaces and pods here; ask where pods should run, "
    "with Kubernetes' complete affinity, anti-affinity and topology spread. No committed "
    "placement ever breaks a rule that held in the state it was committed on. Long answers are compressed for clients "
    "that say so in `Accept-Encoding` (`zstd`, `gzip`), and bodies may be, as `Content-Encoding` says then.",
    "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
}

_WARNING = "Warning"
_PREFERENCE = "Preference-Applied"
_KEY, _REPLAYED = "Idempotency-Key", "Idempotent-Replayed"
_HEADERS = {
    "Moorage-Revision": {
        "description": "The cluster's revision that the answer was made from.",
        "schema": {"type": "integer", "minimum": 0},
    },
    "ETag": {
        "description": "Changes whenever what was answered changes, that of a cluster when its configuration does; "
        "for `If-Match`.",
        "schema": {"type": "string", "pattern": '^(W/)?"[!-~]*"$'},
    },
    "Retry-After": {
        "description": "After how many seconds it is worth asking again.",
        "schema": {"type": "integer", "minimum": 0},
    },
    "WWW-Authenticate": {
        "description": "How callers prove who they are.",
        "schema": {"type": "string"},
        "example": "Bearer",
    },
    _WARNING: {
        "description": 'Fields that are passed over, as Kubernetes tells of them: `299 - "…"`, separated by '
        "commas. `warnings` in the body has all of them.",
        "schema": {"type": "string"},
    },
    _REPLAYED: {
        "description": "The answer is the first one to this `Idempotency-Key`, given again; absent "
        "where something was done now, and from NDJSON.",
        "schema": {"type": "string", "enum": ["true"]},
    },
    _PREFERENCE: {
        "description": "The request had the header `Prefer: return=minimal` (RFC 7240), and this answer follows it: of "
        "an object it has only `apiVersion`, `kind`, and of the metadata what the server makes, so that fields are "
        "missing that are required otherwise; of many results only those that say more than that all went well. "
        "Whoever does not send that header never gets such an answer.",
        "schema": {"type": "string", "enum": ["return=minimal"]},
    },
}
_OF_CLUSTERS = ("Moorage-Revision", "ETag")


def build_document(handlers: Iterable[HTTPRouteHandler]) -> Document:
    """Build the document of these handlers, skipping handlers that declare no operation."""
    described = [handler for handler in handlers if "operation" in (handler.opt or {})]
    operations = [_operation_of(handler) for handler in described]
    paths: dict[str, Document] = {}
    for handler, operation in zip(described, operations, strict=True):
        for path in sorted(handler.paths):
            methods = paths.setdefault(re.sub(r":\w+}", "}", path), {})
            for method in sorted(handler.http_methods):
                methods[method.lower()] = _operation(operation, path)
    links = link_operations(paths)
    return {
        "openapi": "3.1.0",
        "info": _INFO,
        "servers": [{"url": "/", "description": "This server."}],
        "security": [{}, {"bearer": []}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "paths": dict(sorted(paths.items())),
        "components": {**_components(operations), "links": links},
    }


def kept_types(operations: Iterable[Operation]) -> list[Any]:
    """Return the types whose unknown fields at least one operation keeps or ignores."""
    return [type_ for operation in operations for type_ in operation.keeps_unknown]


def _operation_of(handler: HTTPRouteHandler) -> Operation:
    operation = handler.opt["operation"]
    assert isinstance(operation, Operation)
    return operation


def _operation(operation: Operation, path: str) -> Document:
    names = re.findall(r"{(\w+)", path)
    of_object = "cluster" in names
    parameters = [
        *(_path_parameter(name, of_object=of_object) for name in names),
        *map(_parameter, operation.parameters),
    ]
    written: Document = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "responses": _responses(operation, in_cluster=of_object),
    }
    if isinstance(operation.access, Public):
        written["security"] = []
    if operation.description:
        written["description"] = operation.description
    if parameters:
        written["parameters"] = parameters
    if operation.request is not None:
        body = operation.request
        written["requestBody"] = {**_content(body), "required": body.required}
    return written


def _path_parameter(name: str, *, of_object: bool) -> Document:
    description, example, form = _PATH_PARAMETERS[name]
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": description,
        "schema": {"type": "string", **(_SUBDOMAIN if of_object and name == "name" else form)},
        "example": example,
    }


def _parameter(parameter: Parameter) -> Document:
    written: Document = {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required,
        "description": parameter.description,
        "schema": reference_to(parameter.type),
    }
    return written if parameter.example is None else {**written, "example": parameter.example}


def _content(body: Body) -> Document:
    """Return a body's description and content, with examples for the media types that they suit."""
    content: dict[str, Document] = {}
    for media_type, type_ in body.types.items():
        content[media_type] = {"schema": reference_to(type_)}
        example = body.examples.get(media_type, body.example)
        is_text = content[media_type]["schema"].get("type") == "string"
        if body.named:
            shown = {name: {"value": value} for name, value in body.named.items()}
            content[media_type]["examples"] = shown
        elif example is not None and isinstance(example, str) == is_text:
            content[media_type]["example"] = example
    return {"description": body.description, **({"content": content} if content else {})}


def _responses(operation: Operation, *, in_cluster: bool) -> Document:
    responses: dict[str, Document] = {}
    for status, body in operation.answers.items():
        headers = [*_OF_CLUSTERS] if in_cluster else ["ETag"] if operation.tagged else []
        if operation.warns:
            headers.append(_WARNING)
        if operation.minimal:
            headers.append(_PREFERENCE)
        if _KEY in operation.names("header"):
            headers.append(_REPLAYED)
        responses[str(status)] = {**_content(body), **_references("headers", headers)}
    for status, codes in _by_status(_codes(operation, in_cluster=in_cluster)).items():
        responses[str(status)] = _problem_response(codes, in_cluster=in_cluster)
    return dict(sorted(responses.items()))


def _codes(operation: Operation, *, in_cluster: bool) -> set[str]:
    """Return the codes of all problems that an operation can answer with."""
    codes = {*_EVERYWHERE, *operation.problems}
    codes |= set() if isinstance(operation.access, Public) else _GUARDED
    codes |= set(_WITH_BODY) if operation.request is not None else set()
    return codes | (set(_IN_A_CLUSTER) if in_cluster else set())


def _references(section: str, names: Sequence[str]) -> Document:
    """Return a field that refers to components by name, or an empty document without names."""
    if not names:
        return {}
    return {section: {name: {"$ref": f"#/components/{section}/{name}"} for name in names}}


def _by_status(codes: Iterable[str]) -> Mapping[int, Sequence[str]]:
    grouped: dict[int, list[str]] = {}
    for code in sorted(codes):
        grouped.setdefault(PROBLEMS[code].status, []).append(code)
    return grouped


def _problem_response(codes: Sequence[str], *, in_cluster: bool) -> Document:
    titles = "; ".join(f"`{code}`: {PROBLEMS[code].title}" for code in codes)
    headers = sorted({header for code in codes for header in headers_of(code)})
    headers += ["Moorage-Revision"] if in_cluster else []
    content = {
        "schema": {"$ref": "#/components/schemas/Problem"},
        **_references("examples", codes),
    }
    return {
        "description": f"{titles}.",
        **_references("headers", headers),
        "content": {PROBLEM_JSON: content},
    }


def _components(operations: Sequence[Operation]) -> Document:
    types = [
        type_
        for operation in operations
        for body in (operation.request, *operation.answers.values())
        if body is not None
        for type_ in body.types.values()
    ]
    named = {name: part for operation in operations for name, part in operation.components.items()}
    written = {name: part for name, part in named.items() if isinstance(part, dict)}
    referred = [part for name, part in named.items() if name not in written]
    schemas = schemas_of([*types, *referred, Problem], kept_types(operations))
    return {
        "schemas": dict(sorted({**schemas, **written}.items())),
        "headers": _HEADERS,
        "examples": {
            code: {"summary": PROBLEMS[code].title, "value": example_of(code)}
            for code in _told(operations)
        },
        "securitySchemes": {
            "bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "Needed where the server runs with a token, but for what is public.",
            }
        },
    }


def _told(operations: Sequence[Operation]) -> Sequence[str]:
    """Return the codes of all problems that at least one operation can answer with."""
    return sorted({code for operation in operations for code in _codes(operation, in_cluster=True)})
