"""Answer kube-scheduler as one of its extenders: filter, prioritize, preempt, and bind."""

from collections.abc import Sequence

import msgspec
from litestar import Response, post
from litestar.di import NamedDependency

from service.api.auth.redaction import redact_placement, redact_refusal, visibility_of
from service.api.http.context import ApiRequest
from service.api.http.operation import JSON, Body, Operation, described
from service.api.http.permissions import Namespaced, require
from service.api.http.request import media_type, query
from service.api.http.responses import json_response
from service.api.resources.extender.parsing import (
    binding_intent,
    candidates_in,
    filter_result,
    fit_query,
    parse_extender,
    preemption_result,
    priorities,
    refusal_result,
    victims_query,
)
from service.api.resources.extender.schemas import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    HostPriority,
)
from service.api.resources.objects.operations import CLUSTER_PATH
from service.api.resources.objects.registry import POD_EXAMPLE
from service.api.resources.placements.authorization import require_placing
from service.api.resources.services import Services
from service.model.core.errors import BindingRefused, Conflict, Denied, InvalidManifest, NotFound
from service.scheduler.protocol.intents import FindVictims
from service.scheduler.protocol.placements import PlacementAnswer

_OF_THE_POD = (Conflict, Denied, InvalidManifest, NotFound)
"""Errors about the pod itself, reported in `Error`, which kube-scheduler shows in events."""

_EXTENDER = CLUSTER_PATH + "/extender"
_ARGS = {"Pod": POD_EXAMPLE, "NodeNames": ["node-7", "node-8"]}

_FILTER = Operation(
    id="extenderFilter",
    access=Namespaced("place"),
    reads=True,
    decided=True,
    tag="extender",
    summary="Which of kube-scheduler's candidates Moorage allows",
    description="The filter verb of a scheduler extender. The pod need not be stored; nothing is written. If the pod "
    "cannot be judged, `Error` says why.",
    request=Body(
        types={JSON: ExtenderArgs}, description="The pod and its candidates.", example=_ARGS
    ),
    limit="simulations",
    keeps_unknown=(ExtenderArgs,),
    answers={
        200: Body(
            types={JSON: ExtenderFilterResult},
            description="The candidates that are left, and why the others are not.",
            example={
                "Nodes": None,
                "NodeNames": ["node-7"],
                "FailedNodes": {"node-8": "Insufficient cpu"},
                "FailedAndUnresolvableNodes": {},
                "Error": "",
            },
        )
    },
    problems=("InvalidManifest",),
)


@post(_EXTENDER + "/filter", status_code=200, opt=described(_FILTER))
async def extender_filter(
    request: ApiRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """Filter the candidates with Moorage's own pipeline."""
    args, names = await _asked(request, services)
    try:
        answer = await _judged(request, services, args)
    except _OF_THE_POD as error:
        return Response(msgspec.json.encode(refusal_result(error.detail)), media_type=JSON)
    return json_response(
        msgspec.json.encode(filter_result(args, names, answer.results[0])), answer.revision
    )


_PRIORITIZE = Operation(
    id="extenderPrioritize",
    access=Namespaced("place"),
    reads=True,
    decided=True,
    tag="extender",
    summary="How good Moorage finds kube-scheduler's candidates",
    description="The prioritize verb of a scheduler extender. The sums of Moorage's weighted scores are stretched over "
    "0 to 10; candidates that a filter refuses have 0. Nothing is written.",
    request=Body(
        types={JSON: ExtenderArgs}, description="The pod and its candidates.", example=_ARGS
    ),
    limit="simulations",
    keeps_unknown=(ExtenderArgs,),
    answers={
        200: Body(
            types={JSON: list[HostPriority]},
            description="The score of each candidate, in the order sent.",
            example=[{"Host": "node-7", "Score": 10}, {"Host": "node-8", "Score": 3}],
        )
    },
    problems=("InvalidManifest", "PodDiffers"),
)


@post(_EXTENDER + "/prioritize", status_code=200, opt=described(_PRIORITIZE))
async def extender_prioritize(
    request: ApiRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """Score the candidates with Moorage's own pipeline; the protocol has no error field here."""
    args, names = await _asked(request, services)
    answer = await _judged(request, services, args)
    return json_response(msgspec.json.encode(priorities(names, answer.results[0])), answer.revision)


_PREEMPT = Operation(
    id="extenderPreempt",
    access=Namespaced("place"),
    reads=True,
    decided=True,
    tag="extender",
    summary="Whom Moorage would have leave kube-scheduler's candidates",
    description="The preempt verb of a scheduler extender. Of the nodes that are sent those are left where room can be "
    "made by Moorage's rules, each with Moorage's own choice of victims. The pod need not be stored, and nobody is "
    "evicted. A node is left out, too, if one of its victims is in a namespace that the caller may not read.",
    request=Body(
        types={JSON: ExtenderPreemptionArgs},
        description="The pod, and the nodes on which room could be made for it.",
        example={
            "Pod": POD_EXAMPLE,
            "NodeNameToMetaVictims": {
                "node-7": {
                    "Pods": [{"UID": "5b1c7c9e-93a1-4f3c-8a55-3a8d0a1b2c3d"}],
                    "NumPDBViolations": 0,
                }
            },
        },
    ),
    limit="simulations",
    keeps_unknown=(ExtenderPreemptionArgs,),
    answers={
        200: Body(
            types={JSON: ExtenderPreemptionResult},
            description="The nodes that are left, with their victims.",
            example={
                "NodeNameToMetaVictims": {
                    "node-7": {
                        "Pods": [{"UID": "5b1c7c9e-93a1-4f3c-8a55-3a8d0a1b2c3d"}],
                        "NumPDBViolations": 0,
                    }
                }
            },
        )
    },
    problems=("InvalidManifest", "PodDiffers"),
)


@post(_EXTENDER + "/preempt", status_code=200, opt=described(_PREEMPT))
async def extender_preempt(
    request: ApiRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """Choose victims by Moorage's own rules; the protocol has no error field here."""
    media_type(request)
    query(request)
    args = parse_extender(await services.bodies.read(request), ExtenderPreemptionArgs)
    intent = victims_query(args, services.scheduler.templates)
    caller = request.context.caller()
    require_placing(caller, intent.placement)
    request.context.reservation.changes_nothing = True
    placement = msgspec.structs.replace(intent.placement, caller=caller)
    answer = await services.scheduler.submit(caller.cluster, FindVictims(placement=placement))
    result = preemption_result(args, answer, visibility_of(request))
    return json_response(msgspec.json.encode(result), answer.revision)


_BIND = Operation(
    id="extenderBind",
    access=Namespaced("bind"),
    decided=True,
    tag="extender",
    summary="Bind the pod that kube-scheduler has placed",
    description="The bind verb of a scheduler extender, committed like `bindPod`: all filters have to pass at the "
    "moment of the commit. The pod and the node have to be stored. If it is not bound, `Error` says why.",
    request=Body(
        types={JSON: ExtenderBindingArgs},
        description="The pod and its node.",
        example={
            "PodName": "web-0",
            "PodNamespace": "shop",
            "PodUID": "7e4f9a1c-2f0b-4b59-9a57-0d2b6f6f3c11",
            "Node": "node-7",
        },
    ),
    keeps_unknown=(ExtenderBindingArgs,),
    answers={
        200: Body(
            types={JSON: ExtenderBindingResult},
            description="Whether the pod is bound.",
            example={"Error": ""},
        )
    },
    problems=("InvalidManifest",),
)


@post(_EXTENDER + "/bind", status_code=200, opt=described(_BIND))
async def extender_bind(
    request: ApiRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """Bind a stored pod if all filters pass on the node."""
    media_type(request)
    query(request)
    args = parse_extender(await services.bodies.read(request), ExtenderBindingArgs)
    caller = request.context.caller()
    require(caller.principal, "bind", caller.cluster, args.pod_namespace)
    try:
        answer = await services.scheduler.submit(
            caller.cluster, binding_intent(args), caller=request.audited_caller
        )
    except BindingRefused as error:
        return _not_bound(redact_refusal(visibility_of(request), error).detail)
    except _OF_THE_POD as error:
        return _not_bound(error.detail)
    return json_response(msgspec.json.encode(ExtenderBindingResult()), answer.revision)


def _not_bound(error: str) -> Response[bytes]:
    return Response(msgspec.json.encode(ExtenderBindingResult(error=error)), media_type=JSON)


async def _asked(request: ApiRequest, services: Services) -> tuple[ExtenderArgs, Sequence[str]]:
    """Return the message and the names of its candidates."""
    media_type(request)
    query(request)
    args = parse_extender(await services.bodies.read(request), ExtenderArgs)
    return args, candidates_in(args)


async def _judged(request: ApiRequest, services: Services, args: ExtenderArgs) -> PlacementAnswer:
    intent = fit_query(args, services.scheduler.templates)
    caller = request.context.caller()
    require_placing(caller, intent)
    request.context.reservation.changes_nothing = True
    asked = msgspec.structs.replace(intent, caller=caller)
    answer = await services.scheduler.submit(caller.cluster, asked)
    return redact_placement(visibility_of(request), answer)


EXTENDER_HANDLERS = (extender_filter, extender_prioritize, extender_preempt, extender_bind)
