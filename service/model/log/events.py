"""Events of pods, for people to read, like Kubernetes' Events.

No decision depends on them. Events of the same pod (by uid), reason and words are equal, and are
stored as one row with a count.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Literal

import msgspec

EventType = Literal["Normal", "Warning"]
EventReason = Literal[
    "Scheduled", "FailedScheduling", "BindingForced", "Evicted", "EvictionBlocked"
]

_POD_NAME_LENGTH_MAX = 253 - 17
"""An event's name is its pod's and a hash of 16 digits, together a valid name."""


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something that happened to a pod, `count` times between two moments."""

    namespace: str
    pod: str
    uid: str
    type: EventType
    reason: EventReason
    message: str
    words: str = ""
    """The text that distinguishes the event from others of this pod and reason; "": the message."""
    revision: int
    """The revision that the last of these events was decided on, or that it made."""
    first: str
    """RFC 3339 in UTC, whole seconds."""
    last: str
    count: int = 1
    audit: bool = False
    """Whether the event is stored in the commit that it is about; otherwise it is stored soon after."""
    rule: str = ""
    """The kind of rule that an eviction is for."""

    @property
    def name(self) -> str:
        """The name that identifies the event in its namespace."""
        parts = f"{self.uid}\0{self.reason}\0{self.words or self.message}\0"
        digest = blake2b(parts.encode(), digest_size=8)
        return f"{self.pod[:_POD_NAME_LENGTH_MAX].rstrip('.-')}.{digest.hexdigest()}"


def merged(first: Event, second: Event) -> Event:
    """Merge two equal events into one, with the message of the second."""
    return msgspec.structs.replace(
        second,
        revision=max(first.revision, second.revision),
        first=min(first.first, second.first),
        last=max(first.last, second.last),
        count=first.count + second.count,
    )


class EventRow(msgspec.Struct, frozen=True, kw_only=True):
    """An event as it is stored, under its name."""

    name: str
    event: Event


def rows_of(events: Sequence[Event]) -> list[EventRow]:
    """Merge equal events, and return all by their names, in the order of their keys."""
    by_identity: dict[tuple[str, str], Event] = {}
    for event in events:
        key = (event.namespace, event.name)
        by_identity[key] = merged(by_identity[key], event) if key in by_identity else event
    return [
        EventRow(name=name, event=by_identity[namespace, name])
        for namespace, name in sorted(by_identity)
    ]
