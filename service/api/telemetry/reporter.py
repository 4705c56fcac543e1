"""Tells about once a second how a process and its database connections are."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from service.api.telemetry.metrics import Metrics
from service.api.telemetry.readiness import CommitProbe
from service.model.core.errors import StorageUnavailable

PAUSE_SECONDS = 1.0


class PoolUse(Protocol):
    """How many connections of a pool are open."""

    @property
    def idle(self) -> int:
        """How many nobody has borrowed."""
        ...

    @property
    def borrowed(self) -> int:
        """How many somebody has borrowed."""
        ...

    @property
    def size(self) -> int:
        """How many may be borrowed at once."""
        ...


class Database(Protocol):
    """What a store tells of its database."""

    @property
    def outage(self) -> str | None:
        """Why the database cannot be used; None if it can."""
        ...

    def pool_uses(self) -> Mapping[str, PoolUse]:
        """The use of each pool, by what its connections are for."""
        ...

    def incidents(self) -> Mapping[str, int]:
        """How many outages, takeovers and lifts there were since this process began."""
        ...


class Held(Protocol):
    """What requests hold of this process."""

    @property
    def in_flight(self) -> int:
        """The bytes of received bodies and unsent answers."""
        ...


class DatabaseReporter:
    """Keeps the gauges of the process, its pools and its database, and tries a lost database."""

    def __init__(
        self, database: Database, proof: CommitProbe, metrics: Metrics, held: Held
    ) -> None:
        self._held = held
        self._database = database
        self._proof = proof
        self._metrics = metrics

    async def run(self) -> None:
        """Tell the state again and again, for ever."""
        while True:
            await self.look()
            await asyncio.sleep(PAUSE_SECONDS)

    async def look(self) -> None:
        """Tell the present state; ask a database that was lost for a commit, so that it is found."""
        if self._database.outage is not None:
            with suppress(StorageUnavailable):
                await self._proof.check()
        self._metrics.bytes_in_flight(self._held.in_flight)
        self._metrics.database(
            is_up=self._database.outage is None,
            pools={
                name: {"idle": use.idle, "borrowed": use.borrowed, "size": use.size}
                for name, use in self._database.pool_uses().items()
            },
            incidents=self._database.incidents(),
        )
