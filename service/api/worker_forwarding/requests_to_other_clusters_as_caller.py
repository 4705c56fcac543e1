"""Requests that an operation makes to others of its own server, as its caller would."""

from typing import Any, cast

from service.api.handler_services.waiting_client import WaitingClient, never
from service.api.http.context import ApiRequest, RequestContext, SubrequestTerms, begin
from service.api.http.flow_control import CountBytes
from service.api.worker_forwarding.middleware import answer_of
from service.api.worker_forwarding.sockets import ForwardedAnswer
from service.scheduler.protocol.clients import CLIENT


async def ask_cluster(
    request: ApiRequest, cluster: str, path: str, body: bytes, told: SubrequestTerms | None = None
) -> ForwardedAnswer:
    """The answer to a POST to a cluster, decided by the worker that has it, with the rights of the caller.

    What it changes is committed only as long as the leases are held that are told. It is neither authenticated
    nor counted anew, and holds bytes of its own.
    """
    asking = request.context
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
        "client": (asking.address, 0) if asking.address else None,
        "server": None,
        "extensions": {},
        "state": {},
    }
    context = RequestContext(
        request_id=asking.request_id,
        principal=asking.principal,
        terms=told,
    )
    begin(scope, context)
    counted = CountBytes(request.app, request.context.holding.budget)
    client = cast("WaitingClient | None", CLIENT.get())
    return await answer_of(counted, scope, body, never if client is None else client.left)
