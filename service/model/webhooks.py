"""Webhooks: the destinations of a cluster's records, delivery progress, and failure handling.

The functions depend only on a webhook's row and the database's time; the store saves the results.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal

import msgspec

WebhookEvents = Literal["Bindings"]
"""The records that a webhook can deliver: `Bindings` are those of `watchBindings`."""


class WebhookRow(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook as stored."""

    cluster_id: int
    name: str
    uid: str
    """The webhook's unique ID; a new webhook of the same name gets another one."""
    version: int
    """A counter of changes to the settings; deliveries do not raise it."""
    url: str
    events: WebhookEvents
    namespace: str | None
    """The namespace of the pods, or None for all namespaces."""
    disabled: bool
    secret: str
    """The key that signs messages, in the form `whsec_…`."""
    previous_secret: str | None
    """The previous key, which also signs messages until `previous_until`."""
    previous_until: datetime | None
    created_at: datetime
    revision: int
    """The revision up to which the receiver has acknowledged all records."""
    batch_end: int | None
    """The last revision of the message in progress, so that a retry sends the same content."""
    delivered_at: datetime | None
    """The time of the last message that the receiver acknowledged."""
    attempt_at: datetime
    """The earliest time of the next delivery."""
    failures: int
    """The number of consecutive failed attempts."""
    last_error: str | None
    stopped: bool
    """Whether deliveries were stopped, by failures or a 410 response, until the webhook is
    re-enabled."""
    holder: str | None
    """The process that currently delivers."""
    held_until: datetime | None

    def secrets(self, now: datetime) -> tuple[str, ...]:
        """Return the keys that currently sign messages, the newest first."""
        if self.previous_secret is None or self.previous_until is None:
            return (self.secret,)
        return (self.secret, self.previous_secret)[: 1 + (now < self.previous_until)]

    def is_held_by(self, claim: "WebhookRow") -> bool:
        """Return whether the webhook is still held under this claim, and not a later one."""
        is_same = self.uid == claim.uid and self.held_until == claim.held_until
        return is_same and claim.holder is not None and self.holder == claim.holder


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook and the state of its cluster at the same instant."""

    row: WebhookRow | None
    now: datetime
    head: int
    """The cluster's latest revision."""
    others: int
    """The number of other webhooks in the cluster."""


Change = Callable[[Settled], WebhookRow | None]
"""A function that returns the changed webhook, or None to delete it; an exception cancels the
change."""


class WebhookGone(Exception):  # noqa: N818 - as errors are called here
    """The webhook was changed, deleted, or claimed by another process; the result is dropped."""


def renewed_secret(row: WebhookRow, secret: str, now: datetime, seconds: float) -> WebhookRow:
    """Return a webhook with a new secret; the old one stays valid for `seconds`."""
    until = now + timedelta(seconds=seconds)
    return msgspec.structs.replace(
        row, secret=secret, previous_secret=row.secret, previous_until=until
    )


def begun(claim: WebhookRow, end: int) -> Change:
    """Record where the message that is about to be sent ends."""
    return _of(claim, lambda row, _: msgspec.structs.replace(row, batch_end=end))


def delivered(claim: WebhookRow, revision: int, *, is_sent: bool, seconds: float = 0) -> Change:
    """Advance to a revision: everything up to it was acknowledged or is irrelevant.

    The next message is sent after `seconds` at the earliest.
    """

    def change(row: WebhookRow, now: datetime) -> WebhookRow:
        left = msgspec.structs.replace(
            row,
            revision=revision,
            batch_end=None,
            holder=None,
            held_until=None,
            attempt_at=now + timedelta(seconds=seconds),
        )
        if not is_sent:
            return left
        return msgspec.structs.replace(left, delivered_at=now, failures=0, last_error=None)

    return _of(claim, change)


def failed(claim: WebhookRow, error: str, *, seconds: float, failures_max: int) -> Change:
    """Schedule a retry after `seconds`, or stop the webhook after `failures_max` failures."""

    def change(row: WebhookRow, now: datetime) -> WebhookRow:
        return msgspec.structs.replace(
            row,
            failures=row.failures + 1,
            last_error=error,
            attempt_at=now + timedelta(seconds=seconds),
            stopped=row.failures + 1 >= failures_max,
            holder=None,
            held_until=None,
        )

    return _of(claim, change)


def released(claim: WebhookRow) -> Change:
    """Release the claim so that other processes can deliver; this process sends nothing more.

    Raises (from the change):
        WebhookGone: the webhook is not held for this claim.
    """

    def change(settled: Settled) -> WebhookRow:
        if settled.row is None or not settled.row.is_held_by(claim):
            raise WebhookGone
        return msgspec.structs.replace(settled.row, holder=None, held_until=None)

    return change


def _of(claim: WebhookRow, change: Callable[[WebhookRow, datetime], WebhookRow]) -> Change:
    """Apply a change if the webhook is still held under this claim.

    Raises (from the change):
        WebhookGone: the webhook was changed, or the claim has ended.
    """

    def checked(settled: Settled) -> WebhookRow:
        row, until = settled.row, claim.held_until
        if row is None or row.version != claim.version or not row.is_held_by(claim):
            raise WebhookGone
        if until is None or settled.now >= until:
            raise WebhookGone
        return change(row, settled.now)

    return checked
