"""Check whether this process can commit, with a test at most about once a second."""

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Protocol

from service.model.core.errors import MoorageError, StorageUnavailable

FRESH_SECONDS = 1.0
"""How long a result is reused, so that probes cannot keep the database busy."""
PROOF_SECONDS_MAX = 4.0
"""How long a test may take, including the wait for a free connection."""


class ProvingLog(Protocol):
    """A log that can test whether commits work."""

    async def check_writable(self) -> None:
        """Run a transaction like that of a commit, or raise StorageUnavailable."""
        ...


class CommitStore(Protocol):
    """A store whose log can test whether commits work, and that knows of outages."""

    @property
    def log(self) -> ProvingLog: ...

    @property
    def outage(self) -> str | None:
        """Why the database is known to be unusable, or None."""
        ...


class CommitProbe:
    """Tests whether commits work, and caches the result for a moment.

    Concurrent callers share one test.
    """

    def __init__(self, store: CommitStore, monotonic: Callable[[], float]) -> None:
        self._store = store
        self._monotonic = monotonic
        self._proof: asyncio.Task[StorageUnavailable | None] | None = None
        self._begun = float("-inf")

    async def check(self) -> None:
        """Check that commits work, or raise StorageUnavailable."""
        proof, now = self._proof, self._monotonic()
        if proof is None or (proof.done() and not self._is_fresh(proof, now)):
            # The test must not run in the context of one of the requests that wait for it.
            proof = asyncio.create_task(self._prove(), context=Context())
            self._proof, self._begun = proof, now
        if self._store.outage is not None and not proof.done():
            # Probes should not wait out a known outage, which ends once the test succeeds.
            raise StorageUnavailable("The database is lost; the log has the reason.")
        trouble = await asyncio.shield(proof)
        if trouble is not None:
            raise StorageUnavailable(trouble.detail)

    def _is_fresh(self, proof: asyncio.Task[StorageUnavailable | None], now: float) -> bool:
        """Return whether the last result is recent and agrees with the known state."""
        is_lost = self._store.outage is not None
        return now < self._begun + FRESH_SECONDS and is_lost == (proof.result() is not None)

    async def _prove(self) -> StorageUnavailable | None:
        try:
            async with asyncio.timeout(PROOF_SECONDS_MAX):
                await self._store.log.check_writable()
        except TimeoutError:
            return StorageUnavailable("A commit takes too long.")
        except StorageUnavailable as error:
            return StorageUnavailable(error.detail)
        except MoorageError as error:
            return StorageUnavailable(f"A commit fails: {error.detail}")
        return None
