"""The log of a cluster and its commits: the types that scheduler and store share.

A cluster's history is a chain of commits. Each takes the head from (revision, tip) to
(revision + n, its own id) and adds n changes with consecutive revisions. Nothing here says how
that is stored. P1 … P20 are the rules of the commit protocol.

A commit whose connection failed raises `service.model.core.errors.OutcomeUnknown`: only
`Store.settle_unknown` can find out whether it was committed.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

import msgspec

from service.model.log.audit_chain import AuditEntry
from service.model.log.events import Event
from service.model.log.lease import HeldLeases

CHANGES_PER_COMMIT_MAX = 2_000
"""A commit beyond this is split, unless it is a group or a `List` (P6)."""
BYTES_PER_COMMIT_MAX = 2_000_000
LOCKED_LAG_CHANGES_MAX = 2_000
"""A worker that is further behind first catches up without the lock (P6)."""
COMPACTION_STEP_ROWS_MAX = 1_000
"""How much one step of compaction deletes (P12)."""
RESTORE_LIFT_REVISIONS = 1_000_000_000
"""How far a restored cluster's revision is raised, beyond every revision that was seen (P3)."""


Verb = Literal["Put", "Delete"]


class ObjectKey(NamedTuple):
    """The identity of an object in its cluster; `namespace` is "" for cluster-scoped kinds."""

    kind: str
    namespace: str
    name: str


class ObjectRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One stored object; `revision`, the last that changed it, is its resourceVersion."""

    kind: str
    namespace: str
    name: str
    uid: str
    revision: int
    body: bytes
    node_name: str | None = None

    @property
    def key(self) -> ObjectKey:
        """The identity of the object."""
        return ObjectKey(self.kind, self.namespace, self.name)


class Change(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One object put or deleted, and the revision that results.

    `created` says of a Put that there was no such object just before, so that a watcher can tell
    ADDED from MODIFIED and a commit knows which rows to insert. A batch may change an object
    several times; each change is judged on the state that the earlier ones leave (P2).
    """

    revision: int
    verb: Verb
    kind: str
    namespace: str
    name: str
    uid: str
    body: bytes
    """The manifest as JSON, without its resourceVersion; of a Delete, the last state."""
    created: bool = False
    node_name: str | None = None
    """The node that a pod is on, or None for a pending pod and for all other kinds."""
    labels_before: bytes | None = None
    """The labels before this change as a JSON object, where a Put changed them; else None. A
    watcher with a label selector needs them to tell that an object ceased to match."""
    fields_before: bytes | None = None
    """What fields of a pod or node were before a Put that did not create it: those that it altered,
    as a JSON object, empty text if there are none. None where it says nothing: for creations and
    deletions, for other kinds, and where a server of an earlier version committed the change."""

    @property
    def key(self) -> ObjectKey:
        """The object that changed."""
        return ObjectKey(self.kind, self.namespace, self.name)

    def row(self) -> ObjectRow:
        """Return the object that a Put leaves."""
        return ObjectRow(
            kind=self.kind,
            namespace=self.namespace,
            name=self.name,
            uid=self.uid,
            revision=self.revision,
            body=self.body,
            node_name=self.node_name,
        )


class Head(msgspec.Struct, frozen=True):
    """Where the log of a cluster ends: last revision, id of the last commit, time of that.

    Revisions alone don't identify a history; revision and tip together do (P3).
    """

    revision: int
    tip: UUID
    at: datetime


class CommitInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One commit in the log: changes `first` to `last`, on top of the commit `parent`.

    A fence (P4) has no changes: its `last` is `first - 1`. It only gives the head a new tip.
    """

    commit_id: UUID
    parent: UUID
    first: int
    last: int
    planned_at: int
    """The revision at which the commit's decisions were first made (P9)."""
    kind: str
    at: datetime


class BodySelection(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that are read with their bodies; those of others are empty."""

    kinds: frozenset[str] | None = None
    """Only these kinds, or None for all."""
    namespace: str | None = None
    """Only this namespace, or None for all objects."""

    def has(self, change: Change) -> bool:
        """Return whether a change is read with its body."""
        is_of_kind = self.kinds is None or change.kind in self.kinds
        return is_of_kind and self.namespace in {None, change.namespace}


ALL_BODIES = BodySelection()


class LogPage(msgspec.Struct, frozen=True, kw_only=True):
    """Whole commits after some revision, and the floor and head of the same instant (P12).

    `changes` are dense from the revision asked for + 1; the page ends at a commit's end, at
    `revision`, with `tip`. It is the last page when `revision == head.revision`.
    """

    floor: int
    """The revision up to which changes have been removed from the log."""
    head: Head
    commits: tuple[CommitInfo, ...]
    changes: tuple[Change, ...]
    revision: int
    tip: UUID | None
    """The commit that the page ends with, or None if the page is empty and no tip was given."""


class Diverged(msgspec.Struct, frozen=True):
    """The log does not continue the history that the reader knows, so it must reload (P3).

    Its commits after the reader's revision don't stand on the reader's tip, the head is below
    that revision, or the log no longer reaches back to it.
    """

    head: Head
    floor: int


class IdempotencyKey(NamedTuple):
    """A client's name for one request; `chunk` counts the commits of a streamed `apply` (P11)."""

    operation: str
    key: str
    chunk: int = 0


class IdempotencyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The answer for a key; by `request_hash` a different request with the same key is recognized."""

    operation: str
    key: str
    chunk: int = 0
    request_hash: bytes
    answer: bytes
    """The first answer, as the API needs it to repeat the answer; opaque to the store."""

    @property
    def id(self) -> IdempotencyKey:
        """The identity of the record in its cluster."""
        return IdempotencyKey(self.operation, self.key, self.chunk)


class CommitRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to extend the log; every attempt has a `commit_id` of its own (P4).

    `changes` have the revisions `expected_revision + 1`, … and are never empty. What happens to
    the table of objects follows from them (see `effects`).
    """

    commit_id: UUID
    expected_revision: int
    expected_tip: UUID
    planned_at: int
    kind: str
    changes: Sequence[Change]
    idempotency: Sequence[IdempotencyRecord] = ()
    not_before: datetime | None = None
    """The due time, by the database's clock, that the commit acts on (P16)."""
    events: Sequence[Event] = ()
    """The events that are stored in the same commit."""
    audit: Sequence[AuditEntry] = ()
    """The rows of the audit that are stored in the same commit: who asked for the changes."""
    leases: Sequence[HeldLeases] = ()
    """Leases that must still be held when this is committed; until then no one else can take them."""

    @property
    def last_revision(self) -> int:
        """The head's revision once this is committed."""
        return self.expected_revision + len(self.changes)


class ReplicaMismatch(Exception):  # noqa: N818 - a finding, not a failure
    """The stored objects are not those that the commit expected: drop the replica and reload it.

    Nothing was committed. If this happens, there is a bug, or the tables were changed by hand
    (P1).
    """


Effect = Literal["None", "Create", "Update", "Delete"]


def effects(changes: Sequence[Change]) -> list[Effect]:
    """Return each change's effect on the table of objects: only an object's last one acts (P2).

    An object that the batch creates and deletes again never reaches the table.

    Raises:
        ReplicaMismatch: the changes contradict one another, such as two creations of one object.
    """
    if len({(change.kind, change.namespace, change.name) for change in changes}) == len(changes):
        return [_effect_alone(change) for change in changes]
    existed: dict[ObjectKey, bool] = {}
    exists: dict[ObjectKey, bool] = {}
    last: dict[ObjectKey, int] = {}
    for index, change in enumerate(changes):
        key = change.key
        before = exists.get(key, not change.created)
        if before == change.created:
            raise ReplicaMismatch(f"{key} at revision {change.revision}: created twice or absent")
        existed.setdefault(key, before)
        exists[key] = change.verb == "Put"
        last[key] = index
    return _acting(changes, existed, last)


def _effect_alone(change: Change) -> Effect:
    """Return the effect of a change whose object no other change of the batch concerns."""
    if change.verb == "Put":
        return "Create" if change.created else "Update"
    return "None" if change.created else "Delete"


def _acting(
    changes: Sequence[Change], existed: dict[ObjectKey, bool], last: dict[ObjectKey, int]
) -> list[Effect]:
    acting: list[Effect] = ["None"] * len(changes)
    for key, index in last.items():
        if changes[index].verb == "Put":
            acting[index] = "Update" if existed[key] else "Create"
        elif existed[key]:
            acting[index] = "Delete"
    return acting
