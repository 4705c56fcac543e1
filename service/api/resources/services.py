"""The services that every handler uses; `service.app` assembles them."""

import asyncio
from collections.abc import Callable

import msgspec

from service.api.auth.authentication import Authentication
from service.api.http.body import BodyReader
from service.api.reads.computed import ComputedReads
from service.api.reads.events import EVENT_KIND, EventReads
from service.api.reads.history import PastReads
from service.api.reads.stored import ClusterReads
from service.api.telemetry.metrics import Metrics
from service.api.telemetry.readiness import CommitProbe
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
        *(declared.kind for declared in DECLARED_KINDS.values() if declared.computed),
    )
)
"""The kinds whose `status` is computed for each answer."""


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a process that handlers use to serve requests."""

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
    """Generates unique ids."""

    turns: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    """Held by the filtered list that is currently scanning objects; only one scans at a time."""

    def is_computed(self, kind: str) -> bool:
        """Return whether the `status` of a kind's objects is computed for each answer."""
        return kind in _COMPUTED

    def reads_of(self, kind: str) -> ClusterReads | ComputedReads:
        """Return the reader of objects of a kind."""
        if self.is_computed(kind):
            return ComputedReads(self.reads, self.scheduler)
        return self.reads

    def lists_of(self, kind: str) -> ClusterReads | ComputedReads | EventReads:
        """Return the reader of lists of a kind."""
        if kind == EVENT_KIND:
            return EventReads(self.reads, self.scheduler)
        return self.reads_of(kind)
