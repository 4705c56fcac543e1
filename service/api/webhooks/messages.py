"""Build messages to webhooks: records of a part of the log, or a notice that records are lost."""

from datetime import datetime
from typing import Literal

import msgspec

from service.model.core.errors import Compacted
from service.model.core.times import rfc3339
from service.model.log.commit import Change, Diverged, LogPage
from service.model.webhooks import WebhookRow
from service.scheduler.watching import BindingChange, BindingSelection

MessageType = Literal["bindings.changed", "bindings.compacted", "ping"]


class MessageData(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The records that a message delivers, and their place in the log."""

    cluster: str
    """Name of the cluster."""
    webhook: str
    """Name of the webhook."""
    after_revision: int
    """The revision after which the records begin."""
    revision: int
    """The revision up to which the message is complete; the next message continues after it."""
    records: list[BindingChange] = []
    """The records, in the order of their revisions; there are none if the log was compacted."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a request to a receiver, in the format that Standard Webhooks recommends."""

    type: MessageType
    """`bindings.changed` has records; `bindings.compacted` says that records up to its revision are
    lost: list the pods; `ping` is a test."""
    timestamp: str
    """When the last of it happened; of a ping, when it was sent. RFC 3339 in UTC."""
    data: MessageData
    """The content of the message."""


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """The next records to deliver to a webhook."""

    end: int
    """The last revision of the batch."""
    records: list[BindingChange]
    is_compacted: bool = False
    """Whether records up to the end are lost."""
    at: datetime
    """When the last record was committed."""

    @property
    def is_sent(self) -> bool:
        """Whether the batch needs a message: it has records, or records are lost."""
        return self.is_compacted or bool(self.records)

    def identifier(self, row: WebhookRow) -> str:
        """Return the `webhook-id`, which differs for each message."""
        kind = "c" if self.is_compacted else "b"
        return f"msg_{row.uid}_{row.version}_{kind}{row.revision}-{self.end}"

    def message(self, row: WebhookRow, cluster: str) -> bytes:
        """Return the body of the request that delivers the batch, as JSON."""
        kind: MessageType = "bindings.compacted" if self.is_compacted else "bindings.changed"
        data = MessageData(
            cluster=cluster,
            webhook=row.name,
            after_revision=row.revision,
            revision=self.end,
            records=self.records,
        )
        return msgspec.json.encode(Message(type=kind, timestamp=rfc3339(self.at), data=data))


def ping(row: WebhookRow, cluster: str, now: datetime) -> bytes:
    """Return the body of a test message."""
    data = MessageData(
        cluster=cluster, webhook=row.name, after_revision=row.revision, revision=row.revision
    )
    return msgspec.json.encode(Message(type="ping", timestamp=rfc3339(now), data=data))


def next_batch(
    row: WebhookRow, page: LogPage | Diverged, *, records_max: int, bytes_max: int
) -> Batch:
    """Return the next batch after the revision up to which a webhook has received everything.

    A message that was begun before keeps its end, so that its repetition is identical.
    """
    if isinstance(page, Diverged):
        is_behind = row.revision < page.floor
        end = page.floor if is_behind else page.head.revision
        return Batch(end=end, records=[], is_compacted=True, at=page.head.at)
    last = page.revision if row.batch_end is None else min(row.batch_end, page.revision)
    selection = BindingSelection(namespace=row.namespace)
    records, size, end = list[BindingChange](), 0, row.revision
    for change in page.changes:
        if change.revision > last:
            break
        try:
            record = selection.record(change)
        except Compacted:
            if not records and end == row.revision:
                return _lost(change, page)
            break
        if record is not None:
            size += len(msgspec.json.encode(record)) + 1
            if records and (len(records) == records_max or size > bytes_max):
                break
            records.append(record)
        end = change.revision
    else:
        end = last
    return Batch(end=end, records=records, at=_at(page, end))


def _lost(change: Change, page: LogPage) -> Batch:
    at = _at(page, change.revision)
    return Batch(end=change.revision, records=[], is_compacted=True, at=at)


def _at(page: LogPage, revision: int) -> datetime:
    """Return when a revision was committed."""
    return next((commit.at for commit in page.commits if commit.last >= revision), page.head.at)
