"""Changes as Server-Sent Events (WHATWG HTML, 9.2)."""

import msgspec

from service.api.auth.redaction import Visibility, redact_body
from service.model.core.primitives import CLUSTER_KIND
from service.model.log.commit import Change
from service.model.registry.manifests import with_resource_version
from service.scheduler.watching import WatchSelection

EVENT_STREAM = "text/event-stream"

RETRY = b"retry: 1000\n\n"
"""The first bytes of a stream, which make browsers reconnect a second after it breaks.

They also tell a client that the stream has begun.
"""


class EventWriter(msgspec.Struct, frozen=True, kw_only=True):
    """Writes the changes of a watch as Server-Sent Events that contain the changed objects."""

    selection: WatchSelection
    cluster: str

    @property
    def begin(self) -> bytes:
        """The first bytes of a stream."""
        return RETRY

    def change(self, change: Change, visibility: Visibility) -> bytes | None:
        """Encode a change as visible to its reader, or return None if it is not selected."""
        event = self.selection.event(change)
        if event is None:
            return None
        return frame(event, change.revision, _data(change, self.cluster, visibility))

    def bookmark(self, revision: int) -> bytes:
        """Encode an event stating that all changes up to a revision have been sent."""
        data = b'{"kind":"Bookmark","object":{"metadata":{"resourceVersion":"%d"}}}' % revision
        return frame("BOOKMARK", revision, data)

    def problem(self, document: bytes) -> bytes:
        """Encode the problem as the last event of the stream."""
        return error_frame(document)


def frame(event: str, revision: int, data: bytes) -> bytes:
    """Encode one event; `data` must not contain line ends."""
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (revision, event.encode(), data)


def error_frame(document: bytes) -> bytes:
    """Encode a problem as an event.

    It has no id, so a client that reconnects continues after the last change that it received.
    """
    return b"event: ERROR\ndata: %b\n\n" % document


def _data(change: Change, cluster: str, visibility: Visibility) -> bytes:
    """Encode the kind and object of a change; a deleted object has its last state.

    Its resourceVersion is the revision of the change, even of a deletion.
    """
    body = redact_body(visibility, change.kind, change.body)
    if change.kind == CLUSTER_KIND:
        body = _cluster(body, change.revision, cluster)
    else:
        body = with_resource_version(body, change.revision)
    return b'{"kind":"%b","object":%b}' % (change.kind.encode(), _on_one_line(body))


def _cluster(config: bytes, revision: int, name: str) -> bytes:
    return b'{"kind":"%b","metadata":{"name":%b,"resourceVersion":"%d"},"config":%b}' % (
        CLUSTER_KIND.encode(),
        msgspec.json.encode(name),
        revision,
        config,
    )


def _on_one_line(body: bytes) -> bytes:
    """Replace line ends with spaces, since a line end would end the event's field.

    In JSON, line ends can only occur between tokens, where a space is equivalent.
    """
    return body.replace(b"\n", b" ").replace(b"\r", b" ")
