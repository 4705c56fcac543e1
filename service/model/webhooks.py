"""Webhooks: the destinations of a cluster's records, their progress, and the handling of failures.

All here is decided from a row and the database's time alone; the store keeps what comes of it.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal

import msgspec

WebhookEvents = Literal["Bindings"]
"""What a webhook delivers: Bindings are the records of `watchBindings`."""


class WebhookRow(msgspec.Struct, frozen=True, kw_only=True):
    """One webhook as it is stored."""

    cluster_id: int
    name: str
    uid: str
    """Another one for each webhook of that name."""
    version: int
    """It rises with each change of the settings, not with deliveries."""
    url: str
    events: WebhookEvents
    namespace: str | None
    """The namespace of the pods, or None for all."""
    disabled: bool
    secret: str
    """The key with which messages are signed, as `whsec_…`."""
    previous_secret: str | None
    """The key before, with which messages are signed as well until `previous_until`."""
    previous_until: datetime | None
    created_at: datetime
    revision: int
    """All records up to this revision were acknowledged by the receiver."""
    batch_end: int | None
    """Where the message that is under way ends: a repetition has to say the same."""
    delivered_at: datetime | None
    """When the receiver last acknowledged a message."""
    attempt_at: datetime
    """The earliest time of the next delivery."""
    failures: int
    """The number of consecutive failed attempts."""
    last_error: str | None
    stopped: bool
    """Whether failures, or the receiver's 410, have ended deliveries until the webhook is enabled again."""
    holder: str | None
    """The process that delivers now."""
    held_until: datetime | None

    def secrets(self, now: datetime) -> tuple[str, ...]:
        """The keys with which a message is signed now, the present one first."""
        if self.previous_secret is None or self.previous_until is None:
            return (self.secret,)
        return (self.secret, self.previous_secret)[: 1 + (now < self.previous_until)]

    def is_held_by(self, claim: "WebhookRow") -> bool:
        """Whether no other server has taken the webhook since that claim of it."""
        is_same = self.uid == claim.uid and self.held_until == claim.held_until
        return is_same and claim.holder is not None and self.holder == claim.holder


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook, and the state of its cluster at the same instant."""

    row: WebhookRow | None
    now: datetime
    head: int
    """The last revision of the cluster."""
    others: int
    """How many other webhooks the cluster has."""


Change = Callable[[Settled], WebhookRow | None]
"""A function that returns the changed webhook, or None to delete it; if it raises, nothing changes."""


class WebhookGone(Exception):  # noqa: N818 - as errors are called here
    """The webhook was changed, deleted, or taken by another process: what came of it is not noted."""


def renewed_secret(row: WebhookRow, secret: str, now: datetime, seconds: float) -> WebhookRow:
    """Return a webhook with another secret; the present one stays valid for some seconds."""
    until = now + timedelta(seconds=seconds)
    return msgspec.structs.replace(
        row, secret=secret, previous_secret=row.secret, previous_until=until
    )


def begun(claim: WebhookRow, end: int) -> Change:
    """Note where the message ends that is about to be sent."""
    return _of(claim, lambda row, _: msgspec.structs.replace(row, batch_end=end))


def delivered(claim: WebhookRow, revision: int, *, is_sent: bool, seconds: float = 0) -> Change:
    """Go on after a revision, as everything up to it was acknowledged or is of no interest.

    The next message is sent after this many seconds at the earliest.
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
    """Try again after some seconds, or no more."""

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
    """Let processes take the webhook again, as nothing is sent for this claim any more.

    Raises (from the change):
        WebhookGone: the webhook is not held for this claim.
    """

    def change(settled: Settled) -> WebhookRow:
        if settled.row is None or not settled.row.is_held_by(claim):
            raise WebhookGone
        return msgspec.structs.replace(settled.row, holder=None, held_until=None)

    return change


def _of(claim: WebhookRow, change: Callable[[WebhookRow, datetime], WebhookRow]) -> Change:
    """Make a change if the webhook is still the one that was claimed.

    Raises (from the change):
        WebhookGone: it is not.
    """

    def checked(settled: Settled) -> WebhookRow:
        row, until = settled.row, claim.held_until
        if row is None or row.version != claim.version or not row.is_held_by(claim):
            raise WebhookGone
        if until is None or settled.now >= until:
            raise WebhookGone
        return change(row, settled.now)

    return checked
