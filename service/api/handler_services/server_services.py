"""The services that every handler works with; `service.app` puts them together."""

import asyncio
from collections.abc import Callable

import msgspec

from service.api.http.body import BodyReader
from service.api.reading.computed_status_reads import ComputedReads
from service.api.reading.event_reads import EVENT_KIND, EventReads
from service.api.reading.past_reads import PastReads
from service.api.reading.stored_reads import ClusterReads
from service.api.security.authentication import Authentication
from service.api.telemetry.metrics import Metrics
from service.api.telemetry.readiness_commit_probe import CommitProbe
from service.api.webhooks.delivery import WebhookStore
from service.api.webhooks.sending import Sender
from service.model.registry.kinds import DECLARED_KINDS
from service.model.registry.manifests import PodGroupManifest, QuotaManifest
from service.scheduler.scheduler import Scheduler
from service.settings import Settings

_COMPUTED = frozenset(
    (
        QuotaManifest.kind,
        PodGroupManifest.kind,
        *(each.kind for each in DECLARED_KINDS.values() if each.computed),
    )
)
"""The kinds whose `status` is computed for each answer."""


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of one process that serve requests."""

    settings: Settings
    authentication: Authentication
    reads: ClusterReads
    past: PastReads
    scheduler: Scheduler
    bodies: BodyReader
    metrics: Metrics
    proof: CommitProbe
    webhooks: WebhookStore
    sender: Sender
    """Sends test messages to webhooks."""
    new_id: Callable[[], str]
    """Makes identifiers that nobody has had."""

    turns: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    """Held by the one list with filters that looks through objects at the moment."""

    def is_computed(self, kind: str) -> bool:
        """Whether the `status` of objects of a kind is computed for each answer."""
        return kind in _COMPUTED

    def reads_of(self, kind: str) -> ClusterReads | ComputedReads:
        """The reads that know how objects of a kind are read."""
        if self.is_computed(kind):
            return ComputedReads(self.reads, self.scheduler)
        return self.reads

    def lists_of(self, kind: str) -> ClusterReads | ComputedReads | EventReads:
        """The reads that know how lists of a kind are read."""
        if kind == EVENT_KIND:
            return EventReads(self.reads, self.scheduler)
        return self.reads_of(kind)
