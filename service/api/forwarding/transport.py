"""Carry requests and answers between workers of a server, over sockets in a private folder.

Each worker listens on a socket named after itself, and keeps one connection to each worker to which
it forwards requests. Requests and answers interleave on a connection as frames: four bytes of
length, then MessagePack. A large answer is sent in parts, with other frames in between. The same
frames are used between workers of different servers (`service.api.forwarding.peer_connections`).
"""

import asyncio
import logging
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec.structs import replace

from service.api.forwarding.peer_connections import Servers
from service.api.forwarding.peer_names import id_in
from service.api.forwarding.retry import (
    AnswerLost,
    OtherOwner,
    Repeat,
    Unreachable,
)
from service.api.http.byte_budget import Budget, ByteReservation
from service.api.http.context import SubrequestTerms
from service.api.http.disconnect import Left
from service.api.http.problems import TooManyBytes
from service.model.core.access import Principal
from service.runtime.tasks import log_failure
from service.scheduler.protocol.clients import Client

SOCKET_PATH_BYTES_MAX = 100
"""The longest socket path, in bytes, that all systems accept."""
FRAME_BYTES_MAX = 64 * 1024 * 1024
"""The maximum size of a frame; a larger request is not forwarded."""
PART_BYTES_MAX = 1024 * 1024
"""The most bytes of an answer in one frame, so that pings and other answers need not wait long."""
CONNECT_SECONDS_MAX = 0.5
"""How long connecting to another worker may take; to another server, including the handshake."""
RECONNECT_SECONDS = 0.25
"""How long to wait before connecting again to a worker that could not be reached."""
PING_SECONDS = 0.25
PINGS_UNANSWERED_MAX = 4
"""A worker that leaves this many pings unanswered counts as unresponsive."""

Headers = Sequence[tuple[bytes, bytes]]
_log = logging.getLogger(__name__)


class ForwardedRequest(msgspec.Struct, frozen=True, array_like=True):
    """A request with its complete body, without the credentials that authenticated its caller."""

    method: str
    path: str
    raw_path: bytes
    query: bytes
    headers: Headers
    body: bytes
    principal: Principal | None
    address: str = ""
    request_id: str = ""
    terms: SubrequestTerms | None = None
    """The terms of a server's own request."""


def cluster_in(request: ForwardedRequest) -> str:
    """Return the name of the cluster that a request is about, or ""."""
    parts = request.path.split("/", 4)
    return parts[3] if len(parts) > 3 and parts[2] == "clusters" else ""  # noqa: PLR2004


class ForwardedAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The complete answer to a forwarded request."""

    status: int
    headers: Headers
    body: bytes
    changes_nothing: bool = False
    """Whether the request changed nothing, so that its answer may be refused for lack of room."""

    @property
    def refused(self) -> bool:
        """Whether the answer is an error."""
        return self.status >= 400  # noqa: PLR2004


class _Ask(msgspec.Struct, frozen=True, array_like=True, tag="?"):
    number: int
    request: ForwardedRequest


class _Left(msgspec.Struct, frozen=True, array_like=True, tag="-"):
    """The client that waits for this answer has disconnected; an answer is still expected."""

    number: int


class _Answer(msgspec.Struct, frozen=True, array_like=True, tag="!"):
    number: int
    answer: ForwardedAnswer | None
    """The answer, or None if the request was not begun: this worker stops, or names a `holder`."""
    more: bool = False
    """Whether more parts of the answer's body follow."""
    holder: str = ""
    """If there is no answer: the worker to which this one has passed the cluster on."""


class _Part(msgspec.Struct, frozen=True, array_like=True, tag="+"):
    number: int
    body: bytes
    more: bool


class _Lost(msgspec.Struct, frozen=True, array_like=True, tag="x"):
    number: int


class _Ping(msgspec.Struct, frozen=True, array_like=True, tag="i"):
    pass


class _Pong(msgspec.Struct, frozen=True, array_like=True, tag="o"):
    pass


_encode = msgspec.msgpack.Encoder().encode
_requests = msgspec.msgpack.Decoder(_Ask | _Left | _Ping)
_answers = msgspec.msgpack.Decoder(_Answer | _Part | _Lost | _Pong)

Decide = Callable[[ForwardedRequest, Left], Awaitable[ForwardedAnswer]]
"""Decides a request whose client may disconnect."""
PassedTo = Callable[[str], str | None]
"""Returns the worker that a cluster was passed on to, or None if this one still decides for it."""


def socket_of(folder: Path, worker: str) -> Path:
    """Return the path of the socket on which a worker listens.

    Raises:
        ValueError: the path would be longer than systems allow.
    """
    path = folder / f"{id_in(worker)}.sock"
    if len(str(path).encode()) > SOCKET_PATH_BYTES_MAX:
        raise ValueError(f"{path} is too long for a socket.")
    return path


class Listener:
    """Decides the requests that other workers forward to this one."""

    def __init__(
        self, path: Path, decide: Decide, budget: Budget, passed_to: PassedTo = lambda _: None
    ) -> None:
        self._path = path
        self._decide = decide
        self._budget = budget
        self._passed_to = passed_to
        self._server: asyncio.Server | None = None
        self._closing = False
        self.deciding: set[asyncio.Task[None]] = set()
        """The forwarded requests that are under way here."""
        self.connections: set[StreamWriter] = set()
        """The open connections from other workers."""

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self.serve, self._path)

    async def close(self) -> None:
        """Stop accepting requests, answer those under way, and close the connections."""
        self._closing = True
        self.stop_listening()
        while self.deciding:
            await asyncio.wait(self.deciding)
        for writer in list(self.connections):
            writer.close()
        self._path.unlink(missing_ok=True)

    def stop_listening(self) -> None:
        """Accept no new connections; open connections stay open."""
        if self._server is not None:
            self._server.close()

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Decide the requests that arrive over a connection, until its end."""
        self.connections.add(writer)
        left: dict[int, asyncio.Event] = {}
        try:
            while True:
                frame = _requests.decode(await _read(reader))
                if isinstance(frame, _Ping):
                    _write(writer, _Pong())
                elif isinstance(frame, _Left):
                    if frame.number in left:
                        left[frame.number].set()
                elif (holder := self._passed_to(cluster_in(frame.request))) is not None:
                    _write(writer, _Answer(frame.number, None, holder=holder))
                elif self._closing:
                    _write(writer, _Answer(frame.number, None))
                else:
                    self._begin(writer, frame, left)
        except (OSError, EOFError, msgspec.MsgspecError):
            pass  # requests under way continue, but long decisions end: their clients are gone
        finally:
            for event in left.values():
                event.set()
            self.connections.discard(writer)
            writer.close()

    def _begin(self, writer: StreamWriter, ask: _Ask, left: dict[int, asyncio.Event]) -> None:
        """Begin to decide a request; its event in `left` is set if its client disconnects."""
        left[ask.number] = asyncio.Event()
        task = asyncio.create_task(self._answer(writer, ask, left[ask.number]))
        self.deciding.add(task)
        task.add_done_callback(self.deciding.discard)
        task.add_done_callback(lambda _: left.pop(ask.number))
        task.add_done_callback(log_failure)

    async def _answer(self, writer: StreamWriter, ask: _Ask, left: asyncio.Event) -> None:
        frames: Iterable[_Answer | _Part | _Lost]
        with closing(ByteReservation(self._budget)) as reservation:
            try:
                answer = await self._decide(ask.request, partial(_wait_for, left))
            except Exception:  # noqa: BLE001 - a bug must not end the connection
                _log.exception("A request of another worker failed.")
                frames = [_Lost(ask.number)]
            else:
                reservation.overdraw(len(answer.body))  # the answer had room when it was made
                frames = _in_parts(ask.number, answer)
            with suppress(OSError):
                for frame in frames:
                    _write(writer, frame)
                    await writer.drain()


class SocketPeers:
    """Asks other workers: those of this server, and with `servers` also those of other servers.

    Create it in the event loop that uses it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        answer_seconds_max: float,
        budget: Budget,
        servers: Servers | None = None,
    ) -> None:
        self._folder = folder
        self._servers = servers
        self._budget = budget
        self._answer_seconds_max = answer_seconds_max
        self._peers: dict[str, _Peer] = {}

    async def ask(
        self,
        holder: str,
        request: ForwardedRequest,
        repeat: Repeat,
        client: Client | None = None,
    ) -> ForwardedAnswer:
        """Make another worker decide a request, as `service.api.forwarding.retry.Peers` specifies.

        If the client disconnects, that worker is notified, so that it can end a long decision.

        Raises:
            TooManyBytes: this process has no room for the answer, and the request changed nothing.
        """
        peer = self._peers.get(holder)
        if peer is None:
            self._forget_the_dead()
            peer = self._peers[holder] = _Peer(self._route_to(holder), self._budget)
        try:
            async with asyncio.timeout(self._answer_seconds_max):
                return await peer.ask(request, client, may_repeat=repeat != "Never")
        except TimeoutError:
            raise AnswerLost from None

    def answers(self, worker: str) -> bool:
        """Return whether a worker responds; one that was not asked lately counts as responsive."""
        peer = self._peers.get(worker)
        return peer is None or not peer.is_silent

    async def close(self) -> None:
        """Close all connections; requests that still wait for an answer raise AnswerLost."""
        for peer in list(self._peers.values()):
            await peer.close()

    def _route_to(self, holder: str) -> "_Route":
        if self._servers is None or self._servers.is_here(holder):
            return _SocketRoute(socket_of(self._folder, holder))
        return _ServerRoute(self._servers, holder)

    def _forget_the_dead(self) -> None:
        self._peers = {name: peer for name, peer in self._peers.items() if peer.exists}


class _Waiting:
    """A request awaiting its answer; it accounts for the bytes of the parts received so far."""

    def __init__(self, budget: Budget, client: Client | None, *, may_repeat: bool) -> None:
        self._client = client
        self.answer: asyncio.Future[ForwardedAnswer] = asyncio.get_running_loop().create_future()
        self.may_repeat = may_repeat
        self._start: ForwardedAnswer | None = None
        self._parts: list[bytes] = []
        self._reservation = ByteReservation(budget)

    def hear(self, frame: _Answer | _Part | _Lost) -> None:
        """Add a frame of the answer; frames after a complete or refused answer are dropped."""
        if self.answer.done():
            return
        if isinstance(frame, _Lost):
            self.answer.set_exception(AnswerLost())
        elif isinstance(frame, _Part):
            self._add(frame.body, more=frame.more)
        elif frame.answer is None:
            self.answer.set_exception(OtherOwner(frame.holder) if frame.holder else Unreachable())
        else:
            self._start = frame.answer
            self._add(frame.answer.body, more=frame.more)

    def _add(self, part: bytes, *, more: bool) -> None:
        assert self._start is not None
        try:
            self._reservation.hold_answer(len(part), may_be_refused=self._start.changes_nothing)
        except TooManyBytes as error:
            self.answer.set_exception(error)
            return
        self._parts.append(part)
        if not more:
            self.answer.set_result(replace(self._start, body=b"".join(self._parts)))

    def has_just_left(self) -> bool:
        """Return True at the first call after the client has disconnected."""
        if self._client is None or not self._client.has_left():
            return False
        self._client = None
        return True

    def close(self) -> None:
        """Release the bytes held for the answer, which is no longer awaited."""
        self._reservation.close()


class _Route(Protocol):
    """A way to connect to another worker."""

    async def connect(self) -> tuple[StreamReader, StreamWriter]:
        """Open a connection, or raise Unreachable or OSError."""
        ...

    @property
    def exists(self) -> bool:
        """Whether the worker may be running."""
        ...


class _SocketRoute:
    """A way to connect to a worker of this server."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def connect(self) -> tuple[StreamReader, StreamWriter]:
        return await asyncio.open_unix_connection(self._path)

    @property
    def exists(self) -> bool:
        return self._path.exists()


class _ServerRoute:
    """A way to connect to a worker of another server."""

    def __init__(self, servers: Servers, holder: str) -> None:
        self._servers = servers
        self._holder = holder

    async def connect(self) -> tuple[StreamReader, StreamWriter]:
        return await self._servers.connect(self._holder)

    @property
    def exists(self) -> bool:
        return not self._servers.is_gone(self._holder)


class _Peer:
    """Another worker and the connection to it."""

    def __init__(self, route: _Route, budget: Budget) -> None:
        self._route = route
        self._budget = budget
        self._time = asyncio.get_running_loop().time
        self._numbers = count()
        self._waiting: dict[int, _Waiting] = {}
        self._connecting = asyncio.Lock()
        self._writer: StreamWriter | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._not_before = float("-inf")
        self._silent_since: float | None = None
        """Since when connection attempts have timed out, or None."""
        self._unanswered = 0
        """How many pings were sent since the last frame from the worker.

        Pings are counted, not timed, so that a delay in this worker does not make the other one
        seem unresponsive.
        """

    @property
    def exists(self) -> bool:
        """Whether the worker may be running."""
        return self._writer is not None or self._route.exists

    @property
    def is_unresponsive(self) -> bool:
        """Whether the worker has left too many pings unanswered."""
        return self._unanswered >= PINGS_UNANSWERED_MAX

    @property
    def is_silent(self) -> bool:
        """Whether pings or connection attempts have been unanswered for too long."""
        if self._silent_since is None:
            return self.is_unresponsive
        return self._time() >= self._silent_since + PINGS_UNANSWERED_MAX * PING_SECONDS

    async def ask(
        self, request: ForwardedRequest, client: Client | None, *, may_repeat: bool
    ) -> ForwardedAnswer:
        writer = await self._connection()
        number = next(self._numbers)
        with closing(_Waiting(self._budget, client, may_repeat=may_repeat)) as waiting:
            self._waiting[number] = waiting
            try:
                _write(writer, _Ask(number, request))
                return await waiting.answer
            except (ConnectionResetError, _FrameTooLargeError):
                raise Unreachable from None
            finally:
                del self._waiting[number]

    async def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        for task in list(self._tasks):
            task.cancel()
            await asyncio.wait({task})

    async def _connection(self) -> StreamWriter:
        """Return the connection to the worker, opened if necessary, or raise Unreachable."""
        async with self._connecting:
            if self.is_unresponsive:
                raise Unreachable
            if self._writer is not None:
                return self._writer
            if self._time() < self._not_before:
                raise Unreachable
            begun = self._time()
            try:
                async with asyncio.timeout(CONNECT_SECONDS_MAX):
                    reader, writer = await self._route.connect()
            except (OSError, EOFError, Unreachable) as error:
                is_silent = isinstance(error, TimeoutError)
                self._silent_since = (self._silent_since or begun) if is_silent else None
                self._not_before = self._time() + RECONNECT_SECONDS
                raise Unreachable from None
            self._silent_since = None
            self._writer = writer
            for work in (self._listen(reader, writer), self._look_after(writer)):
                task = asyncio.create_task(work)
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                task.add_done_callback(log_failure)
            return writer

    async def _listen(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            while True:
                frame = _answers.decode(await _read(reader))
                self._unanswered = 0
                if isinstance(frame, _Pong):
                    continue
                waiting = self._waiting.get(frame.number)
                if waiting is not None:
                    waiting.hear(frame)
        except (OSError, EOFError, msgspec.MsgspecError):
            pass
        finally:
            writer.close()
            self._writer, self._unanswered = None, 0
            self._give_up(self._waiting.values())

    async def _look_after(self, writer: StreamWriter) -> None:
        """Ping the worker, and report which clients have disconnected.

        If it is unresponsive, stop waiting for answers to requests that may be repeated.
        """
        while self._writer is writer:
            await asyncio.sleep(PING_SECONDS)
            if not self._waiting and not self.is_unresponsive:
                self._unanswered = 0
                continue
            if self.is_unresponsive:
                self._give_up(waiter for waiter in self._waiting.values() if waiter.may_repeat)
            with suppress(OSError):
                for number, waiter in self._waiting.items():
                    if waiter.has_just_left():
                        _write(writer, _Left(number))
                _write(writer, _Ping())
            self._unanswered += 1

    def _give_up(self, waiting: Iterable[_Waiting]) -> None:
        for waiter in waiting:
            if not waiter.answer.done():
                waiter.answer.set_exception(AnswerLost())


async def _wait_for(event: asyncio.Event) -> None:
    await event.wait()


class _FrameTooLargeError(Exception):
    """A frame is too large: the peer would close the connection, which others also use."""


def _in_parts(number: int, answer: ForwardedAnswer) -> Iterable[_Answer | _Part]:
    body, size = answer.body, PART_BYTES_MAX
    yield _Answer(number, replace(answer, body=body[:size]), more=len(body) > size)
    for start in range(size, len(body), size):
        yield _Part(number, body[start : start + size], more=start + size < len(body))


async def _read(reader: StreamReader) -> bytes:
    """Read the next frame, or raise EOFError at the end or if the frame's length is invalid."""
    size = int.from_bytes(await reader.readexactly(4), "big")
    if size > FRAME_BYTES_MAX:
        raise EOFError
    return await reader.readexactly(size)


def _write(writer: StreamWriter, frame: msgspec.Struct) -> None:
    """Send a frame, or raise ConnectionResetError without sending if the peer has disconnected."""
    encoded = _encode(frame)
    if len(encoded) > FRAME_BYTES_MAX:
        raise _FrameTooLargeError
    try:
        writer.write(len(encoded).to_bytes(4, "big") + encoded)
    except RuntimeError:  # uvloop raises this if the transport is closed
        raise ConnectionResetError from None
