"""A cluster's log and its commits: the types shared by scheduler and store.

A cluster's history is a chain of commits. Each commit moves the head from (revision, tip) to
(revision + n, its own ID) and adds n changes with consecutive revisions. These types do not depend
on how the log is stored. P1 … P20 are the rules of the commit protocol.

If the connection fails during a commit, `service.model.core.errors.OutcomeUnknown` is raised; only
`LogStore.settle_unknown` can determine whether it was committed.
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
"""The most changes per commit; larger commits are split, except for groups and `List`s (P6)."""
BYTES_PER_COMMIT_MAX = 2_000_000
LOCKED_LAG_CHANGES_MAX = 2_000
"""The lag, in changes, beyond which a worker must catch up before taking the lock (P6)."""
COMPACTION_STEP_ROWS_MAX = 1_000
"""The most rows that one step of compaction deletes (P12)."""
RESTORE_LIFT_REVISIONS = 1_000_000_000
"""The amount by which a restore raises a cluster's revision, to exceed every revision ever seen
(P3)."""


Verb = Literal["Put", "Delete"]


class ObjectKey(NamedTuple):
    """The identity of an object in its cluster; `namespace` is "" for cluster-scoped kinds."""

    kind: str
    namespace: str
    name: str


class ObjectRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A stored object; `revision`, which last changed it, is its resourceVersion."""

    kind: str
    namespace: str
    name: str
    uid: str
    revision: int
    body: bytes
    node_name: str | None = None

    @property
    def key(self) -> ObjectKey:
        """The object's key."""
        return ObjectKey(self.kind, self.namespace, self.name)


class Change(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A Put or Delete of one object, and the revision that it creates.

    `created` is set on a Put if the object did not exist just before, so that watchers can
    distinguish ADDED from MODIFIED and a commit knows which rows to insert. A batch may change an
    object several times; each change applies to the state left by the earlier ones (P2).
    """

    revision: int
    verb: Verb
    kind: str
    namespace: str
    name: str
    uid: str
    body: bytes
    """The manifest as JSON, without its resourceVersion; for a Delete, the object's last state."""
    created: bool = False
    node_name: str | None = None
    """The node of a placed pod; None for pending pods and all other kinds."""
    labels_before: bytes | None = None
    """The labels before a Put that changed them, as a JSON object, else None. Watches with a label
    selector use them to detect that an object no longer matches."""
    fields_before: bytes | None = None
    """The previous values of the fields that a Put changed in an existing pod or node, as a JSON
    object, or empty if none changed. None if unknown: for creations and deletions, for other kinds,
    and for commits by servers of earlier versions."""

    @property
    def key(self) -> ObjectKey:
        """The key of the changed object."""
        return ObjectKey(self.kind, self.namespace, self.name)

    def row(self) -> ObjectRow:
        """Return the stored object that a Put creates or replaces."""
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
    """The end of a cluster's log: the last revision, and the ID and time of the last commit.

    A revision alone does not identify a history; a revision and its tip do (P3).
    """

    revision: int
    tip: UUID
    at: datetime


class CommitInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A commit in the log: the changes `first` to `last`, on top of the commit `parent`.

    A fence (P4) has no changes, so its `last` is `first - 1`; it only gives the head a new tip.
    """

    commit_id: UUID
    parent: UUID
    first: int
    last: int
    planned_at: int
    """The revision at which the commit's decisions were originally made (P9)."""
    kind: str
    at: datetime


class BodySelection(msgspec.Struct, frozen=True, kw_only=True):
    """The changes to read with their bodies; all others have empty bodies."""

    kinds: frozenset[str] | None = None
    """The kinds to read with bodies, or None for all kinds."""
    namespace: str | None = None
    """The namespace whose objects are read with bodies, or None for all objects."""

    def has(self, change: Change) -> bool:
        """Return whether to read a change with its body."""
        is_of_kind = self.kinds is None or change.kind in self.kinds
        return is_of_kind and self.namespace in {None, change.namespace}


ALL_BODIES = BodySelection()


class LogPage(msgspec.Struct, frozen=True, kw_only=True):
    """Complete commits after a revision, with the log's floor and head at the same instant (P12).

    `changes` have consecutive revisions, starting after the requested one. The page ends at the end
    of a commit, at `revision` with `tip`, and is the last page if `revision == head.revision`.
    """

    floor: int
    """The revision up to which changes were removed from the log."""
    head: Head
    commits: tuple[CommitInfo, ...]
    changes: tuple[Change, ...]
    revision: int
    tip: UUID | None
    """The commit that ends the page, or None if the page is empty and no tip was passed."""


class Diverged(msgspec.Struct, frozen=True):
    """The log does not continue the reader's history, so the reader must reload (P3).

    The commits after the reader's revision do not build on the reader's tip, the head is below that
    revision, or the log no longer reaches back to it.
    """

    head: Head
    floor: int


class IdempotencyKey(NamedTuple):
    """A client's key for one request; `chunk` numbers the commits of a streamed `apply` (P11)."""

    operation: str
    key: str
    chunk: int = 0


class IdempotencyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The stored answer for an idempotency key; `request_hash` exposes reuse by other requests."""

    operation: str
    key: str
    chunk: int = 0
    request_hash: bytes
    answer: bytes
    """The first answer, in the form from which the API can repeat it; opaque to the store."""

    @property
    def id(self) -> IdempotencyKey:
        """The key of the record in its cluster."""
        return IdempotencyKey(self.operation, self.key, self.chunk)


class CommitRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt to extend the log; every attempt has its own `commit_id` (P4).

    `changes` have the revisions `expected_revision + 1`, …, and are never empty. They determine the
    updates to the table of objects (see `effects`).
    """

    commit_id: UUID
    expected_revision: int
    expected_tip: UUID
    planned_at: int
    kind: str
    changes: Sequence[Change]
    idempotency: Sequence[IdempotencyRecord] = ()
    not_before: datetime | None = None
    """The due time, by the database's clock, before which the commit must not happen (P16)."""
    events: Sequence[Event] = ()
    """The events to store in the same commit."""
    audit: Sequence[AuditEntry] = ()
    """The audit rows to store in the same commit, with the callers who requested the changes."""
    leases: Sequence[HeldLeases] = ()
    """Leases that must still be held at the time of the commit, and cannot be taken before it."""

    @property
    def last_revision(self) -> int:
        """The head's revision after this commit."""
        return self.expected_revision + len(self.changes)


class ReplicaMismatch(Exception):  # noqa: N818 - a finding, not a failure
    """The stored objects differ from those the commit expected: drop the replica and reload it.

    Nothing was committed. The cause is a bug, or a manual change of the tables (P1).
    """


Effect = Literal["None", "Create", "Update", "Delete"]


def effects(changes: Sequence[Change]) -> list[Effect]:
    """Return each change's effect on the table of objects; only an object's last one acts (P2).

    An object created and deleted by the same batch never reaches the table.

    Raises:
        ReplicaMismatch: the changes contradict each other, for example by creating an object twice.
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
    """Return the effect of a change to an object that the batch changes only once."""
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
