"""Requests that an operation makes to others of its own server, as its caller would."""

from typing import Any

from service.api.bodies.byte_budget import counted_apart
from service.api.bodies.requests import AnyRequest
from service.api.problems import request_id_of
from service.api.security.callers import address_of, identify, name_request, principal_of
from service.api.worker_forwarding.middleware import answer_of
from service.api.worker_forwarding.sockets import ForwardedAnswer


async def ask_cluster(request: AnyRequest, cluster: str, path: str, body: bytes) -> ForwardedAnswer:
    """The answer to a POST to a cluster, decided by the worker that has it, with the rights of the caller.

    It is neither authenticated nor counted anew, and holds bytes of its own.
    """
    whole = f"/v1/clusters/{cluster}/{path}"
    scope: Any = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": whole,
        "raw_path": whole.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ],
        "client": (address_of(request.scope), 0) if address_of(request.scope) else None,
        "server": None,
        "extensions": {},
        "state": {},
    }
    identify(scope, principal_of(request.scope))
    name_request(scope, request_id_of(request.scope))
    return await answer_of(counted_apart(request.app, request.scope), scope, body)
