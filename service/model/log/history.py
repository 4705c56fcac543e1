"""Earlier revisions of a cluster as the log knows them: the types that API and store share.

Every change in the log holds the object that it left, so an earlier state is known where the log
still has the change that made it. It is not known of an object that was changed or deleted since,
and whose change before that is no longer in the log.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from service.model.log.commit import Head


class PastSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that a read of an earlier revision is about."""

    kind: str | None
    """Their kind, or None for all kinds."""
    namespace: str | None = None
    """Their namespace, or None for all namespaces."""
    name: str | None = None
    """The name of the only one, or None for all of them."""


class PastKey(NamedTuple):
    """An object that existed, and the revision that had last changed it then."""

    namespace: str
    name: str
    revision: int


class PastIndex(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that existed at a revision, in the order of namespace and name."""

    head: Head
    """The head at the instant of the read."""
    reach: int
    """The revision up to which the log is gone, or is not looked at: none before it can be read."""
    unknown: int
    """The number of objects whose earlier state is unknown; if it is not 0, the keys are incomplete."""
    keys: list[PastKey]


class PastState(NamedTuple):
    """An object that has changed since a revision, and its state then."""

    kind: str
    namespace: str
    name: str
    revision: int | None
    """The revision that had last changed it then, or None if it did not exist."""


class PastChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that have changed since a revision."""

    head: Head
    reach: int
    """The revision up to which the log is gone, or is not looked at."""
    unknown: int
    """The number of objects whose earlier state is unknown."""
    states: list[PastState]


class ReadableHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The oldest revisions that can be read completely."""

    head: Head
    reach: int
    """The revision up to which the log is gone, or is not looked at."""
    by_kind: Mapping[str, int]
    """The oldest readable revision of each kind for which it is later than `reach`."""

    def oldest_of(self, kind: str) -> int:
        """Return the oldest revision at which all objects of a kind can be read."""
        return self.by_kind.get(kind, self.reach)
