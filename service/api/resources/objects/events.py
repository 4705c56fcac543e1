"""List events, which report what happened to pods."""

from litestar import Response, get
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler

from service.api.http.context import ApiRequest
from service.api.http.operation import JSON, Body, Operation, Parameter, described
from service.api.http.permissions import Namespaced
from service.api.reads.events import EVENT_KIND
from service.api.resources.objects import types as object_types
from service.api.resources.objects.operations import CLUSTER_PATH, LIMIT_AND_CONTINUE, MIN_REVISION
from service.api.resources.objects.routes import list_of
from service.api.resources.services import Services

_FIELD_SELECTOR = Parameter(
    name="fieldSelector",
    description="Only events with such fields: `involvedObject.name` (and `.namespace`, `.uid`, "
    "`.kind`), `reason`, `type`, `metadata.name`, `metadata.namespace`.",
    example="involvedObject.name=web-0,reason=FailedScheduling",
)


def _operation(id_: str, scope: str) -> Operation:
    return Operation(
        id=id_,
        access=Namespaced("read"),
        reads=True,
        tag="events",
        summary=f"What happened to the pods of {scope}",
        description="Placements, attempts that found no node, bindings by force, evictions: each "
        "kind once for each pod and message, counted, for an hour after it last happened. "
        "Evictions and forced bindings are stored with the change itself; the others about a "
        "second later, and not all of them where very many happen at once.",
        parameters=(*LIMIT_AND_CONTINUE, _FIELD_SELECTOR, MIN_REVISION),
        keeps_unknown=(object_types.EventList,),
        answers={
            200: Body(
                types={JSON: object_types.EventList},
                description="The events, by namespace and name.",
                example=_EXAMPLE,
            )
        },
        problems=("RevisionNotReached",),
    )


_EXAMPLE = {
    "apiVersion": "v1",
    "kind": "EventList",
    "metadata": {"resourceVersion": "1042"},
    "items": [
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": "web-0.5f3c1b7a90d2e846",
                "namespace": "shop",
                "resourceVersion": "1040",
                "creationTimestamp": "2026-05-04T08:00:00Z",
            },
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": "shop",
                "name": "web-0",
                "uid": "0b5f6f1e-3c4d-4a57-9a56-0a4b8f0c2d11",
            },
            "type": "Warning",
            "reason": "FailedScheduling",
            "message": "0/5 nodes are available: 5 Insufficient cpu.",
            "count": 3,
            "firstTimestamp": "2026-05-04T08:00:00Z",
            "lastTimestamp": "2026-05-04T08:00:04Z",
            "source": {"component": "moorage"},
        }
    ],
}


async def list_events(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Return events ordered by namespace and name."""
    return await list_of(request, services, EVENT_KIND)


def _handler(path: str, operation: Operation) -> HTTPRouteHandler:
    return get(path, opt=described(operation))(list_events)


EVENT_HANDLERS = (
    _handler(f"{CLUSTER_PATH}/events", _operation("listEvents", "the cluster")),
    _handler(
        CLUSTER_PATH + "/namespaces/{namespace:str}/events",
        _operation("listNamespacedEvents", "a namespace"),
    ),
)
