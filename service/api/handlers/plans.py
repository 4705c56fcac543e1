"""Plans: changes to a fork of a cluster, a goal, and what would have to be done."""

import msgspec
from litestar import Response, post
from litestar.di import NamedDependency

from service.api.bodies.plan_requests import parse_plan
from service.api.bodies.requests import AnyRequest, media_type, query
from service.api.bodies.responses import json_response
from service.api.openapi import body_types
from service.api.openapi.access import Namespaced
from service.api.openapi.object_operations import CLUSTER_PATH
from service.api.openapi.operations import JSON, Body, Operation, described
from service.api.security.rights import deciding_for, require_planning
from service.api.security.visibility import seen_plan, visibility_of
from service.api.services import Services
from service.scheduler.protocol.plans import PlanAnswer

_TOTALS = {
    "nodes": 3,
    "pods": 12,
    "resources": {
        "cpu": {"allocatable": "12", "requested": "3", "utilization": 0.25, "largestFree": "4"}
    },
}

_PLAN = Operation(
    id="makePlan",
    access=Namespaced("place"),
    reads=True,
    decided=True,
    tag="plans",
    summary="Plan what to do after changes to the cluster",
    description="The changes are made to a fork of the cluster, in their order, and then the goal is "
    "sought on it by the engine that also places pods. Nothing is stored: the cluster stays as it is. "
    "The steps are in the order in which they can be taken at `revision`. Pods of namespaces that the "
    "caller may not read are planned like all others, but only counted in the answer.",
    request=Body(
        types={JSON: body_types.PlanRequest},
        description="The changes, and the goal.",
        example={
            "changes": [
                {
                    "op": "RemoveNodes",
                    "topology": {"key": "topology.kubernetes.io/zone", "values": ["a"]},
                }
            ],
            "goal": {"type": "Place", "displaced": True},
            "bounds": {"seconds": 5},
        },
    ),
    limit="placements",
    answers={
        200: Body(
            types={JSON: PlanAnswer},
            description="The plan.",
            example={
                "revision": 1042,
                "status": "Planned",
                "complete": False,
                "changed": [1],
                "steps": [
                    {
                        "action": "Place",
                        "namespace": "shop",
                        "name": "web-0",
                        "from": "a-1",
                        "to": "b-7",
                        "wave": 0,
                        "reason": "its node is removed",
                    }
                ],
                "stepsTotal": 1,
                "unplaced": [
                    {
                        "namespace": "shop",
                        "name": "web-9",
                        "from": "a-1",
                        "reason": "Unschedulable",
                        "message": "0/2 nodes are available: 2 Insufficient cpu.",
                    }
                ],
                "unplacedTotal": 1,
                "before": _TOTALS,
                "after": {**_TOTALS, "nodes": 2, "pods": 11},
            },
        )
    },
    problems=("InvalidManifest", "PodDiffers", "Overloaded"),
)


@post(CLUSTER_PATH + "/plans", status_code=200, opt=described(_PLAN))
async def make_plan(request: AnyRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Make a plan, of which nothing is stored."""
    media_type(request)
    query(request)
    body = await services.bodies.read(request)
    caller = deciding_for(request)
    scheduler = services.scheduler
    parsed = await parse_plan(
        body, scheduler.templates, scheduler.limits, services.settings.request_items_max
    )
    require_planning(caller, parsed.intent)
    intent = msgspec.structs.replace(parsed.intent, caller=caller)
    planned = await scheduler.plan(request.path_params["cluster"], intent)
    told = seen_plan(visibility_of(request), planned, parsed.steps_max)
    return json_response(msgspec.json.encode(told), planned.revision)


PLAN_HANDLERS = (make_plan,)
