"""Requests that an operation makes to others of its own server, as its caller would."""

from typing import Any, cast

from service.api.bodies.byte_budget import holding_of
from service.api.bodies.request_reading import AnyRequest
from service.api.handler_services.waiting_client import WaitingClient, never
from service.api.problems import request_id_of
from service.api.security.authentication import address_of, identify, name_request, principal_of
from service.api.worker_forwarding.fields_only_servers_may_send import SubrequestTerms, rest_on
from service.api.worker_forwarding.middleware import answer_of
from service.api.worker_forwarding.sockets import ForwardedAnswer
from service.scheduler.protocol.clients import CLIENT


async def ask_cluster(
    request: AnyRequest, cluster: str, path: str, body: bytes, told: SubrequestTerms | None = None
) -> ForwardedAnswer:
    """The answer to a POST to a cluster, decided by the worker that has it, with the rights of the caller.

    What it changes is committed only as long as the leases are held that are told. It is neither authenticated
    nor counted anew, and holds bytes of its own.
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
    rest_on(scope, told)
    name_request(scope, request_id_of(request.scope))
    counted = holding_of(request.scope).counting_apart(request.app)
    client = cast("WaitingClient | None", CLIENT.get())
    return await answer_of(counted, scope, body, never if client is None else client.left)
