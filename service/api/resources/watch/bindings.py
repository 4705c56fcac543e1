"""Stream binding changes, for clients that only act on placements."""

import msgspec
from litestar import get
from litestar.di import NamedDependency

from service.api.auth.redaction import Visibility
from service.api.http.context import ApiRequest
from service.api.http.operation import (
    NDJSON,
    Body,
    Operation,
    Parameter,
    as_ndjson,
    described,
)
from service.api.http.permissions import Namespaced, require
from service.api.http.request import header, query, wrong_parameter
from service.api.http.responses import Streamed
from service.api.resources.objects.operations import CLUSTER_PATH
from service.api.resources.services import Services
from service.api.resources.watch.routes import (
    LAST_EVENT_ID,
    SINCE,
    TIMEOUT,
    WATCH_PROBLEMS,
    open_stream,
)
from service.api.resources.watch.schemas import BindingEventsText, BindingLinesText, BindingMessage
from service.api.resources.watch.sse import EVENT_STREAM, RETRY, error_frame, frame
from service.model.log.commit import BodySelection, Change
from service.model.registry.manifests import PodManifest
from service.scheduler.watching import BindingChange, BindingSelection

_encode = msgspec.json.Encoder().encode


class BindingLines(msgspec.Struct, frozen=True):
    """Writes binding changes as NDJSON, one record per line."""

    selection: BindingSelection

    @property
    def begin(self) -> bytes:
        """An empty beginning, since the response status already shows that the stream has begun."""
        return b""

    def change(self, change: Change, _: Visibility) -> bytes | None:
        """Encode the record of a change, or return None if the change has no record."""
        record = self.selection.record(change)
        return None if record is None else _encode(record) + b"\n"

    def bookmark(self, revision: int) -> bytes:
        """Encode a record stating that all changes up to a revision have been sent."""
        return _encode(_bookmark(revision)) + b"\n"

    def problem(self, document: bytes) -> bytes:
        """Encode the problem as the last line of the stream; it has no revision."""
        return document + b"\n"


class BindingEvents(msgspec.Struct, frozen=True):
    """Writes binding changes as events, whose types are the actions of their records."""

    selection: BindingSelection

    @property
    def begin(self) -> bytes:
        """The first bytes of a stream."""
        return RETRY

    def change(self, change: Change, _: Visibility) -> bytes | None:
        """Encode the record of a change, or return None if the change has no record."""
        record = self.selection.record(change)
        return None if record is None else _event(record)

    def bookmark(self, revision: int) -> bytes:
        """Encode an event stating that all changes up to a revision have been sent."""
        return _event(_bookmark(revision))

    def problem(self, document: bytes) -> bytes:
        """Encode the problem as the last event of the stream."""
        return error_frame(document)


def _bookmark(revision: int) -> BindingChange:
    return BindingChange(revision=revision, action="Bookmark")


def _event(record: BindingChange) -> bytes:
    return frame(record.action.upper(), record.revision, _encode(record))


_RECORD = {
    "revision": 1042,
    "action": "Placed",
    "namespace": "shop",
    "name": "web-0",
    "uid": "0b5f6f1e-3c4d-4a57-9a56-0a4b8f0c2d11",
    "nodeName": "node-7",
}
_BOOKMARK = {"revision": 1042, "action": "Bookmark"}
_EVENTS = """id: 1042
event: PLACED
data: {"revision":1042,"action":"Placed","namespace":"shop","name":"web-0","uid":"0b5f6f1e-3c4d-4a57-9a56-0a4b8f0c2d11","nodeName":"node-7"}

"""

_OPERATION = Operation(
    id="watchBindings",
    access=Namespaced("read"),
    reads=True,
    tag="placements",
    summary="Follow which pods get and lose which nodes",
    description="An endless stream of small records, for those who act on placements alone: one line of NDJSON "
    "each, or one Server-Sent Event if `Accept` names `text/event-stream`. A pod is Placed on a node, or moves to "
    "another one (`previousNodeName`); it is to be stopped (Terminating), has ended (Succeeded, Failed), or is "
    "Deleted. Pods without a node have no records, and other changes of pods make none. A record says what the change "
    "left: of a pod that arrives with a node and has ended, it is Succeeded. There is at most one record for each "
    "revision, in their order, without gaps and without repetition. A Bookmark says that everything up to its "
    "revision was sent; to go on after a break, send the last revision as `sinceRevision`. A problem document, which has no "
    "`action`, ends the stream where the log no longer leads on, or the caller has other grants: list the pods again, "
    "then go on from the list's `metadata.resourceVersion`. Limits are those of watches, among which it counts.",
    parameters=(
        SINCE,
        LAST_EVENT_ID,
        Parameter(name="namespace", description="Only pods in this namespace.", example="shop"),
        Parameter(
            name="nodeName",
            description="Only pods on this node. One that moves to another node is Unplaced.",
            example="node-7",
        ),
        TIMEOUT,
    ),
    components={"BindingChange": BindingChange, "BindingMessage": BindingMessage},
    answers={
        200: Body(
            types={NDJSON: BindingLinesText, EVENT_STREAM: BindingEventsText},
            description="The records: each is a `BindingChange`, as a line or as the data of a `BindingMessage`.",
            examples={NDJSON: as_ndjson(_RECORD, _BOOKMARK), EVENT_STREAM: _EVENTS},
        )
    },
    problems=WATCH_PROBLEMS,
)


@get(CLUSTER_PATH + "/bindings", opt=described(_OPERATION))
async def watch_bindings(request: ApiRequest, services: NamedDependency[Services]) -> Streamed:
    """Stream binding changes; invalid requests are refused before the stream begins."""
    parameters = query(request)
    namespace, node = parameters.get("namespace") or None, parameters.get("nodeName")
    if node == "":
        raise wrong_parameter("nodeName", "has to name a node", node)
    if namespace is not None:
        caller = request.context.require_principal()
        require(caller, "read", request.path_params["cluster"], namespace)
    selection = BindingSelection(namespace=namespace, node=node)
    bodies = BodySelection(kinds=frozenset({PodManifest.kind}), namespace=namespace)
    if EVENT_STREAM in (header(request, "accept") or ""):
        writer, media_type = BindingEvents(selection), EVENT_STREAM
        return await open_stream(request, services, writer, media_type, node, bodies)
    return await open_stream(request, services, BindingLines(selection), NDJSON, node, bodies)


BINDING_HANDLERS = (watch_bindings,)
