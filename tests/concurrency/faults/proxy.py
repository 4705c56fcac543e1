"""A stand-in for the network between a server and PostgreSQL, which breaks at a named moment.

Random kills never hit the short time between a commit and its answer; here that is a choice.
"""

import asyncio
import os
import re
import signal
import socket
import struct
from collections import Counter, deque
from pathlib import Path
from typing import Literal, Self, get_args

from sqlalchemy.engine import make_url

Kill = Literal["killed before", "killed between", "killed after"]
"""When the process that commits is killed (SIGKILL): before PostgreSQL hears of the commit, when it
is done and the process does not know, or as soon as it could."""
Fault = Literal["answer lost", "never sent", "sent late"] | Kill
"""What befalls a commit: it is done and nobody is told; it gets lost on the way; it reaches
PostgreSQL only when its sender has long been told that the connection broke; or its sender dies."""
KILLS: tuple[Kill, ...] = get_args(Kill)

LATE_SECONDS = 0.1
_COMMIT = re.compile(rb"\bcommit_v\d+\(")


class CommitProxy:
    """Listens in a folder of its own as PostgreSQL does in its; hands everything on but `faults`.

    Each commit takes the next of the `faults`, in order; None lets it pass.
    """

    def __init__(self, database_url: str, folder: Path) -> None:
        real = make_url(database_url)
        self._real = f"{real.query['host']}/.s.PGSQL.{real.port or 5432}"
        self._own = str(folder / ".s.PGSQL.5432")
        self.url = real.update_query_dict({"host": str(folder)}).render_as_string(
            hide_password=False
        )
        self.faults: deque[Fault | None] = deque()
        self.done: Counter[Fault] = Counter()
        self.befell = asyncio.Event()
        """Set with each fault that has befallen a commit."""
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._serve, self._own)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            real_reader, real_writer = await asyncio.open_unix_connection(self._real)
        except OSError:  # PostgreSQL was killed, and is not there again
            self._connections.discard(task)
            writer.close()
            return
        link = _Link(self, reader, writer, real_reader, real_writer)
        try:
            await link.run()
        finally:
            self._connections.discard(task)
            for each in (writer, real_writer):
                each.close()


class _Link:
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
        self._deaf = False
        """Whether answers go nowhere."""
        self._answered = asyncio.Event()

    async def run(self) -> None:
        ways = [asyncio.create_task(self._ask()), asyncio.create_task(self._answer())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _answer(self) -> None:
        while piece := await self._real_reader.read(65536):
            if not self._deaf:
                self._writer.write(piece)
                await self._writer.drain()
            self._answered.set()

    async def _ask(self) -> None:
        startup = await self._reader.readexactly(4)
        rest = await self._reader.readexactly(int.from_bytes(startup) - 4)
        self._real_writer.write(startup + rest)
        while True:
            head = await self._reader.readexactly(5)
            body = await self._reader.readexactly(int.from_bytes(head[1:]) - 4)
            if self._is_commit(head[:1], body) and self._proxy.faults:
                fault = self._proxy.faults.popleft()
                if fault is not None:
                    await self._break(fault, head + body)
                    return
            self._real_writer.write(head + body)
            await self._real_writer.drain()

    def _is_commit(self, kind: bytes, body: bytes) -> bool:
        """Whether this message has a commit executed; learns the names of prepared ones."""
        if kind == b"P":
            name, query, _ = body.split(b"\0", 2)
            (self._commits.add if _COMMIT.search(query) else self._commits.discard)(name)
        return kind == b"B" and body.split(b"\0", 2)[1] in self._commits

    async def _break(self, fault: Fault, bind: bytes) -> None:
        """Bind goes with the messages that follow it, up to Sync."""
        self._proxy.done[fault] += 1
        self._proxy.befell.set()
        self._deaf = fault != "killed after"
        rest = await self._rest()
        if fault in KILLS:
            await self._kill(fault, bind + rest)
            return
        if fault == "never sent":
            return
        if fault == "sent late":
            self._writer.transport.abort()
            await asyncio.sleep(LATE_SECONDS)
        self._real_writer.write(bind + rest)
        await self._real_writer.drain()
        # By now the statement runs, and ends: PostgreSQL notices only then that nobody listens.
        await asyncio.sleep(LATE_SECONDS)

    async def _kill(self, fault: Fault, commit: bytes) -> None:
        if fault != "killed before":
            self._answered.clear()
            self._real_writer.write(commit)
            await self._answered.wait()
        os.kill(self._peer(), signal.SIGKILL)

    def _peer(self) -> int:
        """The process at the other end."""
        own = self._writer.get_extra_info("socket")
        told = own.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", told)[0])

    async def _rest(self) -> bytes:
        messages = b""
        while True:
            head = await self._reader.readexactly(5)
            messages += head + await self._reader.readexactly(int.from_bytes(head[1:]) - 4)
            if head[:1] == b"S":
                return messages
