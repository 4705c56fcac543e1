"""Requests from arrival to answer: as single tickets, then in decided batches.

Each request of a batch is decided on top of the one before, and all changes form one commit.
"""

import asyncio
import weakref
from datetime import datetime
from math import inf
from typing import Any
from uuid import UUID

import msgspec

from service.model.core.errors import IdempotencyKeyReused, Overloaded
from service.model.log.audit_chain import ITSELF, AuditedCaller, AuditEntry
from service.model.log.commit import Change, CommitRequest, IdempotencyKey, IdempotencyRecord
from service.model.log.events import Event
from service.model.log.lease import HeldLeases
from service.model.registry.manifests import PodManifest
from service.model.selection.selectable_fields import fields_before
from service.scheduler.commit.suffixes import RepeatableIds
from service.scheduler.commit.tracer import RequestSpan
from service.scheduler.decide.context import Hints
from service.scheduler.protocol.answers import Answer, RecordedAnswer
from service.scheduler.protocol.clients import Client
from service.scheduler.protocol.intents import (
    AdvanceGroup,
    CommitPlan,
    Idempotency,
    Intent,
    MakePlan,
    PlacePods,
)
from service.scheduler.protocol.limits import Limits
from service.scheduler.replica.replica import Entry, Mark, Replica, Stored

AnswerOrError = Answer | Exception

TIME_IS_UP = "The request could not be committed in time."


class LongDryRun(Exception):  # noqa: N818 - a finding, not a failure
    """A dry run takes so long that a planning replica should decide it instead."""


class Ticket(msgspec.Struct, eq=False):
    """One request in a cluster's inbox. It may be decided several times before it is answered."""

    intent: Intent[Any]
    deadline: float
    """When the request times out, in the clock's monotonic seconds."""
    idempotency: Idempotency[Any] | None
    future: asyncio.Future[Answer]
    arrived: float = 0.0
    """When the request arrived, in the clock's monotonic seconds."""
    caller: AuditedCaller = ITSELF
    """The caller recorded in the audit log."""
    span: RequestSpan | None = None
    """The trace span of the request, or None if it is not traced."""
    client: Client | None = None
    """The client that waits for the answer, or None if it cannot disconnect."""
    patience_seconds: float = inf
    """How long the decision may run before it ends as `LongDryRun`."""
    began: float | None = None
    """When the decision first paused, in the clock's monotonic seconds."""
    unwanted: Overloaded | LongDryRun | None = None
    """Why the decision in progress has to end, or None if it may continue."""
    has_waited: bool = False
    """Whether the request has used up its time for expressions."""
    waited: float = 0.0
    """The total seconds for which the request was set aside."""
    ids: RepeatableIds | None = None
    """The names generated for the request, or None if it was never set aside."""
    now: str | None = None
    """When a set-aside request was first decided; objects are written as of this time."""
    attempts: int = 0
    planned_at: int | None = None
    """The committed revision on which the request was first decided (protocol rule P9)."""
    ground: "weakref.ref[Replica] | None" = None
    """The replica of the request's last decision, while that replica is in memory."""
    hints: Hints = {}
    """The nodes chosen in the last attempt (protocol rule P9)."""

    def plan_on(self, replica: Replica) -> None:
        """Record that the request is decided on this replica.

        A decision on a replica that has since been dropped does not count: its revision may not be
        in the log (protocol rule P3).
        """
        if self.ground is None or self.ground() is not replica:
            self.ground = weakref.ref(replica)
            self.planned_at = replica.committed_revision

    @property
    def is_dry_run(self) -> bool:
        """Whether the request changes nothing, even if it is decided."""
        return bool(getattr(self.intent, "dry_run", False))

    @property
    def keeps_nodes(self) -> bool:
        """Whether to keep the last attempt's nodes where they still fit (protocol rule P9).

        Dry runs and plans occupy no node, and are answered as if they arrived now. A plan that is
        committed at once is planned again, so it must not keep earlier choices.
        """
        return not (self.is_dry_run or isinstance(self.intent, MakePlan | CommitPlan))

    @property
    def key(self) -> IdempotencyKey | None:
        if self.idempotency is None:
            return None
        return IdempotencyKey(
            self.idempotency.operation, self.idempotency.key, self.idempotency.chunk
        )

    def check(self, now: float) -> None:
        """Mark the decision as unwanted once its time is up or its client has disconnected."""
        self.began = now if self.began is None else self.began
        if now >= self.deadline:
            self.unwanted = Overloaded(TIME_IS_UP)
        elif self.future.done() or (self.client is not None and self.client.has_left()):
            self.unwanted = Overloaded("The client has left.")
        elif now >= self.began + self.patience_seconds:
            self.unwanted = LongDryRun()

    def answer(self, outcome: AnswerOrError) -> None:
        """Complete the request with an answer or error, unless the caller stopped waiting."""
        if self.future.done():
            return
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)

    def answer_from(self, record: IdempotencyRecord, revision: int) -> None:
        """Answer with the stored outcome, or refuse a different request with this key."""
        assert self.idempotency is not None
        if record.request_hash == self.idempotency.request_hash:
            self.answer(RecordedAnswer(revision=revision, answer=record.answer))
        else:
            self.answer(key_reused_error(record.key))

    def record(self, outcome: AnswerOrError) -> IdempotencyRecord | None:
        """Return the record for later requests with this key; None for errors (rule P11)."""
        if self.idempotency is None or isinstance(outcome, Exception | RecordedAnswer):
            return None
        if self.is_dry_run:
            return None
        return IdempotencyRecord(
            operation=self.idempotency.operation,
            key=self.idempotency.key,
            chunk=self.idempotency.chunk,
            request_hash=self.idempotency.request_hash,
            answer=self.idempotency.encode(outcome),
        )


def key_reused_error(key: str) -> IdempotencyKeyReused:
    """Return the error for a key that was already used for a different request."""
    return IdempotencyKeyReused(f"The key {key} was used for another request.")


MANY_KINDS = "Batch"
"""The kind of a commit that mixes several kinds of requests."""


class Batch:
    """Decided requests with their answers, and the changes on which the answers rest."""

    def __init__(self, start: Mark, now: str) -> None:
        self.start = start
        """The replica's mark before the batch's first change."""
        self.end = start
        """The replica's mark after the batch's last change, set by the decider."""
        self.now = now
        self.decided: list[tuple[Ticket, AnswerOrError]] = []
        self.changes: list[Change] = []
        self.records: list[IdempotencyRecord] = []
        self.events: list[Event] = []
        self.audit: list[AuditEntry] = []
        """The audit entries: one for each request that changed something."""
        self.leases: list[HeldLeases] = []
        """Leases that still have to be held when the batch is committed."""
        self.not_before: datetime | None = None
        """The earliest time to commit the batch, since a decision assumes that this time has come.
        """
        self._bytes = 0

    @property
    def tickets(self) -> list[Ticket]:
        """The requests, in the order in which they were decided."""
        return [ticket for ticket, _ in self.decided]

    @property
    def last_revision(self) -> int:
        """The revision on which the batch's answers rest."""
        return self.start.revision + len(self.changes)

    def full(self, limits: Limits) -> bool:
        """Return whether the batch accepts no further requests (protocol rule P6)."""
        return (
            len(self.changes) >= limits.batch_changes_max
            or self._bytes >= limits.batch_bytes_max
            or len(self.decided) >= limits.batch_requests_max
        )

    def add(self, ticket: Ticket, outcome: AnswerOrError, entries: list[Entry]) -> None:
        """Add a decided request, with its changes."""
        self.decided.append((ticket, outcome))
        if entries and (held := leases_of(ticket)) is not None:
            self.leases.append(held)
        changes = [change_of(entry) for entry in entries]
        self.changes += changes
        if changes:
            self.audit.append(AuditEntry(caller=ticket.caller, revision=changes[-1].revision))
        for change in changes:
            self._bytes += len(change.body)
        record = ticket.record(outcome) if ticket.idempotency is not None else None
        if record is not None:
            self.records.append(record)

    def hold_until(self, not_before: datetime | None) -> None:
        """Commit the batch no earlier than a time that one of its decisions acts on (protocol rule P16)."""
        if not_before is not None:
            self.not_before = max(self.not_before or not_before, not_before)

    def request(self, commit_id: UUID, expected_tip: UUID) -> CommitRequest:
        """Build the commit of the batch's changes, on top of the commit `expected_tip`."""
        return CommitRequest(
            commit_id=commit_id,
            expected_revision=self.start.revision,
            expected_tip=expected_tip,
            planned_at=min(ticket.planned_at or self.start.revision for ticket in self.tickets),
            kind=self._kind,
            changes=self.changes,
            idempotency=self.records,
            not_before=self.not_before,
            events=[event for event in self.events if event.audit],
            audit=self.audit,
            leases=self.leases,
        )

    def release(self) -> None:
        """Release the answers, now that their base state is committed (protocol rule P8)."""
        for ticket, outcome in self.decided:
            ticket.answer(outcome)

    def fail(self, error: Exception) -> None:
        """Answer all requests with this error."""
        for ticket, _ in self.decided:
            ticket.answer(error)

    @property
    def _kind(self) -> str:
        """The name of the requests' intent, or `Batch` if there are several."""
        kinds = {type(ticket.intent).__name__ for ticket in self.tickets}
        return kinds.pop() if len(kinds) == 1 else MANY_KINDS


def leases_of(ticket: Ticket) -> HeldLeases | None:
    """Return the leases that must still be held when a request's changes are committed, or None."""
    intent = ticket.intent
    return intent.leases if isinstance(intent, PlacePods | AdvanceGroup) else None


def change_of(entry: Entry) -> Change:
    """Convert a journal entry of the replica to a log change."""
    namespace, name = entry.key
    present = entry.after or entry.before
    assert present is not None
    manifest = present.manifest
    pod = manifest.pod if isinstance(manifest, PodManifest) else None
    labels = fields = None
    if entry.before and entry.after:
        labels = _labels_before(entry.before, entry.after)
        fields = fields_before(entry.kind, entry.before.manifest, entry.after.manifest)
    return Change(
        revision=entry.revision,
        verb="Put" if entry.after else "Delete",
        kind=entry.kind,
        namespace=namespace,
        name=name,
        uid=manifest.uid,
        body=manifest.render(),
        created=entry.after is not None and entry.before is None,
        node_name=None if pod is None else pod.node_name,
        labels_before=labels,
        fields_before=fields,
    )


def _labels_before(before: Stored, after: Stored) -> bytes | None:
    """Return the old labels if a Put changed them (for label selectors), or None."""
    labels = before.manifest.labels
    return None if labels == after.manifest.labels else msgspec.json.encode(labels)
