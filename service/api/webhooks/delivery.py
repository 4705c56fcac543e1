"""Deliver records to the webhooks of all clusters, in the background.

All processes look for webhooks that are behind. One process claims a webhook for a while, sends the
next message, and notes the outcome. The outcome counts only while the claim lasts, so if the
process dies or is late, another one sends the same message again.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from tenacity import RetryCallState, Retrying, wait_random_exponential

from service.api.reads.stored import Reads
from service.api.webhooks.messages import Batch, next_batch
from service.api.webhooks.sending import Reply, Sender, WebhookMeter
from service.model.core.errors import MoorageError, NotFound
from service.model.log.audit_chain import AuditedCaller
from service.model.log.commit import LogPage
from service.model.webhooks import (
    Change,
    WebhookGone,
    WebhookRow,
    begun,
    delivered,
    failed,
    released,
)
from service.scheduler.protocol.ports import Clock
from service.settings import Settings

LOG_CHANGES = 1_000
"""How many changes of the log are read for one message."""

_log = logging.getLogger(__name__)


class _TooLate(Exception):  # noqa: N818 - named like other errors here
    """The store was so slow that another process might claim the webhook before delivery."""


class WebhookStore(Protocol):
    """The store of webhooks; every call may raise StorageUnavailable."""

    async def list(self, cluster_id: int) -> Sequence[WebhookRow]:
        """Return all webhooks of a cluster, ordered by name."""
        ...

    async def change(
        self,
        cluster_id: int,
        name: str,
        change: Change,
        *,
        caller: AuditedCaller | None = None,
        dry_run: bool = False,
    ) -> WebhookRow | None:
        """Replace a webhook with the result of `change`; raise its errors, or NotFound."""
        ...

    async def claim(self, holder: str, seconds: float, limit: int) -> Sequence[WebhookRow]:
        """Claim up to `limit` due webhooks that are behind their clusters."""
        ...


class DeliveryStore(Reads, Protocol):
    """The parts of the store that deliveries need."""

    @property
    def webhooks(self) -> WebhookStore: ...


class Deliveries:
    """Delivers messages to webhooks, as one of several processes."""

    def __init__(
        self,
        *,
        store: DeliveryStore,
        sender: Sender,
        settings: Settings,
        clock: Clock,
        meter: WebhookMeter,
        holder: str,
    ) -> None:
        """Create a deliverer; `holder` identifies this process. The caller closes `sender`."""
        self._store = store
        self._sender = sender
        self._settings = settings
        self._clock = clock
        self._meter = meter
        self._holder = holder
        self._lease_seconds = settings.webhook_timeout_seconds + settings.webhook_margin_seconds
        self._running = set[asyncio.Task[None]]()
        self._again = asyncio.Event()
        """Set when a webhook may have more to deliver immediately."""

    async def run(self) -> None:
        """Deliver messages until canceled, then release the claims for other processes."""
        try:
            while True:
                self._again.clear()
                try:
                    await self._begin()
                except MoorageError:
                    _log.debug("Webhooks could not be looked for.", exc_info=True)
                except Exception:  # noqa: BLE001 - a bug here must not end all deliveries
                    _log.exception("Looking for webhooks failed; it will be tried again.")
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._settings.webhook_poll_seconds):
                        await self._again.wait()
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    async def _begin(self) -> None:
        """Claim due webhooks, up to the number of deliveries that this process may still begin."""
        free = self._settings.webhook_deliveries_max - len(self._running)
        if free <= 0:
            return
        asked = self._clock.monotonic()
        for claim in await self._store.webhooks.claim(self._holder, self._lease_seconds, free):
            task = asyncio.create_task(self._attend(claim, asked))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _attend(self, claim: WebhookRow, asked: float) -> None:
        """Deliver one message; raise nothing but CancelledError."""
        log_fields = {"webhook": claim.name, "cluster_id": claim.cluster_id}
        try:
            seconds = await self._deliver(claim, asked)
            if seconds is not None:
                asyncio.get_running_loop().call_later(seconds, self._again.set)
        except asyncio.CancelledError:
            await self._release(claim)
            raise
        except WebhookGone:
            _log.debug("The webhook is another one now.", extra=log_fields)
            await self._release(claim)
            self._again.set()
        except _TooLate:
            # Not retried at once: the store would hardly be faster, and others wait for it.
            _log.info(
                "Nothing was sent: the store took too long for webhook_margin_seconds.",
                extra=log_fields,
            )
            await self._release(claim)
        except MoorageError:
            _log.debug("A delivery was broken off.", extra=log_fields, exc_info=True)
        except Exception:  # noqa: BLE001 - the other webhooks continue
            _log.exception("A delivery failed; it will be tried again.", extra=log_fields)

    async def _deliver(self, claim: WebhookRow, asked: float) -> float | None:
        """Deliver the next message; return the seconds until the next one, or None on failure."""
        page = await self._store.log.read(claim.cluster_id, claim.revision, None, LOG_CHANGES)
        batch = next_batch(
            claim,
            page,
            records_max=self._settings.webhook_records_max,
            bytes_max=self._settings.webhook_bytes_max,
        )
        is_behind = isinstance(page, LogPage) and batch.end < page.head.revision
        seconds = 0.0 if is_behind else self._settings.webhook_interval_seconds
        if not batch.is_sent:
            await self._note(claim, delivered(claim, batch.end, is_sent=False, seconds=seconds))
            return seconds
        if claim.batch_end != batch.end:
            await self._note(claim, begun(claim, batch.end))
        body = batch.message(claim, await self._cluster(claim.cluster_id))
        if self._clock.monotonic() - asked > self._settings.webhook_margin_seconds / 2:
            raise _TooLate
        reply = await self._sender.send(claim, batch.identifier(claim), body)
        await self._settle(claim, batch, reply, seconds)
        return seconds if reply.error is None else None

    async def _settle(self, claim: WebhookRow, batch: Batch, reply: Reply, interval: float) -> None:
        if reply.error is None:
            self._meter.webhook_sent("acknowledged")
            self._meter.webhook_lag(max(0.0, (self._clock.now() - batch.at).total_seconds()))
            await self._note(claim, delivered(claim, batch.end, is_sent=True, seconds=interval))
            return
        self._meter.webhook_sent("failed")
        limit = 0 if reply.is_gone else self._settings.webhook_failures_max
        seconds = pause_seconds(claim.failures + 1, self._settings.webhook_pause_seconds_max)
        _log.info(
            "A message was not delivered.",
            extra={"webhook": claim.name, "failures": claim.failures + 1, "error": reply.error},
        )
        await self._note(claim, failed(claim, reply.error, seconds=seconds, failures_max=limit))

    async def _release(self, claim: WebhookRow) -> None:
        """Release the claim on a webhook before it expires, if that can be stored."""
        with suppress(MoorageError, WebhookGone):
            await self._note(claim, released(claim))

    async def _note(self, claim: WebhookRow, change: Change) -> None:
        await self._store.webhooks.change(claim.cluster_id, claim.name, change)

    async def _cluster(self, cluster_id: int) -> str:
        for row in await self._store.clusters.all():
            if row.cluster_id == cluster_id:
                return row.name
        raise NotFound("The cluster has been deleted.")


def pause_seconds(failures: int, seconds_max: float) -> float:
    """Return a random delay of at least a second, up to a bound that doubles with each failure."""
    state = RetryCallState(Retrying(), None, (), {})
    state.attempt_number = min(failures, 60)
    return wait_random_exponential(multiplier=2, max=seconds_max, min=min(1.0, seconds_max))(state)
