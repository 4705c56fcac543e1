"""Opens connections to PostgreSQL, with settings and time limits."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from service.model.core.errors import StorageUnavailable
from service.runtime.keepalive import keep_alive
from service.store.db.hosts import Host, candidate_hosts, first_to_open
from service.store.db.outages import Outages
from service.store.db.timeline import DatabaseHistory, HistoryGuard

CONNECT_SECONDS = 5
"""The time limit for opening a connection if the URL names one host."""
CONNECT_SECONDS_OF_SEVERAL = 3
"""The time limit for each host if the URL names several."""
LOOK_SECONDS = 2.0
"""The time between two polls of the hosts that are not in use."""
SERVER_VERSION_MIN = 15

_log = logging.getLogger(__name__)

STARTERS_LOCK = 0x4D4F4F52414745
"""The advisory lock of a starting process that changes tables or roles; "MOORAGE" in ASCII."""

if TYPE_CHECKING:  # the class is generic in its stubs only
    _Connection = asyncpg.Connection[asyncpg.Record]
else:
    _Connection = asyncpg.Connection

Connection: TypeAlias = "_Connection"

_SETTINGS = {
    "application_name": "moorage",
    "default_transaction_isolation": "read committed",
    "idle_in_transaction_session_timeout": "5s",
    "jit": "off",
    "TimeZone": "UTC",
    # A client that vanished must not keep a head locked until the kernel notices.
    "tcp_keepalives_idle": "2",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "4000",
}
# Plans must use indexes, whatever the tables contain when the plans are made: a DELETE that was
# prepared on an empty table took 100 ms at 200,000 rows (protocol rule P15), and a page of the log
# read the whole log. They must also read in order: if a cluster has grown since its rows were
# counted, bitmap scans collect and sort all following rows for each page of a list.
READ_SETTINGS = {
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
# Citus must know the cluster at planning time, to find its server. By default, it also hides
# shards, which makes the driver's lookup of a type take two seconds.
_FOR_CITUS = "SET plan_cache_mode = auto; SET citus.override_table_visibility = off"
STATEMENT_SECONDS_MAX = 30.0
LATE_ANSWER_SECONDS = 2.0
"""How long to wait for a statement's answer beyond the statement's time limit.

PostgreSQL cancels a statement in time and reports it; this covers a connection without answers.
"""
COMMIT_SETTINGS = {
    **READ_SETTINGS,
    "plan_cache_mode": "force_generic_plan",
    # With this, the arrays of a large commit stay in memory.
    "work_mem": "64MB",
}


class StoreConnection(_Connection):
    """A connection, with the database history on which it was opened."""

    history: DatabaseHistory | None = None


Connector = Callable[[], Awaitable[StoreConnection]]


def data_source_name(url: str) -> str:
    """Return the URL in the form of PostgreSQL's tools, converting `postgresql+asyncpg://…`."""
    return url.replace("postgresql+asyncpg://", "postgresql://", 1)


def connector(
    url: str,
    settings: Mapping[str, str],
    guard: HistoryGuard | None = None,
    outages: Outages | None = None,
    statement_seconds_max: float | None = None,
) -> Connector:
    """Return a function that opens one connection, to a server that accepts writes.

    If the URL names several hosts, the one that last accepted writes is tried first. `outages`
    records whether that worked. A statement that exceeds `statement_seconds_max`, or gets no answer
    soon after, fails like a lost database, so the outcome of a commit is then looked up.
    """
    guarding = guard or HistoryGuard()
    hosts, opened = candidate_hosts(url), _opener(url, settings, guarding, statement_seconds_max)

    async def connect() -> StoreConnection:
        with outages.watched("connection") if outages else nullcontext():
            if not hosts:
                return await opened(None)
            in_order = sorted(hosts, key=lambda host: host != guarding.host)
            return await first_to_open([partial(opened, host) for host in in_order])

    return connect


def _opener(
    url: str,
    settings: Mapping[str, str],
    guard: HistoryGuard,
    statement_seconds_max: float | None = None,
) -> Callable[[Host | None], Awaitable[StoreConnection]]:
    """Return a function that opens one connection, to the given host or to the only one."""
    limit: dict[str, str] = {}
    answer_seconds_max = None
    if statement_seconds_max is not None:
        limit = {"statement_timeout": f"{round(statement_seconds_max * 1000)}ms"}
        answer_seconds_max = statement_seconds_max + LATE_ANSWER_SECONDS

    async def opened(host: Host | None) -> StoreConnection:
        connection: StoreConnection = await asyncpg.connect(
            data_source_name(url),
            host=host and host.name,
            port=host and host.port,
            timeout=CONNECT_SECONDS_OF_SEVERAL if host else CONNECT_SECONDS,
            command_timeout=answer_seconds_max,
            connection_class=StoreConnection,
            server_settings={**_SETTINGS, **settings, **limit},
            target_session_attrs=SessionAttribute.read_write,
        )
        try:
            _enable_keepalive(connection)
            async with asyncio.timeout(CONNECT_SECONDS):
                await _check(connection)
            guard.register(connection, host)
        except BaseException:
            connection.terminate()
            raise
        return connection

    return opened


class FailoverWatcher:
    """Detects that another of several hosts has taken over.

    The former primary may be cut off or hang, with all its connections, or may keep answering,
    unaware that it was replaced. Only a connection to the new primary shows the failover.
    """

    def __init__(self, url: str, guard: HistoryGuard) -> None:
        self._hosts = candidate_hosts(url)
        self._guard = guard
        self._open = _opener(url, {}, guard)

    async def run(self) -> None:
        """Poll the other hosts periodically; return at once if the URL names one host."""
        while self._hosts:
            await asyncio.sleep(LOOK_SECONDS)
            await self.poll()

    async def poll(self) -> None:
        """Connect to all hosts but the one in use; the guard checks those that accept writes."""
        others = [host for host in self._hosts if host != self._guard.host]
        for result in await asyncio.gather(*map(self._open, others), return_exceptions=True):
            if isinstance(result, StoreConnection):
                result.terminate()
            else:
                _log.debug("A host is not the one that accepts writes.", exc_info=result)


def _enable_keepalive(connection: StoreConnection) -> None:
    """Have the kernel probe an idle connection, since a statement may run long without traffic."""
    # This is the only way to reach the transport, and the stubs do not declare it.
    transport: asyncio.BaseTransport = getattr(connection, "_transport")  # noqa: B009
    used = transport.get_extra_info("socket")
    if used.family in (socket.AF_INET, socket.AF_INET6):
        with socket.fromfd(used.fileno(), used.family, socket.SOCK_STREAM) as own:
            keep_alive(own)


async def _check(connection: StoreConnection) -> None:
    major = connection.get_server_version().major
    if major < SERVER_VERSION_MIN:
        raise StorageUnavailable(
            f"PostgreSQL {SERVER_VERSION_MIN} or later is needed; this is {major}."
        )
    row = await connection.fetchrow(
        # The checkpoint's timeline lags behind after a promotion; the log file's name does not.
        "SELECT system_identifier AS system,"
        " substring(pg_walfile_name(pg_current_wal_lsn()) FOR 8) AS timeline,"
        " EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') AS may_be_distributed"
        " FROM pg_control_system()"
    )
    assert row is not None
    if row["may_be_distributed"]:
        await connection.execute(_FOR_CITUS)
    connection.history = DatabaseHistory(row["system"], int(row["timeline"], base=16))
