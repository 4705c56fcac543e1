"""Repairs: the smallest changes that make an unschedulable pod fit."""

import msgspec
from litestar import Response, get
from litestar.di import NamedDependency

from service.api.auth.redaction import redact_repairs, visibility_of
from service.api.http.context import ApiRequest
from service.api.http.operation import (
    JSON,
    Body,
    Operation,
    Parameter,
    WholeNumber,
    described,
)
from service.api.http.permissions import Namespaced
from service.api.http.request import number, query, wrong_parameter
from service.api.http.responses import json_response
from service.api.resources.objects.registry import PODS
from service.api.resources.plans import schemas as plan_types
from service.api.resources.services import Services
from service.scheduler.protocol.intents import FindRepairs
from service.scheduler.protocol.repairs import RepairsAnswer

_CHANGES, _CHANGES_MAX = plan_types.REPAIR_CHANGES, plan_types.REPAIR_CHANGES_MAX
_REPAIRS, _REPAIRS_MAX = plan_types.REPAIRS, plan_types.REPAIRS_MAX

_REPAIRS_OPERATION = Operation(
    id="findRepairs",
    access=Namespaced("read"),
    reads=True,
    decided=True,
    tag="plans",
    summary="The least changes after which a pod fits",
    description="Each repair is a set of changes: of the pod, of nodes, or that placed pods go, whatever their "
    "priority. It was tried out on a fork of the cluster: after all changes the pod gets the node `places`, and as "
    "soon as one change, or one pod that goes, is left out, it gets none. Nothing is changed. Pods of namespaces that "
    "the caller may not read are never told to go.",
    parameters=(
        Parameter(
            name="changesMax",
            type=WholeNumber,
            description=f"How many changes of the pod and of nodes a repair may have, 1 to {_CHANGES_MAX}; "
            f"{_CHANGES} if it is not given.",
            example=2,
        ),
        Parameter(
            name="limit",
            type=WholeNumber,
            description=f"How many repairs are told, 1 to {_REPAIRS_MAX}; {_REPAIRS} if it is not given.",
            example=5,
        ),
    ),
    answers={
        200: Body(
            types={JSON: RepairsAnswer},
            description="The repairs, those of the fewest changes first.",
            example={
                "revision": 1042,
                "namespace": "shop",
                "name": "web-0",
                "kubernetes": "1.37",
                "fits": False,
                "message": "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 Insufficient cpu.",
                "repairs": [
                    {
                        "changes": [
                            {"op": "LowerRequest", "resource": "cpu", "from": "4", "to": "2500m"}
                        ],
                        "places": "node-7",
                        "why": "nothing else keeps the pod from 1 node of 2",
                    },
                    {
                        "changes": [{"op": "SetTaints", "names": ["node-8"], "taints": []}],
                        "places": "node-8",
                        "why": "nothing else keeps the pod from node-8",
                    },
                ],
                "complete": True,
                "unfinished": None,
            },
        )
    },
    problems=("Denied", "Overloaded"),
)


@get(PODS.item + "/repairs", opt=described(_REPAIRS_OPERATION))
async def find_repairs(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Find the smallest changes that would make a stored pod fit."""
    path, asked = request.path_params, query(request)
    visibility = visibility_of(request)
    intent = FindRepairs(
        namespace=path["namespace"],
        name=path["name"],
        changes_max=_within(number(asked, "changesMax"), "changesMax", _CHANGES, _CHANGES_MAX),
        repairs_max=_within(number(asked, "limit"), "limit", _REPAIRS, _REPAIRS_MAX),
        removable=visibility,
    )
    answer = await services.scheduler.planners.repairs(path["cluster"], intent)
    redacted = redact_repairs(visibility, answer)
    return json_response(msgspec.json.encode(redacted), answer.revision)


def _within(given: int | None, name: str, otherwise: int, most: int) -> int:
    if given is None:
        return otherwise
    if not 1 <= given <= most:
        raise wrong_parameter(name, f"has to be from 1 to {most}", str(given))
    return given


REPAIR_HANDLERS = (find_repairs,)
