"""Pools of connections to PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from service.model.core.errors import StorageUnavailable
from service.store.db.connector import Connection, Connector, StoreConnection
from service.store.db.failures import unavailable_on_failure, unknown_on_failure
from service.store.db.timeline import HistoryGuard

CLOSE_SECONDS = 2
POOL_WAIT_SECONDS = 20


class PoolUse(NamedTuple):
    """How many connections of a pool are idle and borrowed, and its size."""

    idle: int
    borrowed: int
    size: int
    """How many can be borrowed at once."""


class ConnectionPool:
    """A pool of connections with the same settings.

    It is little more than a list, because a connection is borrowed for every commit and every read
    of a head. (Each time, SQLAlchemy's pool takes 100 µs, asyncpg's 70, and this one 3.)
    """

    def __init__(self, connect: Connector, guard: HistoryGuard, *, size: int) -> None:
        self._connect = connect
        self._size = size
        self._guard = guard
        self.slots = asyncio.Semaphore(size)
        """Counts the connections that can still be borrowed."""
        self.idle: list[StoreConnection] = []
        """The open connections that are not borrowed."""
        self._borrowed = 0
        self._closed = False

    @property
    def use(self) -> PoolUse:
        """How many connections are idle, and how many are borrowed."""
        return PoolUse(idle=len(self.idle), borrowed=self._borrowed, size=self._size)

    async def close(self) -> None:
        """Close the idle connections; borrowed ones are closed when they are returned."""
        self._closed = True
        while self.idle:
            connection = self.idle.pop()
            with suppress(StorageUnavailable), unavailable_on_failure():
                await connection.close(timeout=CLOSE_SECONDS)

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[Connection]:
        """Borrow an open connection that shows the current history.

        If the borrower raises, the connection is closed and never reused.

        Raises:
            StorageUnavailable: no connection can be opened.
        """
        await self._acquire_slot()
        try:
            connection = self._take() or await self._open()
            self._borrowed += 1
            try:
                yield connection
            except BaseException:
                connection.terminate()
                raise
            finally:
                self._borrowed -= 1
            self._give_back(connection)
        finally:
            self.slots.release()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Borrow a connection for one transaction, which commits at the end.

        Raises:
            StorageUnavailable: nothing was changed.
            OutcomeUnknown: the database failed at the COMMIT, which it may have received.
        """
        with unavailable_on_failure():
            async with self.acquire() as connection:
                transaction = connection.transaction()
                await transaction.start()
                try:
                    yield connection
                except BaseException:
                    await transaction.rollback()
                    raise
                with unknown_on_failure():
                    await transaction.commit()

    async def _acquire_slot(self) -> None:
        if not self.slots.locked():
            await self.slots.acquire()
            return
        with unavailable_on_failure():
            async with asyncio.timeout(POOL_WAIT_SECONDS):
                await self.slots.acquire()

    def _take(self) -> StoreConnection | None:
        """Return the last used idle connection that is open and of the current history, or None."""
        while self.idle:
            connection = self.idle.pop()
            if not connection.is_closed() and connection.history == self._guard.current:
                return connection
            connection.terminate()
        return None

    async def _open(self) -> StoreConnection:
        with unavailable_on_failure():
            return await self._connect()

    def _give_back(self, connection: StoreConnection) -> None:
        assert not connection.is_in_transaction(), "a transaction was left open"
        if self._closed:
            connection.terminate()
        else:
            self.idle.append(connection)
