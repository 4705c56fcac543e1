"""All handlers of the API, and the OpenAPI document that describes them."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache

import msgspec
from litestar import HttpMethod, Response, route
from litestar.handlers import HTTPRouteHandler

from service.api.http.permissions import Access, access_of, declared
from service.api.openapi.document import build_document
from service.api.openapi.html_pages import docs_page
from service.api.openapi.schemas import Document
from service.api.resources.access import PRINCIPAL_HANDLERS
from service.api.resources.access.audit_log import AUDIT_HANDLERS
from service.api.resources.bulk.apply import APPLY_HANDLERS
from service.api.resources.bulk.export import OVERVIEW_HANDLERS
from service.api.resources.bulk.pod_status import STATUS_HANDLERS
from service.api.resources.clusters import CLUSTER_HANDLERS
from service.api.resources.clusters.revisions import REVISION_HANDLERS
from service.api.resources.extender import EXTENDER_HANDLERS
from service.api.resources.nodes.leases import NODE_LEASE_HANDLERS
from service.api.resources.objects import object_handlers
from service.api.resources.objects.create import CREATION_HANDLERS
from service.api.resources.objects.delete_collection import DELETION_HANDLERS
from service.api.resources.objects.events import EVENT_HANDLERS
from service.api.resources.objects.registry import RESOURCES
from service.api.resources.placements import PLACEMENT_HANDLERS
from service.api.resources.placements.capacity import CAPACITY_HANDLERS
from service.api.resources.placements.multi_cluster import OVER_CLUSTERS_HANDLERS
from service.api.resources.placements.simulations import SIMULATION_HANDLERS
from service.api.resources.placements.violations import VIOLATION_HANDLERS
from service.api.resources.plans import PLAN_HANDLERS
from service.api.resources.plans.drain import DRAIN_HANDLERS
from service.api.resources.plans.repairs import REPAIR_HANDLERS
from service.api.resources.server import SERVER_HANDLERS
from service.api.resources.server.docs import DOCUMENTATION_HANDLERS
from service.api.resources.server.ui import PAGE_HANDLERS
from service.api.resources.watch import WATCH_HANDLERS
from service.api.resources.watch.bindings import BINDING_HANDLERS
from service.api.resources.webhooks import WEBHOOK_HANDLERS

_OPERATIONS: tuple[HTTPRouteHandler, ...] = (
    *CLUSTER_HANDLERS,
    *REVISION_HANDLERS,
    *(handler for resource in RESOURCES for handler in object_handlers(resource)),
    *CREATION_HANDLERS,
    *DELETION_HANDLERS,
    *NODE_LEASE_HANDLERS,
    *DRAIN_HANDLERS,
    *APPLY_HANDLERS,
    *STATUS_HANDLERS,
    *PLACEMENT_HANDLERS,
    *OVER_CLUSTERS_HANDLERS,
    *EXTENDER_HANDLERS,
    *OVERVIEW_HANDLERS,
    *VIOLATION_HANDLERS,
    *PLAN_HANDLERS,
    *REPAIR_HANDLERS,
    *CAPACITY_HANDLERS,
    *SIMULATION_HANDLERS,
    *WATCH_HANDLERS,
    *BINDING_HANDLERS,
    *WEBHOOK_HANDLERS,
    *EVENT_HANDLERS,
    *PRINCIPAL_HANDLERS,
    *AUDIT_HANDLERS,
    *SERVER_HANDLERS,
    *PAGE_HANDLERS,
    *DOCUMENTATION_HANDLERS,
)


def _options_handlers(handlers: Iterable[HTTPRouteHandler]) -> list[HTTPRouteHandler]:
    """Return OPTIONS handlers for all paths, with the access of each path's first handler.

    Litestar's own OPTIONS handlers would list only the methods of that first handler.
    """
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
    """Build the OpenAPI document of all handlers, which takes about a second."""
    return build_document(HANDLERS)


class Documents:
    """A cache of the encoded OpenAPI document and its HTML page, which anyone may request.

    They are built in a thread at the first request, so that other requests need not wait.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._openapi: bytes | None = None
        self._page: str | None = None

    async def openapi(self) -> bytes:
        """Return the OpenAPI document."""
        async with self._lock:
            if self._openapi is None:
                self._openapi = await asyncio.to_thread(encoded_document)
        return self._openapi

    async def page(self) -> str:
        """Return the OpenAPI document as an HTML page."""
        async with self._lock:
            if self._page is None:
                self._page = await asyncio.to_thread(_page)
        return self._page


def encoded_document() -> bytes:
    """Build and encode the OpenAPI document."""
    return msgspec.json.encode(openapi_document())


def _page() -> str:
    return docs_page(openapi_document())
