"""All handlers of the API, and the document that describes them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache

import msgspec
from litestar import HttpMethod, Response, route
from litestar.handlers import HTTPRouteHandler

from service.api.access import Access, access_of, declared
from service.api.apply import APPLY_HANDLERS
from service.api.audits import AUDIT_HANDLERS
from service.api.clusters import CLUSTER_HANDLERS
from service.api.document import build_document
from service.api.events import EVENT_HANDLERS
from service.api.objects import object_handlers
from service.api.overview import OVERVIEW_HANDLERS
from service.api.pages import docs_page
from service.api.placements import PLACEMENT_HANDLERS
from service.api.principals import PRINCIPAL_HANDLERS
from service.api.resources import RESOURCES
from service.api.schemas import Document
from service.api.server import SERVER_HANDLERS
from service.api.simulations import SIMULATION_HANDLERS
from service.api.violations import VIOLATION_HANDLERS
from service.api.watch import WATCH_HANDLERS

_OPERATIONS: tuple[HTTPRouteHandler, ...] = (
    *CLUSTER_HANDLERS,
    *(handler for resource in RESOURCES for handler in object_handlers(resource)),
    *APPLY_HANDLERS,
    *PLACEMENT_HANDLERS,
    *OVERVIEW_HANDLERS,
    *VIOLATION_HANDLERS,
    *SIMULATION_HANDLERS,
    *WATCH_HANDLERS,
    *EVENT_HANDLERS,
    *PRINCIPAL_HANDLERS,
    *AUDIT_HANDLERS,
    *SERVER_HANDLERS,
)


def _options_handlers(handlers: Iterable[HTTPRouteHandler]) -> list[HTTPRouteHandler]:
    """Answers to OPTIONS for each path, for whoever may call its first handler; Litestar's own know only that one's method."""
    methods: dict[str, set[str]] = defaultdict(lambda: {"OPTIONS"})
    access: dict[str, Access] = {}
    for handler in handlers:
        also = {"HEAD"} if "GET" in handler.http_methods else set()
        for path in handler.paths:
            methods[path] |= {*handler.http_methods, *also}
            access.setdefault(path, access_of(handler))
    return [_options_handler(path, sorted(methods[path]), access[path]) for path in methods]


def _options_handler(path: str, allowed: Sequence[str], access: Access) -> HTTPRouteHandler:
    @route(path, http_method=HttpMethod.OPTIONS, status_code=204, opt=declared(access))
    async def options() -> Response[None]:
        return Response(None, headers={"allow": ", ".join(allowed)})

    return options


HANDLERS = (*_options_handlers(_OPERATIONS), *_OPERATIONS)


@cache
def openapi_document() -> Document:
    """The OpenAPI document of all handlers."""
    return build_document(HANDLERS)


@cache
def encoded_document() -> bytes:
    """The same as it is sent; anybody may ask for it as often as they like."""
    return msgspec.json.encode(openapi_document())


@cache
def document_page() -> str:
    """The same for people."""
    return docs_page(openapi_document())
