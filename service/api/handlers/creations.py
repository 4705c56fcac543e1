"""Creates objects whose names the server makes, or that must not be there yet: POST on a collection."""

from functools import partial

from litestar import post
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler

from service.api.bodies.dry_runs import dry_if_asked, is_dry
from service.api.bodies.generated_names import NewNames
from service.api.bodies.request_reading import media_type, query
from service.api.bodies.return_minimal import prefers_minimal
from service.api.bodies.server_side_apply import manager_of
from service.api.handler_services.decided_operations import DecidedAnswer, submit_once
from service.api.handler_services.idempotency import IDEMPOTENCY_KEY, KEY_PROBLEMS
from service.api.handler_services.server_services import Services
from service.api.handlers.objects import rendered_object
from service.api.http.context import ApiRequest
from service.api.openapi.object_operations import Resource, create_operation
from service.api.openapi.operation_declaration import described
from service.api.openapi.resources import RESOURCES
from service.api.security.visibility import visibility_of
from service.model.plans.plan import PLAN
from service.model.registry.manifests import parse_new
from service.scheduler.protocol.intents import PutObject


def _handler(resource: Resource) -> HTTPRouteHandler:
    operation = create_operation(resource, IDEMPOTENCY_KEY, KEY_PROBLEMS)

    @post(resource.collection, status_code=201, opt=described(operation))
    async def handle(request: ApiRequest, services: NamedDependency[Services]) -> DecidedAnswer:
        return await _create(request, services, resource)

    return handle


async def _create(request: ApiRequest, services: Services, resource: Resource) -> DecidedAnswer:
    media_type(request)
    parameters = query(request)
    body = await services.bodies.read(request)
    parse = NewNames(
        partial(
            parse_new,
            resource.kind,
            templates=services.scheduler.templates,
            namespace=request.path_params.get("namespace"),
        )
    )
    intent = PutObject(
        manifest=parse(body),
        manager=manager_of(request, parameters),
        create=True,
        caller=request.context.caller(),
    )
    render = partial(
        rendered_object,
        visibility_of(request),
        resource.kind,
        dry=is_dry(parameters),
        minimal=prefers_minimal(request),
        status=201,
    )
    asked = dry_if_asked(request, parameters, intent)
    return await submit_once(request, services, asked, body, render)


CREATION_HANDLERS = tuple(
    # A POST on the collection of plans makes one that is not kept.
    _handler(resource)
    for resource in RESOURCES
    if resource.kind != PLAN.kind
)
