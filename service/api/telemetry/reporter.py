"""Report the state of a process and its database connections about once a second."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from service.api.telemetry.metrics import Metrics
from service.api.telemetry.readiness import CommitProbe
from service.model.core.errors import StorageUnavailable

PAUSE_SECONDS = 1.0


class PoolUse(Protocol):
    """The connections of a pool."""

    @property
    def idle(self) -> int:
        """The number of idle connections."""
        ...

    @property
    def borrowed(self) -> int:
        """The number of borrowed connections."""
        ...

    @property
    def size(self) -> int:
        """The maximum number of borrowed connections."""
        ...


class Database(Protocol):
    """A database's state, as reported by the store."""

    @property
    def outage(self) -> str | None:
        """Why the database cannot be used, or None."""
        ...

    def pool_uses(self) -> Mapping[str, PoolUse]:
        """Return the usage of each pool, by the purpose of its connections."""
        ...

    def incidents(self) -> Mapping[str, int]:
        """Return the number of outages, takeovers, and lifts since this process began."""
        ...


class Held(Protocol):
    """The memory that requests hold in this process."""

    @property
    def in_flight(self) -> int:
        """The bytes of received bodies and unsent answers."""
        ...


class DatabaseReporter:
    """Updates the gauges of the process, its pools, and its database; probes a lost database."""

    def __init__(
        self, database: Database, proof: CommitProbe, metrics: Metrics, held: Held
    ) -> None:
        self._held = held
        self._database = database
        self._proof = proof
        self._metrics = metrics

    async def run(self) -> None:
        """Report the state until canceled."""
        while True:
            await self.look()
            await asyncio.sleep(PAUSE_SECONDS)

    async def look(self) -> None:
        """Report the current state; if the database is lost, test a commit to detect its return."""
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
