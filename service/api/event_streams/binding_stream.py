"""What becomes of bindings, as lines of JSON or as Server-Sent Events."""

import msgspec

from service.api.event_streams.server_sent_events import RETRY, error_frame, frame
from service.api.security.visibility import Visibility
from service.model.log.commit import Change
from service.scheduler.watching import BindingChange, BindingSelection

_encode = msgspec.json.Encoder().encode


class BindingLines(msgspec.Struct, frozen=True):
    """Writes one record a line."""

    selection: BindingSelection

    @property
    def begin(self) -> bytes:
        """Nothing; that the stream has begun is seen by its status."""
        return b""

    def change(self, change: Change, _: Visibility) -> bytes | None:
        """The record of a change; None if there is none."""
        record = self.selection.record(change)
        return None if record is None else _encode(record) + b"\n"

    def bookmark(self, revision: int) -> bytes:
        """A record that says that all changes up to its revision have been sent."""
        return _encode(_bookmark(revision)) + b"\n"

    def problem(self, document: bytes) -> bytes:
        """The problem, which has no revision, as the last line."""
        return document + b"\n"


class BindingEvents(msgspec.Struct, frozen=True):
    """Writes one record an event, whose type is the record's action."""

    selection: BindingSelection

    @property
    def begin(self) -> bytes:
        """The first bytes of a stream."""
        return RETRY

    def change(self, change: Change, _: Visibility) -> bytes | None:
        """The record of a change; None if there is none."""
        record = self.selection.record(change)
        return None if record is None else _event(record)

    def bookmark(self, revision: int) -> bytes:
        """A record that says that all changes up to its revision have been sent."""
        return _event(_bookmark(revision))

    def problem(self, document: bytes) -> bytes:
        """The last event of the stream."""
        return error_frame(document)


def _bookmark(revision: int) -> BindingChange:
    return BindingChange(revision=revision, action="Bookmark")


def _event(record: BindingChange) -> bytes:
    return frame(record.action.upper(), record.revision, _encode(record))
