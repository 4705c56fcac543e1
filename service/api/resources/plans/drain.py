"""Cordon and drain nodes, and pause, resume, and cancel stored plans."""

from collections.abc import Mapping
from typing import Any

import msgspec
from litestar import Response, post
from litestar.di import NamedDependency

from service.api.http.context import ApiRequest
from service.api.http.dry_run import is_dry, with_dry_run
from service.api.http.operation import DRY_RUN, JSON, Body, Operation, described
from service.api.http.permissions import Cluster
from service.api.http.request import media_type, query
from service.api.resources.objects import types as object_types
from service.api.resources.objects.registry import NODES, RESOURCES
from service.api.resources.objects.routes import written_response
from service.api.resources.plans import schemas as plan_types
from service.api.resources.services import Services
from service.model.core.strict_json import decode_strict
from service.model.core.type_rules import declared
from service.model.core.validators import Problems, without_nulls
from service.model.plans.plan import PLAN, PlanState
from service.scheduler.decide.admission.plan_admission import require_draining
from service.scheduler.protocol.answers import ObjectAnswer
from service.scheduler.protocol.intents import CordonNode, DrainNode, Intent, SetPlanState

_check_drain = declared(plan_types.DrainOptions, {})


_check_nothing = declared(plan_types.NoOptions, {})


def parse_drain(body: bytes) -> plan_types.DrainOptions:
    """Parse the options of a drain; the body may be empty.

    Raises:
        MalformedJSON: the body is not JSON that Moorage accepts.
        InvalidManifest: a field is wrong or unknown.
    """
    if not body.strip():
        return plan_types.DrainOptions()
    fields, problems = decode_strict(body), Problems()
    _check_drain(fields, "", problems)
    problems.raise_any()
    return msgspec.convert(without_nulls(fields), plan_types.DrainOptions)


def parse_nothing(body: bytes) -> None:
    """Check that a body is empty or an object without fields.

    Raises:
        MalformedJSON, InvalidManifest: as for `parse_drain`.
    """
    if body.strip():
        fields, problems = decode_strict(body), Problems()
        _check_nothing(fields, "", problems)
        problems.raise_any()


PLANS = next(resource for resource in RESOURCES if resource.kind == PLAN.kind)
_CORDONED = {**NODES.example, "spec": {"unschedulable": True}}
_NOTHING = Body(
    types={JSON: plan_types.NoOptions},
    description="An object without fields; may be absent.",
    example={},
    required=False,
)
_KEPT = {
    **PLANS.example,
    "status": {
        "phase": "Running",
        "startedAt": "2026-05-04T08:00:00Z",
        "evicted": 3,
        "leaving": 1,
        "waiting": 1,
        "staying": 2,
        "waitingPods": [
            {
                "namespace": "shop",
                "name": "web-0",
                "reason": "DisruptionBudget",
                "message": "The disruption budget web does not allow that it leaves.",
                "budget": "web",
            }
        ],
    },
}


def _cordoning(name: str, summary: str, description: str, example: dict[str, Any]) -> Operation:
    return Operation(
        id=name,
        access=Cluster("observe"),
        decided=True,
        minimal=True,
        tag="nodes",
        summary=summary,
        description=description,
        parameters=(DRY_RUN,),
        request=_NOTHING,
        answers={
            200: Body(types={JSON: object_types.Node}, description="The node.", example=example)
        },
        problems=("Conflict", "InvalidManifest", "Overloaded"),
    )


_CORDON = _cordoning(
    "cordonNode",
    "Have a node take no new pods",
    "Sets the node's `spec.unschedulable`. Pods that are on it stay.",
    _CORDONED,
)
_UNCORDON = _cordoning(
    "uncordonNode",
    "Have a node take new pods again",
    "Removes the node's `spec.unschedulable`. While a plan drains the node this is a conflict.",
    dict(NODES.example),
)
_DRAIN = Operation(
    id="drainNode",
    access=Cluster("evict"),
    decided=True,
    minimal=True,
    tag="nodes",
    summary="Have all pods but daemons leave a node",
    description="Cordons the node and keeps a plan, `drain-<node>`, which the server carries out step by step: pods are "
    "evicted as their disruption budgets allow it, while there is another node for whatever comes in their place, and "
    "while no required rule of another pod needs them where they are. Daemons and static pods stay. Members of a group "
    "leave together. If such a plan has not ended, it is the answer. The caller needs the right to change nodes, too.",
    parameters=(DRY_RUN,),
    request=Body(
        types={JSON: plan_types.DrainOptions},
        description="How to drain; may be absent.",
        example={"whenUnschedulable": "Wait"},
        required=False,
    ),
    answers={
        200: Body(types={JSON: PLANS.wire_type}, description="The plan there is.", example=_KEPT),
        201: Body(
            types={JSON: PLANS.wire_type}, description="The new plan.", example=PLANS.example
        ),
    },
    problems=("InvalidManifest", "Overloaded"),
)


@post(NODES.item + "/cordon", status_code=200, opt=described(_CORDON))
async def cordon_node(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Cordon a node."""
    return await _cordon(request, services, unschedulable=True)


@post(NODES.item + "/uncordon", status_code=200, opt=described(_UNCORDON))
async def uncordon_node(
    request: ApiRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """Uncordon a node."""
    return await _cordon(request, services, unschedulable=False)


async def _cordon(
    request: ApiRequest, services: Services, *, unschedulable: bool
) -> Response[bytes]:
    body, parameters = await _body(request, services)
    parse_nothing(body)
    name = request.path_params["name"]
    return await _answered(
        request, services, parameters, CordonNode(name=name, unschedulable=unschedulable)
    )


@post(NODES.item + "/drain", status_code=201, opt=described(_DRAIN))
async def drain_node(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Start draining a node."""
    require_draining(request.context.caller())
    body, parameters = await _body(request, services)
    options = parse_drain(body)
    intent = DrainNode(
        name=request.path_params["name"], when_unschedulable=options.when_unschedulable
    )
    return await _answered(request, services, parameters, intent)


def _setting(name: str, summary: str, description: str, state: PlanState) -> Operation:
    example = {**_KEPT, "spec": {**_KEPT["spec"], "state": state}}
    return Operation(
        id=name,
        access=PLANS.changing,
        decided=True,
        minimal=True,
        tag=PLANS.tag,
        summary=summary,
        description=f"{description} A plan that has ended cannot be changed any more.",
        parameters=(DRY_RUN,),
        request=_NOTHING,
        answers={
            200: Body(types={JSON: PLANS.wire_type}, description="The plan.", example=example)
        },
        problems=("Conflict", "InvalidManifest", "Overloaded"),
    )


_PAUSE = _setting(
    "pausePlan",
    "Evict nobody for a plan for now",
    "Its nodes stay cordoned, and pods that were evicted leave.",
    "Paused",
)
_RESUME = _setting(
    "resumePlan",
    "Go on with a plan that was paused",
    "It goes on from what is there now.",
    "Running",
)
_CANCEL = _setting(
    "cancelPlan",
    "Evict nobody for a plan any more",
    "What was done stays done: its nodes stay cordoned, and pods that were evicted leave.",
    "Cancelled",
)


@post(PLANS.item + "/pause", status_code=200, opt=described(_PAUSE))
async def pause_plan(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Pause a plan."""
    return await _set_state(request, services, "Paused")


@post(PLANS.item + "/resume", status_code=200, opt=described(_RESUME))
async def resume_plan(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Resume a plan."""
    return await _set_state(request, services, "Running")


@post(PLANS.item + "/cancel", status_code=200, opt=described(_CANCEL))
async def cancel_plan(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Cancel a plan."""
    return await _set_state(request, services, "Cancelled")


async def _set_state(request: ApiRequest, services: Services, state: PlanState) -> Response[bytes]:
    body, parameters = await _body(request, services)
    parse_nothing(body)
    name = request.path_params["name"]
    return await _answered(request, services, parameters, SetPlanState(name=name, state=state))


async def _body(request: ApiRequest, services: Services) -> tuple[bytes, Mapping[str, str]]:
    """Return the request's body and its parameters."""
    media_type(request)
    parameters = query(request)
    return await services.bodies.read(request), parameters


async def _answered(
    request: ApiRequest,
    services: Services,
    parameters: Mapping[str, str],
    intent: Intent[ObjectAnswer],
) -> Response[bytes]:
    answer = await services.scheduler.submit(
        request.path_params["cluster"],
        with_dry_run(request, parameters, intent),
        caller=request.audited_caller,
    )
    return written_response(request, answer, answer.body, dry=is_dry(parameters))


DRAIN_HANDLERS = (cordon_node, uncordon_node, drain_node, pause_plan, resume_plan, cancel_plan)
