"""Events of pods, similar to Kubernetes' Events; they are for people to read.

No decision depends on events. Events with the same pod (by uid), reason, and words are equal, and
are stored as one row with a count.
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
"""The maximum length of the pod's name in an event's name, which adds a dot and a 16-digit hash."""


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An event of a pod, which occurred `count` times between two points in time."""

    namespace: str
    pod: str
    uid: str
    type: EventType
    reason: EventReason
    message: str
    words: str = ""
    """The text that distinguishes the event from others of the same pod and reason; "" stands for
    the message."""
    revision: int
    """The revision on which the last of these events was decided, or which it created."""
    first: str
    """The time of the first occurrence, RFC 3339 in UTC, in whole seconds."""
    last: str
    count: int = 1
    audit: bool = False
    """Whether the event is stored in the commit that it describes, instead of shortly afterward."""
    rule: str = ""
    """The kind of rule that caused an eviction."""

    @property
    def name(self) -> str:
        """The name that identifies the event within its namespace."""
        parts = f"{self.uid}\0{self.reason}\0{self.words or self.message}\0"
        digest = blake2b(parts.encode(), digest_size=8)
        return f"{self.pod[:_POD_NAME_LENGTH_MAX].rstrip('.-')}.{digest.hexdigest()}"


def merged(first: Event, second: Event) -> Event:
    """Merge two equal events into one, keeping the second one's message."""
    return msgspec.structs.replace(
        second,
        revision=max(first.revision, second.revision),
        first=min(first.first, second.first),
        last=max(first.last, second.last),
        count=first.count + second.count,
    )


class EventRow(msgspec.Struct, frozen=True, kw_only=True):
    """An event as stored, with its name."""

    name: str
    event: Event


def rows_of(events: Sequence[Event]) -> list[EventRow]:
    """Merge equal events, and return all events with their names, in key order."""
    by_identity: dict[tuple[str, str], Event] = {}
    for event in events:
        key = (event.namespace, event.name)
        by_identity[key] = merged(by_identity[key], event) if key in by_identity else event
    return [
        EventRow(name=name, event=by_identity[namespace, name])
        for namespace, name in sorted(by_identity)
    ]
