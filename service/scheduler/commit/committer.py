"""Makes a batch durable despite races, errors, and lost connections."""

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from service.model.core.errors import NotFound, OutcomeUnknown, StorageUnavailable
from service.model.log.commit import CommitRequest, Diverged, Head, LogPage, ReplicaMismatch
from service.model.log.results import Behind, CommitResult, Committed, Lost
from service.scheduler.commit.metrics import Meter
from service.scheduler.commit.request_batches import Batch
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock, DecideLocked, Ids, Store

_log = logging.getLogger(__name__)

Announce = Callable[[int], None]
"""Called with a cluster's number whenever its log has grown."""

Result = TypeVar("Result")

_MEMORY = 8
"""The number of recent races in the exponential moving average of the share of lost races."""

_DEFINITE = (StorageUnavailable, ReplicaMismatch, NotFound)
"""Errors which mean that nothing was committed. After any other error the outcome is unknown,
not failed (protocol rule P4)."""


class Committer:
    """Commits batches of one cluster. Every attempt has its own id."""

    def __init__(
        self,
        cluster_id: int,
        store: Store,
        clock: Clock,
        ids: Ids,
        limits: Limits,
        announce: Announce,
        meter: Meter,
    ) -> None:
        self._announce = announce
        self._meter = meter
        self._cluster_id = cluster_id
        self._store = store
        self._clock = clock
        self._ids = ids
        self._limits = limits
        self.lost_share = 0.0
        """The share of recent races that were lost; commits under the lock (protocol rule P6) do
        not count.
        """

    def request(self, batch: Batch, head: Head) -> CommitRequest:
        """Create a new attempt, with its own id, to commit a batch on top of a head."""
        return batch.request(self._ids.commit_id(), head.tip)

    async def publish(self, batch: Batch, head: Head) -> CommitResult:
        """Commit a batch on top of `head`, so that the state behind its answers is durable (P8).

        If the batch changes nothing, reading the head and finding it unchanged is enough. The read
        begins now, after every request of the batch has arrived.

        Raises:
            StorageUnavailable, ReplicaMismatch, NotFound: nothing was committed.
            OutcomeUnknown: whether the batch was committed cannot be determined.
        """
        if batch.changes:
            return await self._commit(batch, head)
        if batch.records:
            return await self._store.log.record_answers(self._cluster_id, head, batch.records)
        present = await self._store.log.head(self._cluster_id)
        same = (present.revision, present.tip) == (head.revision, head.tip)
        return Committed(present) if same else Lost(present)

    async def publish_locked(
        self, head: Head, decide: DecideLocked
    ) -> CommitResult | Behind | Diverged | None:
        """Lock the head, decide, and commit (protocol rule P6); return None without a commit.

        Raises what `publish` raises.
        """
        requests: list[CommitRequest] = []

        def remembering(page: LogPage) -> CommitRequest | None:
            request = decide(page)
            requests.extend([request] if request else [])
            return request

        store, after, tip, started = self._store, head.revision, head.tip, self._clock.monotonic()
        try:
            result = await store.log.commit_locked(self._cluster_id, after, tip, remembering)
            return self._concluded(result, requests, started)
        except _DEFINITE:
            raise
        except Exception as error:
            if not requests:
                raise
            return self._concluded(await self.settle(requests[0], error), requests, started)

    def _concluded(
        self, result: Result, requests: Sequence[CommitRequest], started: float
    ) -> Result:
        if isinstance(result, Committed):
            self._announce(self._cluster_id)
            for request in requests:
                seconds = self._clock.monotonic() - started
                self._meter.committed(request.kind, len(request.changes), seconds)
        elif isinstance(result, Lost):
            self._meter.lost()
        return result

    async def _commit(self, batch: Batch, head: Head) -> CommitResult:
        request, started = self.request(batch, head), self._clock.monotonic()
        result: CommitResult
        try:
            result = await self._store.log.commit(self._cluster_id, request)
        except _DEFINITE:
            raise
        except Exception as error:  # noqa: BLE001 - drivers raise anything (see _DEFINITE)
            result = await self.settle(request, error)
        self.lost_share += (isinstance(result, Lost) - self.lost_share) / _MEMORY
        return self._concluded(result, [request], started)

    async def settle(self, request: CommitRequest, cause: Exception) -> Committed | Lost:
        """Determine the outcome of an attempt that ended with `cause` (protocol rule P4).

        Raises:
            OutcomeUnknown: the outcome could not be determined.
        """
        context = {"commit": str(request.commit_id), "reason": _reason(cause)}
        _log.debug("The outcome of a commit is not known yet.", extra=context)
        for _ in range(self._limits.settle_attempts_max):
            try:
                return await self._store.log.settle_unknown(self._cluster_id, request)
            except (StorageUnavailable, OutcomeUnknown):
                await self._clock.sleep(self._limits.settle_pause_seconds)
        _log.warning("It could not be found out whether a commit was made.", extra=context)
        raise OutcomeUnknown("It could not be found out whether the change was committed.")


def _reason(error: BaseException) -> str:
    """Return a one-line reason for a failed commit, from the driver's error if wrapped."""
    cause = error.__cause__ or error
    return " ".join(str(cause).split()) or type(cause).__name__
