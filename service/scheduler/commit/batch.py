"""A batch: requests decided one on top of the other, whose changes are one commit."""

from datetime import datetime
from uuid import UUID

import msgspec

from service.model.log.audit import AuditEntry
from service.model.log.commit_log import Change, CommitRequest, HeldLeases, IdempotencyRecord
from service.model.log.events import Event
from service.model.manifests.manifest import PodManifest
from service.model.selecting_objects.selectable_fields import fields_before
from service.scheduler.commit.tickets import AnswerOrError, Ticket
from service.scheduler.protocol.intents import AdvanceGroup, PlacePods
from service.scheduler.protocol.limits import Limits
from service.scheduler.replica.replica import Entry, Mark, Stored

MANY_KINDS = "Batch"
"""The kind of a commit whose requests are of several kinds."""


class Batch:
    """Decided requests with their answers, and the changes that the answers rest on."""

    def __init__(self, start: Mark, now: str) -> None:
        self.start = start
        """The replica's moment before the batch's first change."""
        self.end = start
        """The replica's moment after the batch's last change; whoever decides requests sets it."""
        self.now = now
        self.decided: list[tuple[Ticket, AnswerOrError]] = []
        self.changes: list[Change] = []
        self.records: list[IdempotencyRecord] = []
        self.events: list[Event] = []
        self.audit: list[AuditEntry] = []
        """Who asked for the changes: one entry for each request that changed something."""
        self.leases: list[HeldLeases] = []
        """What has to be held still when the batch is committed."""
        self.not_before: datetime | None = None
        """The batch must not be committed earlier, as a decision acts on this time having come."""
        self._bytes = 0

    @property
    def tickets(self) -> list[Ticket]:
        """The requests, in the order in which they were decided."""
        return [ticket for ticket, _ in self.decided]

    @property
    def last_revision(self) -> int:
        """The revision that the batch's answers rest on."""
        return self.start.revision + len(self.changes)

    def full(self, limits: Limits) -> bool:
        """Whether no further request should join (P6)."""
        return (
            len(self.changes) >= limits.batch_changes_max
            or self._bytes >= limits.batch_bytes_max
            or len(self.decided) >= limits.batch_requests_max
        )

    def add(self, ticket: Ticket, outcome: AnswerOrError, entries: list[Entry]) -> None:
        """Take in a decided request, with what it changed."""
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
        """Have the batch committed no earlier than a time that one of its decisions acts on (P16)."""
        if not_before is not None:
            self.not_before = max(self.not_before or not_before, not_before)

    def request(self, commit_id: UUID, expected_tip: UUID) -> CommitRequest:
        """Make the commit of all changes of the batch, on top of the commit `expected_tip`."""
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
        """Give out the answers, now that the state that they rest on is committed (P8)."""
        for ticket, outcome in self.decided:
            ticket.answer(outcome)

    def fail(self, error: Exception) -> None:
        """Answer all requests with this error."""
        for ticket, _ in self.decided:
            ticket.answer(error)

    @property
    def _kind(self) -> str:
        """The name of the requests' kind of intent, or `Batch` if there are several kinds."""
        kinds = {type(ticket.intent).__name__ for ticket in self.tickets}
        return kinds.pop() if len(kinds) == 1 else MANY_KINDS


def leases_of(ticket: Ticket) -> HeldLeases | None:
    """What has to be held still when the changes of a request are committed."""
    intent = ticket.intent
    return intent.leases if isinstance(intent, PlacePods | AdvanceGroup) else None


def change_of(entry: Entry) -> Change:
    """Turn an entry of the replica's journal into the change that is written to the log."""
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
    """Return the old labels if a Put changed them: watches that select by labels need both."""
    labels = before.manifest.labels
    return None if labels == after.manifest.labels else msgspec.json.encode(labels)
