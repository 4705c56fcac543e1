"""Simulations: place pods on a cluster described in the request, without storing anything."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeVar

import msgspec
from litestar import Response, post
from litestar.di import NamedDependency

from service.api.http.body import converted, items_in, parse_items, read_members, unknown_fields
from service.api.http.context import ApiRequest
from service.api.http.operation import JSON, Body, Operation, described
from service.api.http.permissions import Namespaced
from service.api.http.request import media_type, query
from service.api.http.responses import warning_header
from service.api.resources.objects import types as object_types
from service.api.resources.objects.registry import EXPLANATION_EXAMPLE, NODES, POD_EXAMPLE
from service.api.resources.placements import schemas as placement_types
from service.api.resources.placements.parsing import parse_pods, refuse_repeated
from service.api.resources.services import Services
from service.model.cluster.cluster_config import ClusterConfig, parse_config
from service.model.cluster.config_rules import version_name
from service.model.core.errors import FieldError, InvalidManifest
from service.model.core.strict_json import decode_strict
from service.model.core.validators import Problems
from service.model.json.streaming import Member, whole
from service.model.nodes.namespaces import parse_namespace
from service.model.pods.template_cache import TemplateCache
from service.model.registry.manifests import (
    AnyManifest,
    PodManifest,
    parse_any_declared,
    parse_node,
    parse_pod,
)
from service.scheduler.protocol.placements import PlacementAnswer
from service.scheduler.simulation import Simulation

T = TypeVar("T", bound=AnyManifest)
P = TypeVar("P")

_KNOWN = tuple(
    field.encode_name for field in msgspec.structs.fields(placement_types.SimulationRequest)
)
_WORDS = ("policy", "preemption", "preemptionScope", "compareTo")
_LISTS = ("namespaces", "nodes", "objects", "pods", "place")

_SIMULATE = Operation(
    id="simulate",
    warns=True,
    access=Namespaced("place"),
    reads=True,
    tag="placements",
    summary="Place pods on a cluster that is written out in the request",
    description="Stateless, by the same engine as placements, always fully explained.",
    request=Body(
        types={JSON: placement_types.SimulationRequest},
        description="The cluster, and what to place.",
        example={"nodes": [NODES.example], "pod": POD_EXAMPLE},
    ),
    limit="simulations",
    components={"RuleObject": object_types.RULE_OBJECT},
    answers={
        200: Body(
            types={JSON: PlacementAnswer},
            description="What would become of each pod.",
            example={
                "revision": 0,
                "committed": False,
                "attempts": 1,
                "kubernetes": "1.37",
                "results": [
                    {
                        "namespace": "shop",
                        "name": "web-0",
                        "uid": None,
                        "outcome": "Placed",
                        "nodeName": "node-7",
                        "score": 201,
                        "plannedRevision": 0,
                        "explanation": EXPLANATION_EXAMPLE,
                    }
                ],
            },
        )
    },
    problems=("InvalidManifest",),
)


@post("/v1/simulations", status_code=200, opt=described(_SIMULATE))
async def simulate(request: ApiRequest, services: NamedDependency[Services]) -> Response[bytes]:
    """Place pods on the cluster in the request."""
    media_type(request)
    query(request)
    body = await services.bodies.read(request)
    simulation = await parse_simulation(
        body, services.scheduler.templates, services.settings.request_items_max
    )
    answer = await services.scheduler.simulate(simulation)
    services.metrics.warned(answer.warnings)
    warning = warning_header(answer.warnings)
    headers = {} if warning is None else {"warning": warning}
    return Response(msgspec.json.encode(answer), headers=headers, media_type=JSON)


async def parse_simulation(raw: bytes, templates: TemplateCache, items_max: int) -> Simulation:
    """Parse a simulation from a request body.

    Raises:
        MalformedJSON: the body is not JSON that Moorage accepts.
        InvalidManifest: the request or its objects are invalid; the error lists everything wrong.
    """
    members = await read_members(raw, read=_KNOWN, lists=_LISTS, items_max=items_max)
    members = {name: value for name, value in members.items() if value != b"null"}
    _refuse_shape(members)
    objects = partial(_objects, members, items_max)
    pod = partial(parse_pod, templates=templates)
    kept = partial(parse_any_declared, templates=templates)
    errors: list[FieldError] = []
    simulation = Simulation(
        config=await _noting(errors, _config(members.get("config")), ClusterConfig()),
        namespaces=await _noting(errors, objects("namespaces", parse_namespace), ()),
        nodes=await _noting(errors, objects("nodes", parse_node), ()),
        objects=await _noting(errors, objects("objects", kept), ()),
        pods=await _noting(errors, objects("pods", pod), ()),
        place=await _noting(errors, _to_place(members, templates, items_max), ()),
        path="place" if "place" in members else "pod",
    )
    options = await _noting(errors, _options(members), placement_types.SimulationRequest())
    if errors:
        raise InvalidManifest(errors)
    return msgspec.structs.replace(
        simulation,
        all_or_nothing=options.policy == "AllOrNothing",
        preemption=options.preemption,
        preemption_scope=options.preemption_scope,
        compare_to=options.compare_to,
    )


async def _noting(errors: list[FieldError], part: Awaitable[P], otherwise: P) -> P:
    """Return a part of the request; if it is invalid, add its errors and return `otherwise`."""
    try:
        return await part
    except InvalidManifest as error:
        errors += error.errors
        return otherwise


def _refuse_shape(members: Mapping[str, Member]) -> None:
    errors = unknown_fields(members, _KNOWN)
    if ("pod" in members) == ("place" in members):
        errors.append(FieldError("", "must have exactly one of pod and place"))
    if errors:
        raise InvalidManifest(errors)


async def _config(raw: Member | None) -> ClusterConfig:
    if raw is None:
        return ClusterConfig()
    try:
        return parse_config(decode_strict(whole(raw)))
    except InvalidManifest as error:
        raise error.under("config") from None


async def _options(members: Mapping[str, Member]) -> placement_types.SimulationRequest:
    """Parse the options of the request, without its objects."""
    given = {name: decode_strict(whole(members[name])) for name in _WORDS if name in members}
    if "compareTo" in given:
        problems = Problems()
        version_name(given["compareTo"], "compareTo", problems)
        problems.raise_any()
    return converted(given, placement_types.SimulationRequest)


async def _objects(
    members: Mapping[str, Member], items_max: int, field: str, parse: Callable[[bytes], T]
) -> tuple[T, ...]:
    objects = await parse_items(items_in(members.get(field, b"[]"), field, items_max), field, parse)
    refuse_repeated(objects, field)
    return tuple(objects)


async def _to_place(
    members: Mapping[str, Member], templates: TemplateCache, items_max: int
) -> tuple[PodManifest, ...]:
    if "place" in members:
        return await parse_pods(members["place"], "place", templates, items_max)
    try:
        return (parse_pod(whole(members["pod"]), templates, to_place=True),)
    except InvalidManifest as error:
        raise error.under("pod") from None


SIMULATION_HANDLERS = (simulate,)
