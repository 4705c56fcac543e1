"""The hosts in a database's URL, and connecting to the one that accepts writes."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import zip_longest
from typing import NamedTuple, Protocol, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from asyncpg.exceptions import TargetServerAttributeNotMatched
from typing_extensions import override

HEAD_START_SECONDS = 0.25
"""How long to wait for a host before also trying the next one."""
_PORT = 5432


class Host(NamedTuple):
    """Where a PostgreSQL server listens: a name, an address, or the folder of its socket."""

    name: str
    port: int

    @override
    def __str__(self) -> str:
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


def candidate_hosts(url: str) -> tuple[Host, ...]:
    """Return the hosts of a URL that names several, or none if it names one."""
    named = _named_by(url)
    return named if len(named) > 1 else ()


def single_host(url: str) -> Host | None:
    """Return the host of a URL that names exactly one, or None."""
    named = _named_by(url)
    return named[0] if len(named) == 1 and named[0].name else None


def _named_by(url: str) -> tuple[Host, ...]:
    """Return all hosts that a URL names.

    As in libpq, several hosts are listed in the URL's host part, each with its port, or in the
    query's `host` and `port`. A single port in the query applies to all hosts.
    """
    parts = urlsplit(url)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    named = parts.netloc.rpartition("@")[2]
    texts = (
        [unquote(name) for name in named.split(",")] if named else query.get("host", "").split(",")
    )
    ports = [port for port in query.get("port", "").split(",") if port]
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


class Closable(Protocol):
    """A connection that can be closed."""

    def terminate(self) -> None:
        """Close the connection without notifying the server."""
        ...


C = TypeVar("C", bound=Closable)


async def first_to_open(openers: Sequence[Callable[[], Awaitable[C]]]) -> C:
    """Return the first connection that opens; the other attempts are canceled.

    Hosts are tried in order, each a moment after the one before it, or as soon as that has failed,
    so a host that does not answer delays no other.

    Raises: the most informative failure, if no connection opens.
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
            failures += [error for task in done if (error := task.exception()) is not None]
            opened = [task.result() for task in done if task.exception() is None]
            for superfluous in opened[1:]:
                superfluous.terminate()
            if opened:
                return opened[0]
    finally:
        await _give_up(asked)
    raise _most_informative(failures)


async def _give_up(asked: set[asyncio.Task[C]]) -> None:
    for task in asked:
        task.cancel()
    for ended in await asyncio.gather(*asked, return_exceptions=True):
        if not isinstance(ended, BaseException):
            ended.terminate()


def _most_informative(failures: Sequence[BaseException]) -> BaseException:
    """Return the last failure, preferring any other over a standby that refuses writes."""
    others = [error for error in failures if not isinstance(error, TargetServerAttributeNotMatched)]
    return [*failures, *others][-1]
