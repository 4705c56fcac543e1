"""Capacity: how many more pods of a template fit."""

from typing import Any, cast

import msgspec
from litestar import Response, post
from litestar.di import NamedDependency

from service.api.auth.redaction import redact_capacity, visibility_of
from service.api.http.context import ApiRequest
from service.api.http.operation import JSON, Body, Operation, described
from service.api.http.permissions import Namespaced
from service.api.http.request import media_type, query
from service.api.http.responses import json_response
from service.api.resources.objects import types as object_types
from service.api.resources.objects.operations import CLUSTER_PATH
from service.api.resources.objects.registry import POD_EXAMPLE
from service.api.resources.placements import schemas as placement_types
from service.api.resources.placements.authorization import require_placing
from service.api.resources.placements.parsing import parse_replicas
from service.api.resources.services import Services
from service.model.core import names
from service.model.core.strict_json import decode_strict, encode
from service.model.core.type_rules import declared
from service.model.core.validators import Problems, anything, text, whole_number
from service.scheduler.protocol.answers import CapacityAnswer
from service.scheduler.protocol.intents import FindCapacity, PlacePods

_LIMIT = 1_000
_NAME_MAX = 200

_CAPACITY = Operation(
    id="findCapacity",
    access=Namespaced("place"),
    reads=True,
    decided=True,
    tag="plans",
    summary="How many more pods of a template fit",
    description="Pods of the template are placed on a fork of the cluster, one after the other, by the engine that "
    "also places pods, until one is refused or `limit` have nodes. Nothing is stored. Quotas count as for all pods.",
    request=Body(
        types={JSON: placement_types.CapacityRequest},
        description="The template, and where to stop.",
        example={"template": POD_EXAMPLE, "topologyKey": "topology.kubernetes.io/zone"},
    ),
    limit="placements",
    keeps_unknown=(object_types.PodTemplate,),
    answers={
        200: Body(
            types={JSON: CapacityAnswer},
            description="How many fit, and what ends it.",
            example={
                "revision": 1042,
                "kubernetes": "1.37",
                "fits": 5,
                "limited": True,
                "reason": "Unschedulable",
                "message": "0/2 nodes are available: 2 Insufficient cpu.",
                "domains": {"a": 3, "b": 2},
                "withoutKey": 0,
            },
        )
    },
    problems=("InvalidManifest", "PodDiffers", "Overloaded"),
)


@post(CLUSTER_PATH + "/capacity", status_code=200, opt=described(_CAPACITY))
async def find_capacity(
    request: ApiRequest, services: NamedDependency[Services]
) -> Response[bytes]:
    """Count how many more pods of a template could be placed."""
    media_type(request)
    query(request)
    sent = _checked(await services.bodies.read(request), services.settings.request_items_max)
    limit = min(sent.get("limit") or _LIMIT, services.settings.request_items_max)
    pods = await parse_replicas(_template(sent["template"]), limit, services.scheduler.templates)
    caller = request.context.caller()
    require_placing(caller, PlacePods(pods=pods[:1], path="template"))
    intent = FindCapacity(
        pods=pods,
        topology_key=sent.get("topologyKey"),
        explain=sent.get("explain") or "None",
        caller=caller,
    )
    answer = await services.scheduler.planners.capacity(request.path_params["cluster"], intent)
    redacted = redact_capacity(visibility_of(request), answer)
    return json_response(msgspec.json.encode(redacted), answer.revision)


def _checked(raw: bytes, limit_max: int) -> dict[str, Any]:
    rule = declared(
        placement_types.CapacityRequest,
        {
            "template": anything,
            "limit": whole_number(1, limit_max),
            "topologyKey": text(names.label_key),
        },
    )
    sent, problems = decode_strict(raw), Problems()
    rule(sent, "", problems)
    problems.raise_any()
    return cast("dict[str, Any]", sent)


def _template(sent: Any) -> bytes:
    """Return the template under a name that is unlikely to match a stored pod."""
    metadata = sent.get("metadata") if isinstance(sent, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or len(name) > _NAME_MAX:
        return encode(sent)
    return encode({**sent, "metadata": {**sent["metadata"], "name": f"{name}-capacity"}})


CAPACITY_HANDLERS = (find_capacity,)
