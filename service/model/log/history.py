"""Past revisions of a cluster, read from its log: the types shared by API and store.

Every change in the log holds the resulting object, so an object's past state is known if the log
still has the change that created it. The state is unknown if the object was changed or deleted
later and the change before that has been removed from the log.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from service.model.log.commit import Head


class PastSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The objects to read at a past revision."""

    kind: str | None
    """The kind of the objects, or None for all kinds."""
    namespace: str | None = None
    """The namespace of the objects, or None for all namespaces."""
    name: str | None = None
    """The name of a single object, or None for all objects."""


class PastKey(NamedTuple):
    """An object that existed at a past revision, and the revision that had last changed it."""

    namespace: str
    name: str
    revision: int


class PastIndex(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that existed at a past revision, ordered by namespace and name."""

    head: Head
    """The head of the log at the time of the read."""
    reach: int
    """The revision up to which the log was removed or is not searched, and thus unreadable."""
    unknown: int
    """The number of objects with an unknown past state; unless it is 0, the keys are incomplete."""
    keys: list[PastKey]


class PastState(NamedTuple):
    """A past state of an object that has changed since."""

    kind: str
    namespace: str
    name: str
    revision: int | None
    """The revision that had last changed the object, or None if it did not exist."""


class PastChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that have changed since a past revision."""

    head: Head
    reach: int
    """The revision up to which the log was removed or is not searched."""
    unknown: int
    """The number of objects with an unknown past state."""
    states: list[PastState]


class ReadableHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The oldest revisions that can be read in full."""

    head: Head
    reach: int
    """The revision up to which the log was removed or is not searched."""
    by_kind: Mapping[str, int]
    """The oldest readable revision of each kind for which that is later than `reach`."""

    def oldest_of(self, kind: str) -> int:
        """Return the oldest revision at which every object of a kind can be read."""
        return self.by_kind.get(kind, self.reach)
