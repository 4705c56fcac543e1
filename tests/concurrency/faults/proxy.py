"""A stand-in for the network between a server and PostgreSQL, which breaks at a named moment.

Random kills never hit the short time between a commit and its answer; here that is a choice. It
also is a network with a mind of its own: slow, narrow, silent, gone, forgetful of notifications.
"""

import asyncio
import os
import random
import re
import signal
import socket
import struct
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Self, get_args

import psutil
from sqlalchemy.engine import make_url

Kill = Literal["killed before", "killed between", "killed after"]
"""When the process that commits is killed (SIGKILL): before PostgreSQL hears of the commit, when it
is done and the process does not know, or as soon as it could."""
AtBackend = Literal["cancelled", "terminated", "backend killed"]
"""What PostgreSQL's process gets while it commits: a cancel, an order to end, or SIGKILL."""
Fault = (
    Literal[
        "answer lost",
        "never sent",
        "sent late",
        "request torn",
        "answer torn",
        "answer late",
        "answer silent",
        "never answered",
        "reset",
    ]
    | Kill
    | AtBackend
)
"""What befalls a commit: it is done and nobody is told; it gets lost on the way; it reaches
PostgreSQL only when its sender has long been told that the connection broke; half of it arrives, or
half of its answer; the answer comes late, or the connection says nothing for a while and then
breaks, or nothing as long as its sender waits; it is reset while PostgreSQL works; or one of both
ends dies."""
KILLS: tuple[Kill, ...] = get_args(Kill)
SIGNALS: dict[AtBackend, signal.Signals] = {
    "cancelled": signal.SIGINT,
    "terminated": signal.SIGTERM,
    "backend killed": signal.SIGKILL,
}

LATE_SECONDS = 0.1
SILENT_SECONDS = (0.3, 3.0)
AT_WORK_SECONDS = 0.01
"""By then, mostly, PostgreSQL has done what it was sent."""
_COMMIT = re.compile(rb"\bcommit_v\d+\(")
_NOTIFICATION, _BACKEND_KEY = b"A", b"K"


@dataclass
class Weather:
    """What the network is like at present."""

    delay_seconds: float = 0.0
    """Each piece takes so long, in both directions."""
    bytes_per_second: float | None = None
    is_silent: bool = False
    """Nothing passes; what was sent meanwhile arrives when this ends."""
    answers_vanish: bool = False
    loses_notifications: bool = False
    repeats_notifications: bool = False


class Message(NamedTuple):
    """A message of PostgreSQL's protocol, whole."""

    kind: bytes
    content: bytes
    """With its head."""

    @property
    def body(self) -> bytes:
        return self.content[5:]


class CommitProxy:
    """Listens as PostgreSQL does, hands everything on but `faults`, and has `weather`.

    In a `folder` it is a socket there; without one, a port of this machine, at an `address` that
    nobody else listens at. Each commit takes the next of the `faults`, in order; None lets it pass.
    """

    def __init__(
        self,
        database_url: str,
        folder: Path | None = None,
        *,
        address: tuple[str, int] = ("", 0),
        seed: str = "",
    ) -> None:
        real = make_url(database_url)
        self._real = f"{real.query['host']}/.s.PGSQL.{real.port or 5432}"
        self._own = None if folder is None else str(folder / ".s.PGSQL.5432")
        self._address = address
        if folder is None:
            query = {"sslmode": "disable"}
            told = real.set(host=address[0], port=address[1], query=query)
        else:
            told = real.update_query_dict({"host": str(folder)})
        self.url = told.render_as_string(hide_password=False)
        self.faults: deque[Fault | None] = deque()
        self.done: Counter[Fault] = Counter()
        self.befell = asyncio.Event()
        """Set with each fault that has befallen a commit."""
        self.weather = Weather()
        self.chance = random.Random(seed)
        self.passed = 0
        """Pieces that somebody sent, either way."""
        self._links: dict[asyncio.Task[None], Link] = {}
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop_listening()
        tasks = list(self._links)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def links(self) -> int:
        """How many connections there are."""
        return len(self._links)

    async def listen(self) -> None:
        if self._own is None:
            self._server = await asyncio.start_server(self._serve, *self._address, reuse_port=True)
        else:
            self._server = await asyncio.start_unix_server(self._serve, self._own)

    def stop_listening(self) -> None:
        """From now on connections are refused."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def reset(self) -> int:
        """Reset all connections, at both ends; how many there were."""
        for link in list(self._links.values()):
            link.reset()
        return len(self._links)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            real_reader, real_writer = await asyncio.open_unix_connection(self._real)
        except OSError:  # PostgreSQL was killed, and is not there again
            writer.close()
            return
        link = Link(self, reader, writer, real_reader, real_writer)
        self._links[task] = link
        try:
            with suppress(asyncio.CancelledError):  # all is over: asyncio would complain of it
                await link.run()
        finally:
            del self._links[task]
            for each in (writer, real_writer):
                each.close()


class Link:
    """One connection of a client, with one of ours to PostgreSQL."""

    def __init__(
        self,
        proxy: CommitProxy,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        real_reader: asyncio.StreamReader,
        real_writer: asyncio.StreamWriter,
    ) -> None:
        self._proxy = proxy
        self._reader = reader
        self._writer = writer
        self._real_reader = real_reader
        self._real_writer = real_writer
        self._commits: set[bytes] = set()
        """Names of prepared statements that commit."""
        self._backend = 0
        """The process at PostgreSQL's end."""
        self._deaf = False
        """Whether answers go nowhere."""
        self._late_seconds = 0.0
        self._torn = False
        """Whether of the next answer only half is passed on."""
        self._answered = asyncio.Event()

    async def run(self) -> None:
        ways = [asyncio.create_task(self._ask()), asyncio.create_task(self._answer())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    def reset(self) -> None:
        """End both connections at once; what is on its way is lost."""
        own = self._writer.get_extra_info("socket")
        if own is not None and own.family == socket.AF_INET:
            with suppress(OSError):
                own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()
        self._real_writer.transport.abort()

    async def _answer(self) -> None:
        async for piece in self._answers():
            self._answered.set()
            if self._late_seconds:
                await asyncio.sleep(self._late_seconds)
                self._late_seconds = 0.0
            await self._weather(len(piece))
            if self._deaf or self._proxy.weather.answers_vanish:
                continue
            if self._torn:
                self._writer.write(piece[: len(piece) // 2])
                await self._writer.drain()
                return
            self._writer.write(piece)
            await self._writer.drain()

    async def _answers(self) -> AsyncIterator[bytes]:
        """Whole messages of PostgreSQL, as many at a time as have come; notifications as wanted."""
        rest = b""
        while piece := await self._real_reader.read(65536):
            rest += piece
            messages, rest = _split(rest)
            for each in messages:
                if each.kind == _BACKEND_KEY:
                    (self._backend,) = struct.unpack_from("!i", each.body)
            passed = [each for each in messages if each.kind != _NOTIFICATION]
            told = [each for each in messages if each.kind == _NOTIFICATION]
            if not self._proxy.weather.loses_notifications:
                passed += told
            if self._proxy.weather.repeats_notifications:
                passed += told
            if passed:
                yield b"".join(each.content for each in passed)

    async def _ask(self) -> None:
        startup = await self._reader.readexactly(4)
        rest = await self._reader.readexactly(int.from_bytes(startup) - 4)
        await self._weather(len(rest))
        self._real_writer.write(startup + rest)
        while True:
            head = await self._reader.readexactly(5)
            body = await self._reader.readexactly(int.from_bytes(head[1:]) - 4)
            await self._weather(len(body))
            if self._is_commit(head[:1], body) and self._proxy.faults:
                fault = self._proxy.faults.popleft()
                if fault is not None:
                    if not await self._befall(fault, head + body):
                        return
                    continue
            self._real_writer.write(head + body)
            await self._real_writer.drain()

    async def _weather(self, count: int) -> None:
        """Wait for as long as it takes so many bytes to pass."""
        self._proxy.passed += 1
        while self._proxy.weather.is_silent:  # noqa: ASYNC110 - it is set by whoever has the proxy
            await asyncio.sleep(AT_WORK_SECONDS)
        weather = self._proxy.weather
        seconds = weather.delay_seconds
        if weather.bytes_per_second is not None:
            seconds += count / weather.bytes_per_second
        if seconds:
            await asyncio.sleep(seconds)

    def _is_commit(self, kind: bytes, body: bytes) -> bool:
        """Whether this message has a commit executed; learns the names of prepared ones."""
        if kind == b"P":
            name, query, _ = body.split(b"\0", 2)
            (self._commits.add if _COMMIT.search(query) else self._commits.discard)(name)
        return kind == b"B" and body.split(b"\0", 2)[1] in self._commits

    async def _befall(self, fault: Fault, bind: bytes) -> bool:
        """Have a commit meet a fault; whether the connection goes on.

        Bind goes with the messages that follow it, up to Sync.
        """
        commit = bind + await self._rest()
        goes_on = await self._meet(fault, commit)
        self._proxy.done[fault] += 1
        self._proxy.befell.set()
        if fault == "never answered":
            await self._reader.read()  # its sender gives up at last
        return goes_on

    async def _meet(self, fault: Fault, commit: bytes) -> bool:
        match fault:
            case "never sent":
                return False
            case "killed before" | "killed between" | "killed after":
                await self._kill(fault, commit)
                return False
            case "cancelled" | "terminated" | "backend killed":
                await self._send(commit)
                await asyncio.sleep(self._proxy.chance.uniform(0, AT_WORK_SECONDS))
                with suppress(ProcessLookupError):
                    os.kill(self._backend, SIGNALS[fault])
                return True
            case "request torn":
                await self._send(commit[: len(commit) // 2])
                return False
            case "answer torn" | "answer late":
                self._torn = fault == "answer torn"
                if fault == "answer late":
                    self._late_seconds = self._proxy.chance.uniform(*SILENT_SECONDS)
                await self._send(commit)
                return True
            case "reset":
                await self._send(commit)
                await asyncio.sleep(self._proxy.chance.uniform(0, AT_WORK_SECONDS))
                self.reset()
                return False
            case "answer lost" | "sent late" | "answer silent" | "never answered":
                await self._keep_silent(fault, commit)
                return False

    async def _keep_silent(self, fault: Fault, commit: bytes) -> None:
        self._deaf = True
        if fault == "sent late":
            self._writer.transport.abort()
            await asyncio.sleep(LATE_SECONDS)
        await self._send(commit)
        if fault == "answer silent":
            await asyncio.sleep(self._proxy.chance.uniform(*SILENT_SECONDS))
        elif fault != "never answered":
            # By then the statement has run: PostgreSQL notices only now that nobody listens.
            await asyncio.sleep(LATE_SECONDS)

    async def _kill(self, fault: Kill, commit: bytes) -> None:
        victim = self._peer()
        self._deaf = fault != "killed after"
        if fault != "killed before":
            self._answered.clear()
            await self._send(commit)
            await self._answered.wait()
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)

    async def _send(self, messages: bytes) -> None:
        self._real_writer.write(messages)
        await self._real_writer.drain()

    def _peer(self) -> int:
        """The process at the other end."""
        own = self._writer.get_extra_info("socket")
        if own.family != socket.AF_INET:
            told = own.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            return int(struct.unpack("3i", told)[0])
        ends = (
            own.getpeername(),
            own.getsockname(),
        )  # others may use the same port to go elsewhere
        there = psutil.net_connections("tcp4")
        found = [each.pid for each in there if (each.laddr, each.raddr) == ends]
        if not found or found[0] is None:
            raise ConnectionError("nobody is at the other end any more")
        return found[0]

    async def _rest(self) -> bytes:
        messages = b""
        while True:
            head = await self._reader.readexactly(5)
            messages += head + await self._reader.readexactly(int.from_bytes(head[1:]) - 4)
            if head[:1] == b"S":
                return messages


def _split(received: bytes) -> tuple[list[Message], bytes]:
    """The messages that have come as a whole, and the beginning of the next one."""
    found, start = [], 0
    while len(received) >= start + 5:
        end = start + 1 + int.from_bytes(received[start + 1 : start + 5])
        if end > len(received):
            break
        found.append(Message(received[start : start + 1], received[start:end]))
        start = end
    return found, received[start:]
