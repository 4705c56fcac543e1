"""Every kind of connection over TCP notices that its peer has vanished, at both ends, within seconds."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, suppress
from functools import partial
from typing import Self

import msgspec
import psutil
import pytest
from sqlalchemy.engine import make_url

from service.model.core.errors import OutcomeUnknown, StorageUnavailable
from service.store.db import connector as connections
from service.store.db.connector import FailoverWatcher, connector
from service.store.db.hosts import Host
from service.store.log.notify import ANSWER_SECONDS_MAX, SILENCE_SECONDS
from service.store.postgres import PostgresStore
from service.store.schema.migrate import is_current, upgrade_async
from tests.store.history import commit_on, committed, create
from tests.waiting import PATIENCE_SECONDS, once

NOTICED_BY_THE_CLIENT = {
    "SO_KEEPALIVE": 1,
    "TCP_KEEPIDLE": 2,
    "TCP_KEEPINTVL": 1,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 4_000,
}
"""Two seconds of silence, then three probes of one second; and four for what is sent and not confirmed."""
NOTICED_SECONDS_MAX = 5.0
ASKED_OF_THE_SERVER = {
    "application_name": "moorage",
    "idle_in_transaction_session_timeout": "5s",
    "tcp_keepalives_count": "3",
    "tcp_keepalives_idle": "2",
    "tcp_keepalives_interval": "1",
    "tcp_user_timeout": "4000",
}


class Session(msgspec.Struct):
    """What the network sees of one connection of this process."""

    begin: bytes = b""
    options: dict[str, int] | None = None
    """Of the client's socket, when it last sent something."""


class TcpRelay:
    """Hands everything on between the loopback interface and PostgreSQL's socket, while it `flows`."""

    def __init__(self, database_url: str) -> None:
        self._real = make_url(database_url)
        self.flows = asyncio.Event()
        """While this is not set, nothing is handed on, and no connection is refused or ended."""
        self.flows.set()
        self.sessions: list[Session] = []
        self._relaying: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        real = self._real.set(host="127.0.0.1", port=self._port, query={})
        return real.render_as_string(hide_password=False)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._relaying:
            task.cancel()
        await asyncio.gather(*self._relaying, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._relaying.add(task)
        task.add_done_callback(self._relaying.discard)
        session = Session()
        self.sessions.append(session)
        try:
            await self.flows.wait()
        except asyncio.CancelledError:  # the relay ends
            writer.close()
            return
        path = f"{self._real.query['host']}/.s.PGSQL.{self._real.port or 5432}"
        real_reader, real_writer = await asyncio.open_unix_connection(path)
        port = writer.get_extra_info("peername")[1]

        def look(data: bytes) -> None:
            session.begin = (session.begin + data)[:2_000]
            session.options = _options_of(port) or session.options

        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._hand_on(reader, real_writer, look))
                both.create_task(self._hand_on(real_reader, writer, lambda _: None))
        except asyncio.CancelledError:
            pass  # the relay ends, and asyncio would complain of a connection that did
        finally:
            real_writer.close()
            writer.close()

    async def _hand_on(
        self,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        look: Callable[[bytes], None],
    ) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                await self.flows.wait()
                look(data)
                target.write(data)
                await target.drain()
            target.write_eof()


def _options_of(port: int) -> dict[str, int] | None:
    """Of this process's socket that is bound to a port; None where it has been closed."""
    for each in psutil.Process().net_connections("tcp4"):
        if each.laddr.port == port and each.fd >= 0:
            with socket.fromfd(each.fd, socket.AF_INET, socket.SOCK_STREAM) as own:
                return dict(_read(own))
    return None


def _read(connected: socket.socket) -> Iterator[tuple[str, int]]:
    for name in NOTICED_BY_THE_CLIENT:
        level = socket.SOL_SOCKET if name.startswith("SO_") else socket.IPPROTO_TCP
        yield name, connected.getsockopt(level, getattr(socket, name))


@pytest.fixture
async def relay(database_url: str) -> AsyncIterator[TcpRelay]:
    async with TcpRelay(database_url) as running:
        yield running


async def committing(store: PostgresStore) -> None:
    await committed(store, 1, create("a"))


async def reading(store: PostgresStore) -> None:
    await store.objects.list(1, "Pod", limit=1)
    await store.clusters.all()


async def upkeep(store: PostgresStore) -> None:
    await store.leases.acquire(1, "work", "holder", 1.0)


async def hints(store: PostgresStore) -> None:
    async with aclosing(store.listen()) as heard:
        await anext(heard)
        store.notify(1)
        assert await anext(heard) == {1}


KINDS: dict[str, tuple[Callable[[PostgresStore], Awaitable[None]], int]] = {
    "commits": (committing, 1),
    "reads": (reading, 1),
    "upkeep": (upkeep, 1),
    "hints": (hints, 2),
}


def assert_noticed_at_both_ends(sessions: list[Session]) -> None:
    for session in sessions:
        assert session.options == NOTICED_BY_THE_CLIENT
        for name, value in ASKED_OF_THE_SERVER.items():
            assert f"\0{name}\0{value}\0".encode() in session.begin


async def test_a_database_that_ceases_to_answer_is_lost_within_five_seconds_and_found_again(
    relay: TcpRelay, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections stay, and the kernel at the other end confirms all: only silence tells.

    Whoever waits for an answer then is told that there is none, long before a statement has to end.
    """
    assert SILENCE_SECONDS + ANSWER_SECONDS_MAX < NOTICED_SECONDS_MAX
    store = PostgresStore(relay.url, statement_seconds_max=10 * PATIENCE_SECONDS)
    async with aclosing(store.listen()) as heard:
        assert not await anext(heard)  # it listens
        listening = asyncio.create_task(drained(heard))
        await store.now()
        with monkeypatch.context() as hurried:
            hurried.setattr(connections, "CONNECT_SECONDS", 0.2)
            relay.flows.clear()
            waiting = asyncio.ensure_future(store.now())
            await once(partial(has_outage, store), PATIENCE_SECONDS)
            with pytest.raises(StorageUnavailable):
                await asyncio.wait_for(waiting, PATIENCE_SECONDS)
        relay.flows.set()
        await store.log.check_writable()
        assert not await has_outage(store)
        listening.cancel()
        await asyncio.wait([listening])
    await store.close()
    lines = [(each.levelname, each.message) for each in caplog.records if "outages" in each.name]
    assert lines == [("ERROR", "The database is lost."), ("WARNING", "The database is back.")]


async def test_what_is_asked_on_a_connection_on_which_nobody_answers_is_not_waited_for(
    relay: TcpRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a proxy had forgotten it; PostgreSQL would end a statement that takes too long itself."""
    monkeypatch.setattr(connections, "LATE_ANSWER_SECONDS", 0.0)
    store = PostgresStore(relay.url, statement_seconds_max=2.0)
    head = await committed(store, 1, create("a"))
    await store.now()
    relay.flows.clear()
    commit = asyncio.ensure_future(store.log.commit(1, commit_on(head, create("b"))))
    read = asyncio.ensure_future(store.now())
    done, _ = await asyncio.wait([commit, read], timeout=PATIENCE_SECONDS)
    assert [type(each.exception()) for each in (commit, read) if each in done] == [
        OutcomeUnknown,
        StorageUnavailable,
    ]
    relay.flows.set()
    await store.close()


async def drained(heard: AsyncIterator[frozenset[int]]) -> None:
    async for _ in heard:
        pass


async def has_outage(store: PostgresStore) -> bool:
    return store.outage is not None


async def test_p3_a_host_that_answers_nobody_is_passed_over_and_left_for_one_that_took_over(
    relay: TcpRelay, database_url: str
) -> None:
    """Whoever waits for an answer of the host before is told at once that the database was lost."""
    async with TcpRelay(database_url) as other:
        store = PostgresStore(several(relay, other))
        relay.flows.clear()
        await store.now()
        assert [session.begin for session in relay.sessions] == [b""]
        assert store.outage is None

        other.flows.clear()
        waiting = asyncio.ensure_future(store.now())
        await once(partial(is_lent, store))
        relay.flows.set()
        await FailoverWatcher(several(relay, other), store.guard).poll()
        assert store.guard.host == Host(
            "127.0.0.1", int(relay.url.rpartition(":")[2].split("/")[0])
        )
        later = await connector(relay.url, {})()
        assert later.history is not None
        later.history = later.history._replace(timeline=later.history.timeline + 1)
        store.guard.let_in(later)
        with pytest.raises(StorageUnavailable):
            await asyncio.wait_for(waiting, PATIENCE_SECONDS)
        assert store.epoch == 1
        later.terminate()
        await store.close()


async def is_lent(store: PostgresStore) -> bool:
    return store.pools.reads.use.borrowed == 1


def several(*relays: TcpRelay) -> str:
    """The URL of all of them, in this order."""
    real = make_url(relays[0].url)
    hosts = ",".join(f"{real.host}:{make_url(each.url).port}" for each in relays)
    return f"postgresql://{real.username}@{hosts}/{real.database}"


@pytest.mark.parametrize("kind", KINDS)
async def test_p6_a_peer_that_vanished_is_noticed_on_every_connection_of_the_store(
    relay: TcpRelay, kind: str
) -> None:
    """A client's, so that no head stays locked for it; a server's, so that nobody waits for ever."""
    use, opened_min = KINDS[kind]
    store = PostgresStore(relay.url)
    await use(store)
    await store.close()
    opened = [session for session in relay.sessions if session.begin]
    assert len(opened) >= opened_min
    assert_noticed_at_both_ends(opened)


async def test_p6_a_peer_that_vanished_is_noticed_while_migrating(databases) -> None:
    name = databases.new_name()
    databases.execute(f"CREATE DATABASE {name}")
    try:
        async with TcpRelay(databases.url(name)) as relay:
            assert not await is_current(relay.url)
            await upgrade_async(relay.url)
            assert await is_current(relay.url)
            assert len(relay.sessions) >= 3
            assert_noticed_at_both_ends(relay.sessions)
    finally:
        databases.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def test_p15_all_statements_are_bounded_in_time_and_only_commits_have_generic_plans(
    relay: TcpRelay,
) -> None:
    store = PostgresStore(relay.url)
    await store.log.head(1)
    await committed(store, 1, create("a"))
    await store.close()
    first, second = (session.begin for session in relay.sessions)
    bound = b"\0statement_timeout\x0030000ms\0"
    assert (bound in first, b"plan_cache_mode" in first) == (True, False)
    assert (bound in second, b"plan_cache_mode" in second) == (True, True)
