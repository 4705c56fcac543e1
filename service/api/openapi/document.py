"""Writes the OpenAPI 3.1 document from the route handlers, their operations and the types.

Litestar derives its document from handler signatures; ours read raw bytes, so the document is
put together here from what each handler declares (`service.api.openapi.operations`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from litestar.handlers import HTTPRouteHandler

from service.api.openapi.access import Public
from service.api.openapi.operations import Body, Operation, Parameter
from service.api.openapi.schemas import Document, reference_to, schemas_of
from service.api.openapi.wire import PriorityClass
from service.api.problems import PROBLEM_JSON, PROBLEMS, Problem
from service.engine.questions.explanation import Explanation, Summary
from service.model.kept_kinds import KEPT_KINDS

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
_IN_A_CLUSTER = ("NotFound", "PluginMissing", "StorageUnavailable")

_PATH_PARAMETERS = {
    "cluster": ("Name of the cluster; `default` is there from the start.", "default"),
    "namespace": ("Name of the namespace.", "shop"),
    "name": ("Name of the object.", "web-0"),
    "code": ("Code of the problem.", "RevisionConflict"),
}

_TAGS = {
    "clusters": "Clusters, their configuration and their size.",
    "nodes": "Where pods can go.",
    "namespaces": "What namespace selectors read.",
    "pods": "Pods, pending and placed.",
    "placements": "Deciding where pods go, and why.",
    "plans": "What would happen, and what to do then.",
    "events": "What happened to pods.",
    "bulk": "Many objects at once, in and out.",
    "access": "Who may make requests, and which.",
    "server": "The server itself.",
    **{each.plural: each.description for each in KEPT_KINDS.values()},
}

_INFO = {
    "title": "Moorage",
    "version": VERSION,
    "summary": "Scheduling as a service",
    "description": "Keep a cluster's nodes, namespaces and pods here; ask where pods should run, "
    "with Kubernetes' complete affinity, anti-affinity and topology spread. No committed "
    "placement ever breaks a rule that held in the state it was committed on.",
    "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
}

_WARNING = "Warning"
_HEADERS = {
    "Moorage-Revision": {
        "description": "The cluster's revision that the answer was made from.",
        "schema": {"type": "integer"},
    },
    "ETag": {
        "description": "Changes whenever what was answered changes; for `If-Match`.",
        "schema": {"type": "string"},
    },
    _WARNING: {
        "description": 'Fields that are passed over, as Kubernetes tells of them: `299 - "…"`, separated by '
        "commas. `warnings` in the body has all of them.",
        "schema": {"type": "string"},
    },
}
_OF_CLUSTERS = ("Moorage-Revision", "ETag")


def build_document(handlers: Iterable[HTTPRouteHandler]) -> Document:
    """The document of these handlers; those without an operation are not part of the API."""
    described = [handler for handler in handlers if "operation" in (handler.opt or {})]
    operations = [_operation_of(handler) for handler in described]
    paths: dict[str, Document] = {}
    for handler, operation in zip(described, operations, strict=True):
        for path in sorted(handler.paths):
            methods = paths.setdefault(re.sub(r":\w+}", "}", path), {})
            for method in sorted(handler.http_methods):
                methods[method.lower()] = _operation(operation, path)
    return {
        "openapi": "3.1.0",
        "info": _INFO,
        "servers": [{"url": "/", "description": "This server."}],
        "security": [{}, {"bearer": []}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "paths": dict(sorted(paths.items())),
        "components": _components(operations),
    }


def _operation_of(handler: HTTPRouteHandler) -> Operation:
    operation = handler.opt["operation"]
    assert isinstance(operation, Operation)
    return operation


def _operation(operation: Operation, path: str) -> Document:
    names = re.findall(r"{(\w+)", path)
    parameters = [*map(_path_parameter, names), *map(_parameter, operation.parameters)]
    written: Document = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "responses": _responses(operation, in_cluster="cluster" in names),
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


def _path_parameter(name: str) -> Document:
    description, example = _PATH_PARAMETERS[name]
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": description,
        "schema": {"type": "string"},
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
    """A body's description and content; only JSON media types show its example, which is JSON."""
    content: dict[str, Document] = {}
    for media_type, type_ in body.types.items():
        content[media_type] = {"schema": reference_to(type_)}
        if body.example is not None and media_type.endswith("json") and type_ is not str:
            content[media_type]["example"] = body.example
    return {"description": body.description, "content": content}


def _responses(operation: Operation, *, in_cluster: bool) -> Document:
    responses: dict[str, Document] = {}
    for status, body in operation.answers.items():
        responses[str(status)] = _content(body)
        headers = [*_OF_CLUSTERS] if in_cluster else ["ETag"] if operation.tagged else []
        if operation.warns:
            headers.append(_WARNING)
        if headers:
            responses[str(status)]["headers"] = {
                name: {"$ref": f"#/components/headers/{name}"} for name in headers
            }
    codes = {*_EVERYWHERE, *operation.problems}
    codes |= set() if isinstance(operation.access, Public) else _GUARDED
    codes |= set(_WITH_BODY) if operation.request is not None else set()
    codes |= set(_IN_A_CLUSTER) if in_cluster else set()
    for status, of_status in _by_status(codes).items():
        responses[str(status)] = _problem_response(of_status)
    return dict(sorted(responses.items()))


def _by_status(codes: Iterable[str]) -> Mapping[int, Sequence[str]]:
    grouped: dict[int, list[str]] = {}
    for code in sorted(codes):
        grouped.setdefault(PROBLEMS[code].status, []).append(code)
    return grouped


def _problem_response(codes: Sequence[str]) -> Document:
    titles = "; ".join(f"`{code}`: {PROBLEMS[code].title}" for code in codes)
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": f"{titles}.", "content": {PROBLEM_JSON: {"schema": schema}}}


def _components(operations: Sequence[Operation]) -> Document:
    types = [
        type_
        for operation in operations
        for body in (operation.request, *operation.answers.values())
        if body is not None
        for type_ in body.types.values()
    ]
    return {
        "schemas": schemas_of([*types, PriorityClass, Explanation, Summary, Problem]),
        "headers": _HEADERS,
        "securitySchemes": {
            "bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "Needed where the server runs with a token, but for what is public.",
            }
        },
    }
