"""Base class of controllers that examine a whole cluster, after changes or at a due time."""

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from datetime import datetime
from typing import Any

from typing_extensions import override

from service.scheduler.controllers.controller import PAUSE_SECONDS, Controller, Spawn
from service.scheduler.controllers.leases import HeldLease
from service.scheduler.protocol.answers import Answer
from service.scheduler.protocol.intents import Intent
from service.scheduler.protocol.limits import Limits
from service.scheduler.protocol.ports import Clock
from service.scheduler.replica.replica import Replica


class SweepController(Controller):
    """Submits sweeps: requests that examine the cluster, one at a time."""

    def __init__(self, *, lease: HeldLease, clock: Clock, limits: Limits, spawn: Spawn) -> None:
        super().__init__(lease=lease, clock=clock, limits=limits, spawn=spawn)
        self._replica: Replica | None = None
        self._changed = False
        """Whether a change since the start of the last sweep may require another one."""
        self._due: datetime | None = None
        """When the next sweep is due, even without changes."""
        self._sweeping = False
        self._not_before = clock.monotonic()

    @abstractmethod
    def _intent(self) -> Intent[Any]:
        """Return the intent of a sweep."""

    @abstractmethod
    def _due_after(self, answer: Answer) -> datetime | None:
        """Return when the next sweep is due according to the last sweep's answer, or None."""

    @override
    def _begin_anew(self) -> None:
        self._changed = True

    @property
    def _is_due(self) -> bool:
        return self._due is not None and self.lease.database_time() >= self._due

    def sweep(self) -> None:
        """Begin a sweep."""
        self._sweeping, self._changed = True, False
        began = self._clock.monotonic()
        self._submit(self._intent(), self._conclusion(began))

    def _conclusion(self, began: float) -> Callable[[asyncio.Future[Answer]], None]:
        return lambda done: self._conclude(done, began)

    def _pause_after(self, answer: Answer, took: float) -> float:  # noqa: ARG002 - others go by it
        """Return how long to pause: as long as the sweep took, which leaves time for requests."""
        return min(took, PAUSE_SECONDS)

    def _conclude(self, future: asyncio.Future[Answer], began: float) -> None:
        now = self._clock.monotonic()
        self._sweeping = False
        error = future.exception()
        if error is None:
            self._due = self._due_after(future.result())
            self._not_before = now + self._pause_after(future.result(), now - began)
        else:
            self._changed = True
            self._not_before = now + PAUSE_SECONDS
        self._advance()
