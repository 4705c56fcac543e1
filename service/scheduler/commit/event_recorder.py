"""Stores the events of decisions, separately from the commits and never before them.

Events that the audit log needs are part of the commit. All others are buffered and stored about
once a second, so a thousand placements cost one statement. If a process dies, its buffered events
are lost; so are events that exceed `Limits.events_per_second` for long.
"""

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence

from service.model.core.errors import MoorageError
from service.model.log.events import Event, EventReason, merged
from service.scheduler.commit.metrics import Meter
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock, Store

_log = logging.getLogger(__name__)

_Gathered = dict[tuple[str, str, str], Event]
"""Events by the pod's uid, the reason, and the message; events with equal keys are counted as one.
"""

Record = Callable[[int, Sequence[Event]], None]
"""Called with a cluster's number and the events of a durable commit."""


class EventRecorder:
    """Buffers events of this process and stores them in the background."""

    def __init__(self, store: Store, clock: Clock, limits: Limits, meter: Meter) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits
        self._meter = meter
        self._gathered: defaultdict[int, _Gathered] = defaultdict(dict)
        self._allowances: dict[tuple[int, EventReason], _Allowance] = {}

    def record(self, cluster_id: int, events: Sequence[Event]) -> None:
        """Count the evictions of a commit, and buffer its events for storage."""
        now = self._clock.monotonic() if events else 0.0
        for event in events:
            if event.rule:
                self._meter.evicted(event.rule)
            if not event.audit:
                self._gather(cluster_id, event, now)

    async def run(self) -> None:
        """Store buffered events every `Limits.events_seconds`, forever."""
        while True:
            await self._clock.sleep(self._limits.events_seconds)
            await self.flush()

    async def flush(self) -> None:
        """Store the buffered events, and keep those that cannot be stored now. Never raises."""
        for cluster_id in list(self._gathered):
            events = self._gathered.pop(cluster_id, {})
            try:
                await self._store.events.add(cluster_id, list(events.values()))
            except MoorageError:
                _log.debug("Events could not be stored.", exc_info=True)
                self._give_back(cluster_id, events)
            except Exception:  # noqa: BLE001 - a bug here must not end the recorder
                _log.exception("Storing events failed; they are dropped.")
                self._meter.events_dropped(len(events))
        now = self._clock.monotonic()
        self._allowances = {k: a for k, a in self._allowances.items() if not a.is_full(now)}

    def _gather(self, cluster_id: int, event: Event, now: float) -> None:
        gathered = self._gathered[cluster_id]
        key = (event.uid, event.reason, event.words or event.message)
        known = gathered.get(key)
        if known is not None:
            gathered[key] = merged(known, event)
        elif self._allowance(cluster_id, event.reason, now).take(now):
            gathered[key] = event
        else:
            self._meter.events_dropped(1)

    def _allowance(self, cluster_id: int, reason: EventReason, now: float) -> "_Allowance":
        allowance = self._allowances.get((cluster_id, reason))
        if allowance is None:
            allowance = _Allowance(self._limits.events_burst, self._limits.events_per_second, now)
            self._allowances[cluster_id, reason] = allowance
        return allowance

    def _give_back(self, cluster_id: int, events: _Gathered) -> None:
        """Put unstored events back before newer ones, dropping the oldest over the limit."""
        meanwhile = self._gathered.pop(cluster_id, {})
        for key, event in meanwhile.items():
            events[key] = merged(events[key], event) if key in events else event
        excess = max(0, len(events) - 2 * self._limits.events_burst)
        for key in list(events)[:excess]:
            del events[key]
        self._meter.events_dropped(excess)
        self._gathered[cluster_id] = events


class _Allowance:
    """A token bucket holding `burst` events and refilled with `per_second` events a second."""

    def __init__(self, burst: int, per_second: float, now: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._left = float(burst)
        self._at = now

    def take(self, now: float) -> bool:
        """Take a token for one event; return False if none is left."""
        self._fill(now)
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def is_full(self, now: float) -> bool:
        """Return whether the bucket is full."""
        self._fill(now)
        return self._left >= self._burst

    def _fill(self, now: float) -> None:
        if now == self._at:
            return  # All events of one commit arrive at the same time: only the first refills the bucket.
        self._left = min(self._burst, self._left + (now - self._at) * self._per_second)
        self._at = now
