"""Reads which hosts a database's URL names, and opens a connection to the one that accepts writes."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import zip_longest
from typing import NamedTuple, Protocol, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from asyncpg.exceptions import TargetServerAttributeNotMatched
from typing_extensions import override

HEAD_START_SECONDS = 0.25
"""How long the next host waits for the answer of the one before it."""
_PORT = 5432


class Host(NamedTuple):
    """Where a PostgreSQL listens: a name, an address, or the folder of its socket."""

    name: str
    port: int

    @override
    def __str__(self) -> str:
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


def hosts_of(url: str) -> tuple[Host, ...]:
    """The hosts of a URL that names several; none if there is nothing to choose from."""
    named = _named_by(url)
    return named if len(named) > 1 else ()


def only_host_of(url: str) -> Host | None:
    """The host of a URL that names one; None if it names several, or none."""
    named = _named_by(url)
    return named[0] if len(named) == 1 and named[0].name else None


def _named_by(url: str) -> tuple[Host, ...]:
    """All hosts that a URL names.

    As libpq has it, they are in the place of the host, each with its port, or in `host` and `port`
    of the query. One port there is that of all hosts.
    """
    parts = urlsplit(url)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    named = parts.netloc.rpartition("@")[2]
    texts = (
        [unquote(each) for each in named.split(",")] if named else query.get("host", "").split(",")
    )
    ports = [each for each in query.get("port", "").split(",") if each]
    every = ports[0] if len(ports) == 1 else None
    return tuple(
        _host(text, port or every) for text, port in zip_longest(texts, ports[: len(texts)])
    )


def _host(text: str, port: str | None) -> Host:
    if text.startswith("/"):
        return Host(text, int(port or _PORT))
    if text.startswith("["):  # an IPv6 address
        name, _, own = text[1:].partition("]")
        own = own.removeprefix(":")
    else:
        name, _, own = text.partition(":")
    return Host(name, int(port or own or _PORT))


class Connection(Protocol):
    """A connection, as far as it matters here."""

    def terminate(self) -> None:
        """Close it without a word."""
        ...


C = TypeVar("C", bound=Connection)


async def first_to_open(openers: Sequence[Callable[[], Awaitable[C]]]) -> C:
    """Open a connection to whichever host lets us first; the others are given up.

    They are asked in order, each a moment after the one before it, or as soon as that has failed,
    so that a host that does not answer holds nobody up.

    Raises: what the most telling failure was, if nobody lets us in.
    """
    waiting = list(openers)
    asked: set[asyncio.Task[C]] = set()
    failures: list[BaseException] = []
    try:
        while waiting or asked:
            if waiting:
                asked.add(asyncio.ensure_future(waiting.pop(0)()))
            done, asked = await asyncio.wait(
                asked,
                timeout=HEAD_START_SECONDS if waiting else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            failures += [error for each in done if (error := each.exception()) is not None]
            opened = [each.result() for each in done if each.exception() is None]
            for superfluous in opened[1:]:
                superfluous.terminate()
            if opened:
                return opened[0]
    finally:
        await _give_up(asked)
    raise _most_telling(failures)


async def _give_up(asked: set[asyncio.Task[C]]) -> None:
    for each in asked:
        each.cancel()
    for ended in await asyncio.gather(*asked, return_exceptions=True):
        if not isinstance(ended, BaseException):
            ended.terminate()


def _most_telling(failures: Sequence[BaseException]) -> BaseException:
    """That a standby accepts no writes is told of the others only if nothing else went wrong."""
    others = [each for each in failures if not isinstance(each, TargetServerAttributeNotMatched)]
    return [*failures, *others][-1]
