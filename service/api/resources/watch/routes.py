"""Stream a cluster's changes as they are committed."""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from litestar import get
from litestar.di import NamedDependency

from service.api.auth.redaction import watch_scope
from service.api.http.context import ApiRequest
from service.api.http.disconnect import WaitingClient
from service.api.http.filters import parse_field_selector, parse_label_selector
from service.api.http.operation import (
    Body,
    Operation,
    Parameter,
    WholeNumber,
    described,
)
from service.api.http.permissions import Namespaced, require
from service.api.http.problems import RevisionNotReached
from service.api.http.request import integer_header, number, query, wrong_parameter
from service.api.http.responses import Streamed, revision_headers
from service.api.http.streaming import UNBUFFERED
from service.api.resources.objects.operations import CLUSTER_PATH
from service.api.resources.objects.registry import RESOURCES
from service.api.resources.services import Services
from service.api.resources.watch.schemas import WATCH_EVENT, WATCH_TYPES, WatchStream
from service.api.resources.watch.sse import EVENT_STREAM, EventWriter
from service.api.resources.watch.stream import ChangeStream, Writer
from service.model.core.errors import Overloaded
from service.model.core.primitives import CLUSTER_KIND, AtLeastOne
from service.model.log.commit import BodySelection
from service.model.registry.manifests import PodManifest
from service.model.selection.object_filters import FieldRequirement
from service.model.selection.selectable_fields import NODE_NAME
from service.scheduler.watching import WatchSelection

TIMEOUT_SECONDS_MAX = 24 * 60 * 60
OPEN_SECONDS_MAX = 10.0
"""The number of seconds that a watch may wait for room before it is refused as overloaded."""
_UNWATCHED_SECONDS = 0.1
"""The number of seconds after which a watch that is still opening checks for a disconnect.

Faster watches leave all reads from the client to their stream, since canceling a read may break the
next one.
"""
_KINDS = (*(resource.kind for resource in RESOURCES), CLUSTER_KIND)

_EXAMPLE = """id: 1043
event: ADDED
data: {"kind":"Namespace","object":{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","resourceVersion":"1043"}}}

id: 1043
event: BOOKMARK
data: {"kind":"Bookmark","object":{"metadata":{"resourceVersion":"1043"}}}

"""

SINCE = Parameter(
    name="sinceRevision",
    type=WholeNumber,
    description="Only changes after this revision; those after the present one if absent.",
    example=1042,
)

LAST_EVENT_ID = Parameter(
    name="Last-Event-ID",
    place="header",
    type=WholeNumber,
    description="The `id` of the last event seen; wins over `sinceRevision`.",
    example=1042,
)

TIMEOUT = Parameter(
    name="timeoutSeconds",
    type=AtLeastOne,
    description=f"End the stream after so long, at most {TIMEOUT_SECONDS_MAX}.",
    example=300,
)

WATCH_PROBLEMS = (
    "Compacted",
    "GrantsChanged",
    "HistoryReplaced",
    "Overloaded",
    "RevisionNotReached",
    "TooManyWatches",
)

_OPERATION = Operation(
    id="watchChanges",
    access=Namespaced("read"),
    reads=True,
    tag="bulk",
    summary="Follow the changes of a cluster",
    description="An endless stream of Server-Sent Events, one for each change, in the order of "
    "their revisions, without gaps and without repetition. `id` is the revision, `event` is "
    "ADDED, MODIFIED or DELETED, `data` holds the object: of a deleted one its last state. An "
    "object that starts or ceases to match a selector is ADDED or DELETED, so that the agent of a "
    "node can watch its own pods. BOOKMARK "
    "events say that everything up to their `id` has been sent; they stand only between commits. "
    "To go on after a break, send the last `id` as `Last-Event-ID` or `sinceRevision`. Should "
    "the log no longer lead on from where the stream is, because it was compacted or the database "
    "was restored, an ERROR event with a problem document ends it: list again, then watch from "
    "the list's `metadata.resourceVersion`. Changes in namespaces that the caller may not read are left out, bookmarks "
    "are not; when the caller is given other grants, an ERROR event ends the stream. A client that leaves what was sent unread for 10 "
    "seconds is cut off, and so is one that reads less than 64 KiB a second of a large batch of changes.",
    parameters=(
        SINCE,
        LAST_EVENT_ID,
        Parameter(
            name="kind",
            description="Only objects of these kinds, separated by commas. The configuration is "
            "the kind `Cluster`.",
            example="Node,Pod",
        ),
        Parameter(name="namespace", description="Only objects in this namespace.", example="shop"),
        Parameter(
            name="labelSelector",
            description="Only objects with such labels, in Kubernetes' syntax.",
            example="app=web,tier!=test",
        ),
        Parameter(
            name="fieldSelector",
            description="Only objects with such fields, as in lists. All kinds in `kind` have to have "
            "them: pods have `metadata.name`, `metadata.namespace`, `spec.nodeName`, "
            "`spec.schedulerName` and `status.phase`, nodes `metadata.name` and `spec.unschedulable`.",
            example="spec.nodeName=node-7",
        ),
        Parameter(
            name="nodeName",
            description="Only pods on this node; empty: pending pods. It needs `kind=Pod`.",
            example="node-7",
        ),
        TIMEOUT,
    ),
    components={**{type_.__name__: type_ for type_ in WATCH_TYPES}, "WatchEvent": WATCH_EVENT},
    answers={
        200: Body(
            types={EVENT_STREAM: WatchStream},
            description="The events: each is a `WatchMessage`, whose `data` is a `WatchEvent` as JSON.",
            example=_EXAMPLE,
        )
    },
    problems=WATCH_PROBLEMS,
)


@get(CLUSTER_PATH + "/watch", opt=described(_OPERATION))
async def watch_changes(request: ApiRequest, services: NamedDependency[Services]) -> Streamed:
    """Stream changes; invalid requests are refused before the stream begins."""
    parameters = query(request)
    cluster = request.path_params["cluster"]
    selection = _selection(parameters)
    if selection.namespace is not None:
        require(request.context.require_principal(), "read", cluster, selection.namespace)
    writer = EventWriter(selection=selection, cluster=cluster)
    bodies = BodySelection(kinds=selection.kinds, namespace=selection.namespace)
    return await open_stream(request, services, writer, EVENT_STREAM, selection.node, bodies)


async def open_stream(
    request: ApiRequest,
    services: Services,
    writer: Writer,
    media_type: str,
    node: str | None,
    bodies: BodySelection,
) -> Streamed:
    """Open a stream that starts at the revision in the request's parameters.

    With a `node`, the stream only covers changes that concern the node's pods. The writer only
    needs the objects in `bodies`.
    """
    parameters, cluster = query(request), request.path_params["cluster"]
    timeout = number(parameters, "timeoutSeconds", least=1)
    since = number(parameters, "sinceRevision")
    since = integer_header(request, "last-event-id", default=since)
    head = await services.reads.head(cluster)
    if since is not None and since > head.revision:
        raise RevisionNotReached(f"The cluster has not reached revision {since}.")
    context, reservation = request.context, request.context.reservation
    caller = context.require_principal()
    bounded = None if caller.is_admin else caller.name
    async with _while_client_waits(request):
        watch = await services.scheduler.watching.open(
            *(cluster, since, bounded, node),
            bodies=bodies,
            room=reservation.room_for_watch(bounded),
        )
        # Close the watch when the request ends, since the stream itself may never begin.
        reservation.at_end(watch.close)
    stream = ChangeStream(
        watch=watch,
        writer=writer,
        visible=watch_scope(request, services.authentication.current),
        cluster=cluster,
        path=request.scope["path"],
        request_id=context.request_id,
        refused=context.note_refused,
        from_present=since is None,
        bookmark_seconds=services.settings.watch_bookmark_seconds,
        timeout_seconds=math.inf if timeout is None else min(timeout, TIMEOUT_SECONDS_MAX),
    )
    return Streamed(
        stream.pieces(),
        headers={**revision_headers(watch.head.revision), UNBUFFERED.decode(): "no"},
        media_type=media_type,
        ends_with_client=True,
    )


@asynccontextmanager
async def _while_client_waits(request: ApiRequest) -> AsyncIterator[None]:
    """Limit how long a watch may take to open, and stop if the client disconnects.

    Raises:
        Overloaded: there was no room in time, or the client has disconnected.
    """
    client = WaitingClient(request.receive)
    limit = asyncio.timeout(OPEN_SECONDS_MAX)
    try:
        async with limit:
            leaving = asyncio.create_task(_end_when_left(client, limit))
            try:
                yield
            finally:
                leaving.cancel()
                client.end()
    except TimeoutError:
        if not limit.expired():
            raise
        raise Overloaded("The watches on this server leave no room for another one now.") from None


async def _end_when_left(client: WaitingClient, limit: asyncio.Timeout) -> None:
    await asyncio.sleep(_UNWATCHED_SECONDS)
    await client.left()
    limit.reschedule(asyncio.get_running_loop().time())


def _selection(parameters: Mapping[str, str]) -> WatchSelection:
    kinds = _kinds(parameters.get("kind"))
    fields = parse_field_selector(parameters.get("fieldSelector", ""), kinds)
    if (node := parameters.get("nodeName")) is not None:
        if kinds != {PodManifest.kind}:
            raise wrong_parameter("nodeName", "needs kind=Pod", node)
        fields = (*fields, FieldRequirement(NODE_NAME, node))
    return WatchSelection(
        kinds=kinds,
        namespace=parameters.get("namespace") or None,
        labels=parse_label_selector(parameters.get("labelSelector", "")),
        fields=fields,
    )


def _kinds(text: str | None) -> frozenset[str]:
    if not text:
        return frozenset(_KINDS)
    kinds = text.split(",")
    for kind in kinds:
        if kind not in _KINDS:
            raise wrong_parameter("kind", f"knows only {', '.join(_KINDS)}", kind)
    return frozenset(kinds)


WATCH_HANDLERS = (watch_changes,)
