"""A URL may name several hosts: which they are, and who of them is waited for."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from asyncpg.exceptions import InvalidPasswordError, TargetServerAttributeNotMatched

from service.store.db.hosts import Host, candidate_hosts, first_to_open, single_host
from tests.waiting import PATIENCE_SECONDS


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://moorage@db/moorage", ()),
        ("postgresql://moorage@/moorage?host=/run/postgresql", ()),
        ("postgresql://moorage@/moorage", ()),
        ("postgresql://m:a%2Cb@one,two:6432/moorage", (("one", 5432), ("two", 6432))),
        ("postgresql+asyncpg://m@one,two/moorage?port=6432", (("one", 6432), ("two", 6432))),
        ("postgresql://m@/moorage?host=one,two&port=1,2", (("one", 1), ("two", 2))),
        (
            "postgresql://m@/moorage?host=%2Frun%2Fa,%2Frun%2Fb",
            (("/run/a", 5432), ("/run/b", 5432)),
        ),
        ("postgresql://m@[::1]:6432,[::2]/moorage", (("::1", 6432), ("::2", 5432))),
    ],
)
def test_the_hosts_of_a_url_are_read_as_libpq_reads_them(url, expected) -> None:
    assert candidate_hosts(url) == tuple(Host(*each) for each in expected)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://m:secret@db:6432/moorage", "db:6432"),
        ("postgresql://m@[::1]/moorage", "[::1]:5432"),
        ("postgresql://m@/moorage?host=%2Frun%2Fa", "/run/a:5432"),
        ("postgresql://m@/moorage", "None"),
        ("postgresql://m@one,two/moorage", "None"),
    ],
)
def test_the_only_host_of_a_url_is_told_without_its_secrets(url: str, expected: str) -> None:
    assert str(single_host(url)) == expected


class Connection:
    def __init__(self) -> None:
        self.terminated = False

    def terminate(self) -> None:
        self.terminated = True


def failing(error: Exception) -> Callable[[], Awaitable[Connection]]:
    async def refuse() -> Connection:
        raise error

    return refuse


def opening(connection: Connection) -> Callable[[], Awaitable[Connection]]:
    async def admit() -> Connection:
        return connection

    return admit


async def test_a_host_that_does_not_answer_holds_nobody_up_and_is_given_up() -> None:
    given_up = []

    async def never() -> Connection:
        try:
            return await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            given_up.append(True)
            raise

    expected = Connection()
    standby = failing(TargetServerAttributeNotMatched("a standby"))
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await first_to_open([never, standby, opening(expected)]) is expected
    assert given_up
    assert not expected.terminated


async def test_only_one_of_two_connections_is_kept() -> None:
    """The first one is late, and both are there at once."""
    late = asyncio.Event()
    connections = [Connection(), Connection()]

    async def first() -> Connection:
        await late.wait()
        return connections[0]

    async def second() -> Connection:
        late.set()
        return connections[1]

    opened = await first_to_open([first, second])
    assert [each.terminated for each in connections] == [each is not opened for each in connections]


async def test_the_most_telling_failure_is_raised() -> None:
    standby = failing(TargetServerAttributeNotMatched("a standby"))
    with pytest.raises(InvalidPasswordError):
        await first_to_open([standby, failing(InvalidPasswordError("wrong")), standby])
    with pytest.raises(TargetServerAttributeNotMatched):
        await first_to_open([standby, standby])
