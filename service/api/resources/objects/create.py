"""Create objects that must not exist yet, with generated names on request: POST on a collection."""

from functools import partial

from litestar import post
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler

from service.api.auth.redaction import visibility_of
from service.api.http.context import ApiRequest
from service.api.http.dry_run import is_dry, with_dry_run
from service.api.http.idempotency import IDEMPOTENCY_KEY, KEY_PROBLEMS
from service.api.http.operation import described
from service.api.http.prefer import prefers_minimal
from service.api.http.request import media_type, query
from service.api.resources.dispatch import DecidedAnswer, submit_once
from service.api.resources.objects.operations import Resource, create_operation
from service.api.resources.objects.registry import RESOURCES
from service.api.resources.objects.routes import rendered_object
from service.api.resources.objects.server_side_apply import manager_of
from service.api.resources.objects.unnamed_manifests import GenerateNameParser
from service.api.resources.services import Services
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
    parse = GenerateNameParser(
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
    asked = with_dry_run(request, parameters, intent)
    return await submit_once(request, services, asked, body, render)


CREATION_HANDLERS = tuple(
    # POST on the collection of plans computes a plan without storing it.
    _handler(resource)
    for resource in RESOURCES
    if resource.kind != PLAN.kind
)
