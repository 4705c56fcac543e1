"""Schemas of requests and answers about webhooks."""

from typing import Annotated

import msgspec

from service.api.http.operation import DNSLabel
from service.model.core.primitives import Strict, Value
from service.model.webhooks import WebhookEvents


class WebhookSettings(Strict, frozen=True, kw_only=True):
    """What PUT of a webhook takes."""

    url: Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
    """Where messages are sent by POST; it begins with `https://`."""
    events: WebhookEvents
    """What is delivered: Bindings are the records of `watchBindings`."""
    namespace: DNSLabel | None = None
    """Only pods in this namespace; absent: all."""
    disabled: bool = False
    """Whether nothing is delivered for now; it is delivered later, as far as the log reaches back."""
    after_revision: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """The first record is the first one after this revision; absent: the present revision for a new
    webhook, and where it was for another."""


class WebhookPatch(Strict, frozen=True, kw_only=True):
    """What PATCH of a webhook takes: the settings to change; null gives one its default."""

    url: Annotated[str, msgspec.Meta(min_length=1, max_length=2048)] | msgspec.UnsetType = (
        msgspec.UNSET
    )
    """Where messages are sent by POST; it begins with `https://`."""
    events: WebhookEvents | msgspec.UnsetType = msgspec.UNSET
    """What is delivered: Bindings are the records of `watchBindings`."""
    namespace: DNSLabel | msgspec.UnsetType | None = msgspec.UNSET
    """Only pods in this namespace; null: all."""
    disabled: bool | msgspec.UnsetType | None = msgspec.UNSET
    """Whether nothing is delivered for now."""
    after_revision: Annotated[int, msgspec.Meta(ge=0)] | msgspec.UnsetType | None = msgspec.UNSET
    """The next record is the first one after this revision; absent: it goes on where it was."""


class WebhookStatus(Value, frozen=True, kw_only=True):
    """How far deliveries are."""

    revision: int
    """The receiver has acknowledged everything up to this revision."""
    behind: int
    """By how many revisions the cluster is further."""
    failures: int
    """How many attempts have failed one after the other."""
    stopped: bool
    """Whether nothing is sent any more after too many failures, or since the receiver answered 410;
    changing the webhook ends that."""
    last_delivered_at: str | None = None
    """When the receiver last acknowledged a message, RFC 3339 in UTC; absent: never."""
    last_error: str | None = None
    """Why the last attempt failed; absent: it did not."""
    next_attempt_at: str | None = None
    """Before this time nothing is sent, RFC 3339 in UTC; absent: no attempt has failed."""


class Webhook(Value, frozen=True, kw_only=True):
    """A webhook, without its secret."""

    name: str
    """Name of the webhook."""
    url: str
    """Where messages are sent."""
    events: WebhookEvents
    """What is delivered."""
    namespace: str | None = None
    """Only pods in this namespace; absent: all."""
    disabled: bool
    """Whether nothing is delivered for now."""
    created_at: str
    """When it was made, RFC 3339 in UTC."""
    previous_secret_until: str | None = None
    """Until when messages are signed with the earlier secret as well, RFC 3339 in UTC."""
    status: WebhookStatus
    """How far deliveries are."""
    secret: str | None = None
    """The key with which messages are signed, `whsec_…`; only told when it is made."""


class WebhookList(Value, frozen=True, kw_only=True):
    """All webhooks of a cluster, by name."""

    items: list[Webhook]
    """The webhooks."""
    kind: str = "WebhookList"
    """What this is."""


class WebhookPing(Value, frozen=True, kw_only=True):
    """What came of a test message."""

    acknowledged: bool
    """Whether the receiver answered with a status from 200 to 299."""
    status: int | None = None
    """The status that the receiver answered; absent: there was no answer."""
    error: str | None = None
    """Why the message was not acknowledged; absent: it was."""
