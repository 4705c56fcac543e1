"""Handle the operations that all stored objects have: list, get, put, patch, and delete."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from litestar import Response, delete, get, patch, put
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler

from service.api.auth.redaction import (
    Lists,
    Visibility,
    redact_body,
    redacted_batches,
    require_read,
    visibility_of,
    visible_tag,
)
from service.api.http.body import converted
from service.api.http.context import ApiRequest
from service.api.http.dry_run import is_dry, with_dry_run
from service.api.http.filters import filter_of_bodies, parse_filters
from service.api.http.idempotency import Rendered
from service.api.http.operation import (
    APPLY_JSON,
    APPLY_YAML,
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    described,
)
from service.api.http.pagination import Continue, parse_continue, past_revision
from service.api.http.prefer import as_applied, minimal_object, prefers_minimal
from service.api.http.request import (
    flag,
    header,
    if_match,
    if_none_match,
    media_type,
    number,
    query,
    wrong_parameter,
)
from service.api.http.responses import (
    Streamed,
    dry_response,
    items,
    json_response,
    list_end,
    list_head,
    not_modified,
    object_response,
    revision_headers,
    tag_of,
    warning_header,
    with_warnings,
)
from service.api.http.sparse_fields import ChosenFields, parse_fields, tag_with
from service.api.http.streaming import Pieces
from service.api.reads.events import EVENT_KIND
from service.api.reads.filtered import INDEXED_KINDS, FilteredReads
from service.api.reads.history import KEYS_AT_ONCE
from service.api.reads.stored import BATCH_ROWS, Wanted
from service.api.resources.objects import types as object_types
from service.api.resources.objects.operations import (
    CLUSTER_PATH,
    Resource,
    delete_operation,
    get_operation,
    list_operation,
    patch_operation,
    put_operation,
)
from service.api.resources.objects.server_side_apply import (
    decode_applied,
    manager_of,
    named_manager,
)
from service.api.resources.objects.sorted_lists import (
    SortedList,
    named_with_order,
    parse_order,
    sorted_list,
)
from service.api.resources.services import Services
from service.model.core.errors import NotFound
from service.model.core.primitives import ObjectName
from service.model.core.strict_json import decode_strict
from service.model.json.patch import PatchType
from service.model.log.commit import ObjectRow
from service.model.log.pages import PAGE_BYTES_MAX, ObjectPage
from service.model.registry.kinds import sees
from service.model.registry.manifests import parse_as, with_resource_version
from service.model.selection.object_filters import ObjectFilter
from service.scheduler.protocol.answers import ObjectAnswer
from service.scheduler.protocol.intents import (
    ApplyPatch,
    DeleteObject,
    Intent,
    PatchObject,
    Preconditions,
    PutObject,
)

LIST_LIMIT_MAX = 10_000


_PATCH_TYPES: Mapping[str, PatchType] = {
    MERGE_PATCH: "merge",
    JSON: "merge",
    JSON_PATCH: "json",
    STRATEGIC_MERGE_PATCH: "strategic",
}

_APPLY_TYPES = (APPLY_YAML, APPLY_JSON)

Act = Callable[[ApiRequest, Services, Resource], Awaitable[Response[Any]]]


def object_handlers(resource: Resource) -> list[HTTPRouteHandler]:
    """Return the handlers of one kind of object."""
    handlers = [
        get(resource.collection, opt=described(list_operation(resource)))(
            _bound(list_objects, resource)
        ),
        get(resource.item, opt=described(get_operation(resource)))(_bound(get_object, resource)),
        put(resource.item, opt=described(put_operation(resource)))(_bound(put_object, resource)),
        patch(resource.item, opt=described(patch_operation(resource)))(
            _bound(patch_object, resource)
        ),
        delete(resource.item, status_code=200, opt=described(delete_operation(resource)))(
            _bound(delete_object, resource)
        ),
    ]
    if resource.namespaced:
        everywhere = f"{CLUSTER_PATH}/{resource.plural}"
        operation = described(list_operation(resource, everywhere=True))
        handlers.append(get(everywhere, opt=operation)(_bound(list_objects, resource)))
    return handlers


def _bound(act: Act, resource: Resource) -> Callable[..., Awaitable[Response[Any]]]:
    async def handle(request: ApiRequest, services: NamedDependency[Services]) -> Response[Any]:
        return await act(request, services, resource)

    return handle


async def get_object(
    request: ApiRequest, services: Services, resource: Resource
) -> Response[bytes]:
    """Return an object in its last committed state."""
    namespace, name = _place(request)
    require_read(request, resource.kind, namespace, name)
    parameters, cluster = query(request), request.path_params["cluster"]
    at_least = number(parameters, "minRevision") or 0
    past = number(parameters, "revision")
    chosen = parse_fields(request, parameters, services.settings.fields_max)
    if past is None:
        read = await services.reads_of(resource.kind).get_object(
            cluster, resource.kind, namespace, name, at_least=at_least
        )
    else:
        read = await services.past.get_object(
            cluster, resource.kind, namespace, name, past, at_least
        )
    if read.row is None:
        when = "" if past is None else f" at revision {past}"
        raise NotFound(f"There is no {resource.kind} {_named(namespace, name)}{when}.")
    revision, tag = read.head.revision, tag_with(tag_of(read.row.revision), chosen)
    computed = resource.computed and past is None
    unchanged = None if computed else not_modified(request, tag, revision)
    if unchanged:
        return unchanged
    body = redact_body(visibility_of(request), resource.kind, read.row.body)
    if chosen is not None:
        whole = with_resource_version(body, read.row.revision)
        return json_response(chosen.of(whole), revision, etag=tag)
    return object_response(body, read.row.revision, revision)


async def list_objects(
    request: ApiRequest, services: Services, resource: Resource
) -> Response[Any]:
    """Return the objects of a kind; see `list_of`."""
    return await list_of(request, services, resource.kind)


async def list_of(request: ApiRequest, services: Services, kind: str) -> Response[Any]:
    """Return objects ordered by namespace and name: a page if `limit` is given, else all, streamed.

    With `sort`, the order differs; see `sorted_list`.
    """
    parameters = query(request)
    own = named_with_order(_list_named(request, kind), parameters)
    start = parse_continue(parameters["continue"], own) if "continue" in parameters else None
    past = past_revision(parameters, start)
    chosen = parse_fields(request, parameters, services.settings.fields_max)
    tagged = partial(_list_tag, request, chosen)
    if past is None:
        unchanged = await _unchanged_list(request, services, kind, tagged)
        if unchanged is not None:
            return unchanged
    wanted_objects = parse_filters(kind, parameters)
    lists, passes = _lists(services, kind, wanted_objects, past)
    order, limit = parse_order(kind, parameters), number(parameters, "limit") or None
    rows = BATCH_ROWS if past is None else KEYS_AT_ONCE
    if limit is not None and wanted_objects.asks_nothing and order is None:
        rows = min(limit, LIST_LIMIT_MAX) + 1
    left_out = list[ObjectRow]()
    wanted = Wanted(
        namespace=request.path_params.get("namespace"),
        after=(start.namespace, start.name) if start and order is None else None,
        rows=rows,
        node_name=parameters.get("nodeName") or None,
        at_least=number(parameters, "minRevision") or 0,
        hold=partial(request.context.reservation.hold_answer, may_be_refused=True),
        leave_out=partial(_leave_out, left_out, visibility_of(request)),
    )
    if order is not None and limit is not None:
        asked = SortedList(
            kind, order, wanted_objects, wanted, lists, start, own, past, limit, left_out
        )
        return await sorted_list(request, services, asked, tagged, chosen)
    pages = redacted_batches(
        lists, request.path_params["cluster"], kind, wanted, visibility_of(request)
    )
    passing = _Found(pages, passes)
    head = await passing.start()
    revision = past if past is not None else start.revision if start else head
    answer = _Answer(f"{kind}List", own, revision, head, past is not None, left_out)
    tag = tagged(head if past is None else past)
    if limit is not None:
        return await _page(answer, passing, min(limit, LIST_LIMIT_MAX), tag, chosen)
    request.context.reservation.keeps_room = True
    streamed = _streamed(answer, passing, chosen)
    return Streamed(streamed, headers=revision_headers(head, tag), media_type=JSON)


def _leave_out(left_out: list[ObjectRow], visibility: Visibility, row: ObjectRow) -> None:
    """Record an unreadable object if it would be visible to the caller."""
    if sees(visibility, row.kind, row.namespace, row.name):
        left_out.append(row)


def _lists(
    services: Services, kind: str, wanted: ObjectFilter, past: int | None
) -> tuple[Lists, Callable[[bytes], bool] | None]:
    """Return the reader of a list, and a filter of its bodies, or None if no filter is needed."""
    passes = filter_of_bodies(kind, wanted)
    if past is not None:
        return services.past.lists(past, passes), None
    if passes is not None and kind in INDEXED_KINDS:
        reads, scheduler = services.reads, services.scheduler
        return FilteredReads(reads, scheduler, services.turns, wanted, passes), None
    return services.lists_of(kind), passes


class _Answer(NamedTuple):
    kind: str
    own: str
    """The list's name in continuation tokens."""
    revision: int
    """The revision of the first page."""
    head: int
    is_past: bool
    left_out: list[ObjectRow]
    """The unreadable objects in the part of the list that was read."""


async def _page(
    answer: _Answer, passing: "_Found", limit: int, tag: str, chosen: ChosenFields | None
) -> Response[bytes]:
    """Return one page, with the token for the next."""
    taken, more = await passing.take(limit)
    token, left_out = None, answer.left_out
    if more:
        last = (taken[-1].namespace, taken[-1].name)
        left_out = [row for row in left_out if (row.namespace, row.name) <= last]
        token = Continue(answer.own, answer.revision, *last, answer.is_past).token()
    body = list_head(answer.kind, answer.revision, token) + items(taken, chosen)
    body += list_end(left_out)
    return json_response(body, answer.head, etag=tag)


async def _unchanged_list(
    request: ApiRequest, services: Services, kind: str, tagged: Callable[[int], str]
) -> Response[bytes] | None:
    """Return 304 if the cluster has not changed since the client read the list, or None.

    Lists whose objects also change without a revision never count as unchanged.
    """
    if kind == EVENT_KIND or services.is_computed(kind) or header(request, "if-none-match") is None:
        return None
    head = await services.reads.head(request.path_params["cluster"])
    return not_modified(request, tagged(head.revision), head.revision)


def _list_tag(request: ApiRequest, chosen: ChosenFields | None, revision: int) -> str:
    """Return the entity tag of a list, which depends on visible namespaces and chosen fields."""
    return tag_with(visible_tag(visibility_of(request), f'W/"{revision}"'), chosen)


async def put_object(
    request: ApiRequest, services: Services, resource: Resource
) -> Response[bytes]:
    """Create an object, or replace it."""
    media_type(request)
    parameters = query(request)
    namespace, name = _place(request)
    body = await services.bodies.read(request)
    manifest = parse_as(resource.kind, body, services.scheduler.templates, namespace, name)
    intent = PutObject(
        manifest=manifest,
        manager=manager_of(request, parameters),
        preconditions=Preconditions(
            resource_version=manifest.resource_version or None,
            if_match=if_match(request),
            if_none_match=if_none_match(request),
        ),
        caller=request.context.caller(),
    )
    return await _submit(request, services, resource, parameters, intent)


async def patch_object(
    request: ApiRequest, services: Services, resource: Resource
) -> Response[bytes]:
    """Patch single fields of an object, or apply a manager's fields to it."""
    parameters = query(request)
    wanted = _applying if media_type(request) in _APPLY_TYPES else _patching
    intent = await wanted(request, services, parameters)
    namespace, name = _place(request)
    made = intent(
        kind=resource.kind,
        namespace=namespace,
        name=name,
        preconditions=Preconditions(
            if_match=if_match(request), if_none_match=if_none_match(request)
        ),
        caller=request.context.caller(),
    )
    return await _submit(request, services, resource, parameters, made)


async def _patching(
    request: ApiRequest, services: Services, parameters: Mapping[str, str]
) -> Callable[..., PatchObject]:
    """Return a partial `PatchObject`; the caller adds kind, namespace, and name."""
    patch_type = patch_type_of(request)
    if "force" in parameters:
        raise wrong_parameter("force", "is for server-side apply only", parameters["force"])
    body = await services.bodies.read(request)
    return partial(
        PatchObject,
        patch_type=patch_type,
        patch=decode_strict(body),
        manager=manager_of(request, parameters),
    )


async def _applying(
    request: ApiRequest, services: Services, parameters: Mapping[str, str]
) -> Callable[..., ApplyPatch]:
    """Return a partial `ApplyPatch`; the caller adds kind, namespace, and name."""
    manager, force = named_manager(request, parameters), flag(parameters, "force")
    body = await services.bodies.read(request)
    applied = await decode_applied(body, services.settings.apply_yaml_bytes_max)
    return partial(ApplyPatch, applied=applied, manager=manager, force=force)


async def delete_object(
    request: ApiRequest, services: Services, resource: Resource
) -> Response[bytes]:
    """Delete an object at once, and return its last state."""
    parameters = query(request)
    namespace, name = _place(request)
    options = await delete_options(request, services)
    intent = DeleteObject(
        kind=resource.kind,
        namespace=namespace,
        name=name,
        preconditions=Preconditions(
            uid=options.uid,
            resource_version=options.resource_version,
            if_match=if_match(request),
            if_none_match=if_none_match(request),
        ),
        caller=request.context.caller(),
    )
    return await _submit(request, services, resource, parameters, intent)


async def _submit(
    request: ApiRequest,
    services: Services,
    resource: Resource,
    parameters: Mapping[str, str],
    intent: Intent[ObjectAnswer],
) -> Response[bytes]:
    """Submit a write, and return the resulting or deleted object."""
    answer = await services.scheduler.submit(
        request.path_params["cluster"],
        with_dry_run(request, parameters, intent),
        caller=request.audited_caller,
    )
    services.metrics.warned(answer.warnings)
    body = redact_body(visibility_of(request), resource.kind, answer.body)
    return written_response(request, answer, body, dry=is_dry(parameters))


def written_response(
    request: ApiRequest, answer: ObjectAnswer, body: bytes, *, dry: bool
) -> Response[bytes]:
    """Return the answer to a write: the object as visible to the caller, or a minimal one."""
    status, warnings = 201 if answer.created else 200, answer.warnings
    minimal = prefers_minimal(request)
    if minimal:
        body = minimal_object(body)
    if dry:
        response = dry_response(body, answer.revision, status=status, warnings=warnings)
    else:
        version, revision = answer.resource_version, answer.revision
        response = object_response(body, version, revision, status=status, warnings=warnings)
    return as_applied(response) if minimal else response


def rendered_object(
    visibility: Visibility,
    kind: str,
    answer: ObjectAnswer,
    *,
    dry: bool,
    minimal: bool,
    status: int = 200,
) -> Rendered:
    """Render the answer to a write, which may be replayed: the object as visible to the caller."""
    body = redact_body(visibility, kind, answer.body)
    if minimal:
        body = minimal_object(body)
    if not dry:
        body = with_resource_version(body, answer.resource_version)
    return Rendered(
        with_warnings(body, answer.warnings),
        status=status,
        etag=None if dry else tag_of(answer.resource_version),
        warning=warning_header(answer.warnings),
        minimal=minimal,
    )


def patch_type_of(request: ApiRequest) -> PatchType:
    """Return the kind of patch declared by the request's Content-Type."""
    return _PATCH_TYPES[media_type(request)]


class _Found:
    """The rows of a list that pass its filters, batch by batch.

    The first batch is read before the answer begins, so that its errors still get a status.
    """

    def __init__(
        self, pages: AsyncIterator[ObjectPage], passes: Callable[[bytes], bool] | None
    ) -> None:
        self._pages = pages
        self._passes = passes
        self._batch: list[ObjectRow] = []

    async def start(self) -> int:
        """Read the first batch, and return the revision of the head at which it was read."""
        page = await anext(self._pages)
        self._batch = self._passing(page)
        return page.head.revision

    async def batches(self) -> AsyncIterator[list[ObjectRow]]:
        """Yield all batches, including the first."""
        first, self._batch = self._batch, []
        yield first
        del first
        async for page in self._pages:
            yield self._passing(page)

    async def take(self, limit: int) -> tuple[list[ObjectRow], bool]:
        """Return up to `limit` rows, fewer if they are large, and whether there are more."""
        taken, size = list[ObjectRow](), 0
        async for batch in self.batches():
            for row in batch:
                if len(taken) == limit or size >= PAGE_BYTES_MAX:
                    return taken, True
                taken.append(row)
                size += len(row.body)
        return taken, False

    def _passing(self, page: ObjectPage) -> list[ObjectRow]:
        if self._passes is None:
            return page.rows
        return [row for row in page.rows if self._passes(row.body)]


async def _streamed(answer: _Answer, passing: _Found, chosen: ChosenFields | None) -> Pieces:
    """Yield the list in pieces, with its head in front of the first objects.

    If these do not fit the byte budget, the whole answer can still be refused.
    """
    before = head = list_head(answer.kind, answer.revision, None)
    async for batch in passing.batches():
        if batch:
            yield before + items(batch, chosen)
            before = b","
    end = list_end(answer.left_out)
    yield head + end if before is head else end


def _place(request: ApiRequest) -> ObjectName:
    """Return the namespace and name in the path; the namespace is "" if the path has none."""
    return request.path_params.get("namespace", ""), request.path_params["name"]


def _list_named(request: ApiRequest, kind: str) -> str:
    """Return cluster, kind, and namespace, which identify a list in continuation tokens."""
    scope = request.path_params.get("namespace", "")
    return f"{request.path_params['cluster']}/{kind}/{scope}"


def _named(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


async def delete_options(
    request: ApiRequest, services: Services
) -> object_types.DeletePreconditions:
    """Return the preconditions in the body of a deletion, all unset if there is no body."""
    media_type(request)
    body = await services.bodies.read(request)
    if not body.strip():
        return object_types.DeletePreconditions()
    options = converted(decode_strict(body), object_types.DeleteOptions)
    return options.preconditions or object_types.DeletePreconditions()
