"""Plans: change a fork of a cluster, set a goal, and return or execute the steps toward it."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

import msgspec
from litestar import Response, post
from litestar.di import NamedDependency

from service.api.auth.redaction import Visibility, redact_plan, visibility_of
from service.api.http.context import ApiRequest
from service.api.http.idempotency import IDEMPOTENCY_KEY, KEY_PROBLEMS, Rendered
from service.api.http.operation import JSON, Body, Operation, described
from service.api.http.permissions import Namespaced
from service.api.http.request import media_type, query
from service.api.http.responses import json_response
from service.api.resources.dispatch import DecidedAnswer, submit_once
from service.api.resources.objects.operations import CLUSTER_PATH
from service.api.resources.placements.authorization import require_planning
from service.api.resources.plans import schemas as plan_types
from service.api.resources.plans.parsing import PlanRequest, parse_plan, parse_plan_commit
from service.api.resources.services import Services
from service.model.pods.template_cache import TemplateCache
from service.scheduler.protocol.intents import CommitPlan
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.plans import PlanAnswer, Planned

_Parse: TypeAlias = Callable[[bytes, TemplateCache, Limits, int], Awaitable[PlanRequest]]

_TOTALS = {
    "nodes": 3,
    "pods": 12,
    "resources": {
        "cpu": {"allocatable": "12", "requested": "3", "utilization": 0.25, "largestFree": "4"}
    },
}

_PLACED = {
    "revision": 1042,
    "status": "Planned",
    "kubernetes": "1.37",
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
}
_REMOVAL = {
    "type": "Remove",
    "namespace": "shop",
    "selector": {"matchLabels": {"app": "web"}},
    "count": 1,
}
_RELEASE = {
    "type": "Replace",
    "namespace": "shop",
    "owner": {"kind": "ReplicaSet", "name": "web-v1"},
    "template": {
        "metadata": {"name": "web-v2", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web:2"}]},
    },
    "replicas": 1,
    "maxSurge": 1,
    "maxUnavailable": 0,
}
_RELEASED = {
    "revision": 1042,
    "status": "Planned",
    "kubernetes": "1.37",
    "complete": True,
    "changed": [],
    "steps": [
        {
            "action": "Place",
            "namespace": "shop",
            "name": "web-v2-0",
            "to": "b-7",
            "wave": 1,
            "reason": "it is of the new template",
        },
        {
            "action": "Evict",
            "namespace": "shop",
            "name": "web-v1-0",
            "from": "a-1",
            "wave": 2,
            "reason": "pods of the new template come in its place",
        },
    ],
    "stepsTotal": 2,
    "unplaced": [],
    "unplacedTotal": 0,
    "before": _TOTALS,
    "after": _TOTALS,
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
        types={JSON: plan_types.PlanRequest},
        description="The changes, and the goal.",
        named={
            "Place": {
                "changes": [
                    {
                        "op": "RemoveNodes",
                        "topology": {"key": "topology.kubernetes.io/zone", "values": ["a"]},
                    }
                ],
                "goal": {"type": "Place", "displaced": True},
                "bounds": {"seconds": 5},
            },
            "Drain": {"goal": {"type": "Drain", "nodes": {"names": ["node-7"]}}},
            "Remove": {"goal": _REMOVAL},
            "Replace": {"goal": _RELEASE, "explain": "Summary"},
            "Fit": {
                "goal": {"type": "Fit", "podRef": {"namespace": "shop", "name": "web-9"}},
                "bounds": {"seconds": 2, "protect": {"priority": 1000}},
            },
            "Compare": {
                "changes": [{"op": "SetConfig", "config": {"kubernetes": "1.37"}}],
                "goal": {"type": "Compare"},
            },
            "Rebalance": {
                "goal": {
                    "type": "Rebalance",
                    "objectives": ["Violations", "Fragmentation", "Preferences"],
                    "resource": "nvidia.com/gpu",
                    "block": "4",
                    "movesMax": 5,
                }
            },
        },
    ),
    limit="placements",
    answers={
        200: Body(
            types={JSON: PlanAnswer},
            description="The plan.",
            named={"Place": _PLACED, "Replace": _RELEASED},
        )
    },
    problems=("InvalidManifest", "PodDiffers", "Overloaded"),
)


@post(CLUSTER_PATH + "/plans", status_code=200, opt=described(_PLAN))
async def make_plan(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Make a plan without storing it."""
    asked, _ = await _asked(request, services, parse_plan)
    planned = await services.scheduler.planners.plan(request.path_params["cluster"], asked.intent)
    redacted = redact_plan(visibility_of(request), planned, asked.steps_max)
    return json_response(msgspec.json.encode(redacted), planned.revision)


_COMMIT = Operation(
    id="commitPlan",
    access=Namespaced("place"),
    decided=True,
    tag="plans",
    summary="Make a plan and carry it out in one commit",
    description="The plan is made as by `makePlan`, and if its goal is reached, all of it is done in the commit that "
    "follows: `RemovePods` deletes pods, `Place` binds pods, and `Remove` marks pods on nodes as to be stopped, like an "
    "eviction, and deletes those without a node. Other changes and goals are refused. With `steps`, as a plan has told "
    "them, it is a conflict if the plan is another one by now. If the goal is not reached, nothing is done, and `status` "
    "is Planned. To delete pods on nodes takes the verb `observe`, to have them stopped `evict`.",
    parameters=(IDEMPOTENCY_KEY,),
    request=Body(
        types={JSON: plan_types.PlanCommit},
        description="The plan, and the steps that it has to have.",
        example={
            "goal": _REMOVAL,
            "steps": [{"action": "Delete", "namespace": "shop", "name": "web-3", "from": "b-7"}],
        },
    ),
    limit="placements",
    answers={
        200: Body(
            types={JSON: PlanAnswer},
            description="The plan, and whether it was carried out.",
            example={
                "revision": 1043,
                "status": "Committed",
                "kubernetes": "1.37",
                "complete": True,
                "changed": [],
                "steps": [
                    {
                        "action": "Delete",
                        "namespace": "shop",
                        "name": "web-3",
                        "from": "b-7",
                        "wave": 1,
                        "reason": "the others are left best without it",
                    }
                ],
                "stepsTotal": 1,
                "unplaced": [],
                "unplacedTotal": 0,
                "before": _TOTALS,
                "after": {**_TOTALS, "pods": 11},
            },
        )
    },
    problems=("Conflict", "InvalidManifest", "PodDiffers", *KEY_PROBLEMS),
)


@post(CLUSTER_PATH + "/plan-commits", status_code=200, opt=described(_COMMIT))
async def commit_plan(request: ApiRequest, services: NamedDependency[Services]) -> DecidedAnswer:
    """Make a plan, and execute it if it reaches its goal."""
    asked, body = await _asked(request, services, parse_plan_commit)
    intent = CommitPlan(plan=asked.intent, expected=asked.expected)
    render = partial(_rendered, visibility_of(request), asked.steps_max)
    return await submit_once(request, services, intent, body, render)


async def _asked(
    request: ApiRequest, services: Services, parse: _Parse
) -> tuple[PlanRequest, bytes]:
    """Return the parsed plan request, after checking the caller's rights, and the raw body."""
    media_type(request)
    query(request)
    body = await services.bodies.read(request)
    caller, scheduler = request.context.caller(), services.scheduler
    parsed = await parse(
        body, scheduler.templates, scheduler.limits, services.settings.request_items_max
    )
    require_planning(caller, parsed.intent)
    intent = msgspec.structs.replace(parsed.intent, caller=caller)
    return parsed._replace(intent=intent), body


def _rendered(visibility: Visibility, steps_max: int, planned: Planned) -> Rendered:
    return Rendered(msgspec.json.encode(redact_plan(visibility, planned, steps_max)))


PLAN_HANDLERS = (make_plan, commit_plan)
