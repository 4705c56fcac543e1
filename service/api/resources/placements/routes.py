"""Place pods; bind, confirm, and evict single pods; and explain placements."""

from collections.abc import Callable
from functools import partial

import msgspec
from litestar import Response, get, post
from litestar.di import NamedDependency

from service.api.auth.redaction import (
    Visibility,
    redact_explanation,
    redact_placement,
    redact_refusal,
    redact_violation,
    visibility_for,
    visibility_of,
)
from service.api.http.context import ApiRequest
from service.api.http.dry_run import is_dry, note_dry_run, with_dry_run
from service.api.http.idempotency import IDEMPOTENCY_KEY, KEY_PROBLEMS, Rendered
from service.api.http.operation import (
    DRY_RUN,
    JSON,
    Body,
    Operation,
    Parameter,
    WholeNumber,
    described,
)
from service.api.http.permissions import Namespaced
from service.api.http.prefer import prefers_minimal
from service.api.http.request import media_type, number, query
from service.api.http.responses import json_response, warning_header
from service.api.resources.dispatch import DecidedAnswer, submit_once
from service.api.resources.objects import types as object_types
from service.api.resources.objects.operations import CLUSTER_PATH
from service.api.resources.objects.registry import EXPLANATION_EXAMPLE, POD_EXAMPLE, PODS
from service.api.resources.objects.routes import rendered_object
from service.api.resources.placements import schemas as placement_types
from service.api.resources.placements.authorization import require_force, require_placing
from service.api.resources.placements.binding_parsing import (
    parse_binding,
    parse_confirmation,
    parse_eviction,
)
from service.api.resources.placements.parsing import parse_placement
from service.api.resources.services import Services
from service.engine.explain.explanation import Explanation, Summary
from service.model.core.errors import BindingRefused, BindingViolated, FieldError
from service.scheduler.protocol.answers import ViolationItem
from service.scheduler.protocol.intents import ExplainPod
from service.scheduler.protocol.placements import PlacementAnswer
from service.scheduler.protocol.split_groups import GroupAnswer

_encode = msgspec.json.Encoder().encode

_PLACE = Operation(
    id="placePods",
    warns=True,
    access=Namespaced("place"),
    decided=True,
    tag="placements",
    summary="Decide where pods run, and record it",
    description="The call retries until it commits: it is never refused because of a lost race. "
    "At the answer's `revision` every placement is feasible; `score` and `explanation` are those "
    "at `plannedRevision`. One invalid manifest, or one pod in a namespace where the caller may not place pods, "
    "refuses the whole request.",
    parameters=(DRY_RUN, IDEMPOTENCY_KEY),
    request=Body(
        types={JSON: placement_types.PlacementRequest},
        description="The pods and how to place them.",
        example={"pods": [POD_EXAMPLE], "policy": "BestEffort", "onUnschedulable": "Queue"},
    ),
    limit="placements",
    keeps_unknown=(object_types.PodTemplate,),
    components={"Explanation": Explanation, "Summary": Summary},
    answers={
        200: Body(
            types={JSON: PlacementAnswer},
            description="What became of each pod, in the order asked.",
            example={
                "revision": 1042,
                "committed": True,
                "attempts": 1,
                "kubernetes": "1.37",
                "results": [
                    {
                        "namespace": "shop",
                        "name": "web-0",
                        "uid": "7e4f9a1c-2f0b-4b59-9a57-0d2b6f6f3c11",
                        "outcome": "Placed",
                        "nodeName": "node-7",
                        "score": 601,
                        "plannedRevision": 1039,
                        "reason": None,
                        "message": None,
                        "explanation": None,
                    }
                ],
                "group": None,
            },
        )
    },
    problems=("InvalidManifest", "PodDiffers", *KEY_PROBLEMS),
)


@post(CLUSTER_PATH + "/placements", status_code=200, opt=described(_PLACE))
async def place_pods(request: ApiRequest, services: NamedDependency[Services]) -> DecidedAnswer:
    """Place pods and record their nodes."""
    media_type(request)
    parameters = query(request)
    dry = bool(parameters) and note_dry_run(request, parameters)
    body = await services.bodies.read(request)
    context = request.context
    caller, terms = context.caller(), context.terms
    if terms is not None and terms.step is not None:
        return await submit_once(request, services, terms.step, body, _rendered_step)
    parsed = await parse_placement(
        body, services.scheduler.templates, services.settings.request_items_max
    )
    render: Callable[[PlacementAnswer], Rendered] = _rendered
    if not caller.principal.is_admin:  # an admin may place everywhere and sees everything
        require_placing(caller, parsed)
        render = partial(_rendered_for, visibility_for(caller.principal, caller.cluster))
    if parsed.dry_run:
        request.context.reservation.changes_nothing = True
    intent = msgspec.structs.replace(parsed, caller=caller, dry_run=parsed.dry_run or dry)
    if terms is not None:
        intent = msgspec.structs.replace(
            intent,
            leases=terms.leases,
            reserving=terms.reserving,
            without_groups=terms.alone or terms.reserving is not None,
        )
    return await submit_once(request, services, intent, body, render)


def _rendered_step(answer: GroupAnswer) -> Rendered:
    return Rendered(_encode(answer))


def _rendered_for(visibility: Visibility, answer: PlacementAnswer) -> Rendered:
    return _rendered(redact_placement(visibility, answer))


def _rendered(answer: PlacementAnswer) -> Rendered:
    body = _encode(answer)
    if not answer.warnings:
        return Rendered(body)
    return Rendered(body, warning=warning_header(answer.warnings))


_BIND = Operation(
    id="bindPod",
    minimal=True,
    warns=True,
    access=Namespaced("bind"),
    decided=True,
    tag="placements",
    summary="Bind a pending pod to a named node",
    description="All filters have to pass on that node, else it is refused with their reasons. "
    "With `force` they need not, which takes the verb `observe` as well.",
    parameters=(DRY_RUN, IDEMPOTENCY_KEY),
    request=Body(
        types={JSON: placement_types.Binding},
        description="The node.",
        example={"target": {"name": "node-7"}, "force": False},
    ),
    answers={
        200: Body(
            types={JSON: object_types.Pod}, description="The pod, bound.", example=POD_EXAMPLE
        )
    },
    problems=(
        "BindingRefused",
        "Conflict",
        "Denied",
        "InvalidManifest",
        "RevisionConflict",
        *KEY_PROBLEMS,
    ),
)


@post(PODS.item + "/binding", status_code=200, opt=described(_BIND))
async def bind_pod(request: ApiRequest, services: NamedDependency[Services]) -> DecidedAnswer:
    """Bind a pod to a node on which it passes all filters, or to any node with `force`."""
    media_type(request)
    parameters = query(request)
    body = await services.bodies.read(request)
    namespace, name = request.path_params["namespace"], request.path_params["name"]
    intent = parse_binding(body, namespace, name)
    if intent.force:
        require_force(request.context.caller(), namespace)
    visibility = visibility_of(request)
    asked = with_dry_run(request, parameters, intent)
    render = partial(
        rendered_object,
        visibility,
        PODS.kind,
        dry=is_dry(parameters),
        minimal=prefers_minimal(request),
    )
    try:
        return await submit_once(request, services, asked, body, render)
    except BindingRefused as error:
        raise redact_refusal(visibility, error) from None


_CONFIRM = Operation(
    id="confirmBinding",
    access=Namespaced("read"),
    reads=True,
    decided=True,
    tag="placements",
    summary="Whether a pod may still be started on its node",
    description="A node asks this before it starts a pod. The binding is confirmed if the pod is the one that the node "
    "saw and is on the same node, and if none of its required rules is violated now. These are the rules of "
    "`listViolations`: node affinity and selector, pod affinity and anti-affinity, hard topology spread. Resources, "
    "ports, taints and rules of other pods are not judged. Nothing is written.",
    request=Body(
        types={JSON: placement_types.BindingSeen},
        description="The pod as the node saw it.",
        example={
            "uid": "7e4f9a1c-2f0b-4b59-9a57-0d2b6f6f3c11",
            "revision": 1042,
            "nodeName": "node-7",
        },
    ),
    answers={
        200: Body(
            types={JSON: placement_types.BindingConfirmed},
            description="What is confirmed, and at which revision.",
            example={
                "revision": 1057,
                "namespace": "shop",
                "name": "web-0",
                "uid": "7e4f9a1c-2f0b-4b59-9a57-0d2b6f6f3c11",
                "nodeName": "node-7",
            },
        )
    },
    problems=("BindingViolated", "Conflict", "InvalidManifest", "RevisionConflict"),
)


@post(PODS.item + "/binding:confirm", status_code=200, opt=described(_CONFIRM))
async def confirm_binding(
    request: ApiRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """Check whether the required rules of a placed pod still hold."""
    media_type(request)
    query(request)
    body = await services.bodies.read(request)
    namespace, name = request.path_params["namespace"], request.path_params["name"]
    intent = parse_confirmation(body, namespace, name)
    answer = await services.scheduler.submit(request.path_params["cluster"], intent)
    broken = [
        redact_violation(visibility_of(request), violation) for violation in answer.violations
    ]
    if broken:
        raise BindingViolated(
            [FieldError(violation.rule, _told(violation)) for violation in broken]
        )
    confirmed = placement_types.BindingConfirmed(
        revision=answer.revision,
        namespace=answer.namespace,
        name=answer.name,
        uid=answer.uid,
        node_name=answer.node_name,
    )
    return json_response(_encode(confirmed), answer.revision)


def _told(violation: ViolationItem) -> str:
    """Describe why a rule does not hold, with the conflicting pods."""
    pods = ", ".join(f"{pod.namespace}/{pod.name}" for pod in violation.conflicts_with)
    return f"{violation.reason} (in conflict with {pods})" if pods else violation.reason


_MARKED = {
    **POD_EXAMPLE,
    "metadata": {
        "name": "web-0",
        "namespace": "shop",
        "deletionTimestamp": "2026-05-04T08:00:00Z",
    },
}
_EVICT = Operation(
    id="evictPod",
    minimal=True,
    access=Namespaced("evict"),
    decided=True,
    tag="placements",
    summary="Mark a pod as to be stopped",
    description="Sets its `deletionTimestamp` and the condition DisruptionTarget; its orchestrator "
    "stops it and confirms with a DELETE. As in Kubernetes, evicting a pod that is on a node is refused while a "
    "disruption budget that selects it allows no disruption. Pods without a node, and pods that are terminating or "
    "finished, can always be evicted. All budgets that select a pod have to allow it.",
    parameters=(DRY_RUN, IDEMPOTENCY_KEY),
    request=Body(
        types={JSON: placement_types.Eviction},
        description="A policy/v1 Eviction; may be absent.",
        example={
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": "web-0", "namespace": "shop"},
        },
        required=False,
    ),
    keeps_unknown=(placement_types.PodIdentity,),
    answers={
        201: Body(types={JSON: object_types.Pod}, description="The pod, marked.", example=_MARKED)
    },
    problems=("Conflict", "EvictionBlocked", "InvalidManifest", "RevisionConflict", *KEY_PROBLEMS),
)


@post(PODS.item + "/eviction", status_code=201, opt=described(_EVICT))
async def evict_pod(request: ApiRequest, services: NamedDependency[Services]) -> DecidedAnswer:
    """Mark a pod for eviction."""
    media_type(request)
    parameters = query(request)
    body = await services.bodies.read(request)
    intent = parse_eviction(body, request.path_params["namespace"], request.path_params["name"])
    asked = with_dry_run(request, parameters, intent)
    render = partial(
        rendered_object,
        visibility_of(request),
        PODS.kind,
        dry=is_dry(parameters),
        minimal=prefers_minimal(request),
        status=201,
    )
    return await submit_once(request, services, asked, body, render)


_EXPLAIN = Operation(
    id="explainPod",
    access=Namespaced("read"),
    reads=True,
    decided=True,
    tag="placements",
    summary="Why a pod is where it is, or why it waits",
    description="Every filter's own verdict on every node and every score, at the head; a placed "
    "pod is taken out of the cluster first. With `node` it is about this node alone, next to the "
    "best ones, and names all that stands against the pod there: `culprits`.",
    parameters=(
        Parameter(name="node", description="The only node to explain.", example="node-7"),
        Parameter(
            name="revision",
            type=WholeNumber,
            description="Explain the pod as it was at this revision, on the cluster as it was then. If "
            "that commit gave the pod its node, on the cluster as it was just before: what was placed "
            "earlier in the same commit is there.",
            example=1042,
        ),
    ),
    answers={
        200: Body(
            types={JSON: Explanation},
            description="The full explanation.",
            example=EXPLANATION_EXAMPLE,
        )
    },
    problems=("Compacted", "InvalidManifest", "Overloaded"),
)


@get(PODS.item + "/explanation", opt=described(_EXPLAIN))
async def explain_pod(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Explain the placement of a stored pod."""
    path, asked = request.path_params, query(request)
    intent = ExplainPod(namespace=path["namespace"], name=path["name"], node_name=asked.get("node"))
    past = number(asked, "revision")
    if past is None:
        answer = await services.scheduler.submit(path["cluster"], intent)
        revision = answer.revision
    else:
        revision = await services.past.head_from(path["cluster"], past)
        answer = await services.scheduler.planners.explain_past(path["cluster"], intent, past)
    explanation = redact_explanation(visibility_of(request), answer.explanation)
    return json_response(msgspec.json.encode(explanation), revision)


PLACEMENT_HANDLERS = (place_pods, bind_pod, confirm_binding, evict_pod, explain_pod)
