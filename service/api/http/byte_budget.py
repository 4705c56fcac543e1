"""A budget for the bytes that a process holds for requests: received bodies and unsent answers.

Bytes of a body count when they arrive, not when Content-Length announces them. When the budget is
exhausted, the largest body still arriving is refused in favor of smaller ones, so a client that
stalls halfway through a large body blocks no one. A request that does not fit is refused at once
and never waits, so requests cannot deadlock. Only watches wait, and they hold nothing while
waiting.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from litestar.types import Receive

from service.api.http.compression import Unpacker
from service.api.http.problems import BodyTimeout, BodyTooLarge, MalformedRequest, TooManyBytes
from service.api.http.streaming import PIECE_BYTES
from service.api.http.watch_budget import WatchRoom, WatchShare


class Budget:
    """The byte budget of a process: its maximum, and the bytes that all requests hold together."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.in_flight = 0
        self.watches = WatchShare(self)
        """The part of the budget that is available to watches."""
        self._waited_for: dict[ByteReservation, Callable[[], object]] = {}
        """Maps each request that is waiting for more of its body to a function ending the wait."""

    def _take(self, reservation: "ByteReservation", count: int) -> None:
        while self.in_flight + count > self.bytes_max:
            self._make_room(reservation, count)
        self.in_flight += count

    def _make_room(self, reservation: "ByteReservation", count: int) -> None:
        others = (other for other in self._waited_for if other is not reservation)
        largest = max(others, key=lambda other: other.held, default=reservation)
        if largest.held <= reservation.held + count:
            raise TooManyBytes(
                f"The server holds {self.in_flight} bytes of requests and answers, and has no room for {count} more: the"
                f" limit (bytes_in_flight_max) is {self.bytes_max}."
            )
        end_wait = self._waited_for.pop(largest)
        largest.preempt()
        end_wait()


class ByteReservation(msgspec.Struct, eq=False):
    """The bytes of the budget that one request holds until it is closed."""

    budget: Budget
    held: int = 0
    changes_nothing: bool = False
    """Whether this request changes nothing even though its operation can, as in a dry run."""
    keeps_room: bool = False
    """Whether a streamed answer keeps the bytes of its largest piece reserved until it ends.

    An answer that has started then cannot run out of room.
    """
    _preempted: bool = False
    _at_end: list[Callable[[], None]] = []

    def take(self, count: int) -> None:
        """Hold `count` more bytes.

        Raises:
            TooManyBytes: they do not fit, or this request was preempted.
        """
        self.require_room()
        self.budget._take(self, count)  # noqa: SLF001 - the two are one mechanism
        self.held += count

    def overdraw(self, count: int) -> None:
        """Hold `count` more bytes even over the maximum, so that the client gets the result."""
        self.budget.in_flight += count
        self.held += count

    def hold_answer(self, count: int, *, may_be_refused: bool) -> None:
        """Hold `count` bytes of an answer; never refuse a small one, since a refusal is as large.

        Raises:
            TooManyBytes: the answer does not fit, and may be refused.
        """
        if count > PIECE_BYTES and may_be_refused:
            self.take(count)
        else:
            self.overdraw(max(0, count))

    def hold_in_all(self, count: int) -> None:
        """Grow to `count` bytes in total.

        Raises:
            TooManyBytes: they do not fit, and `count` is more than one piece.
        """
        if count > max(self.held, PIECE_BYTES):
            self.take(count - self.held)

    def release(self, count: int) -> None:
        """Release up to `count` bytes, and admit watches that were waiting for room."""
        count = min(count, self.held)
        self.held -= count
        self.budget.in_flight -= count
        if count and self.budget.watches.line:
            self.budget.watches.let_in()

    def preempt(self) -> None:
        """Release everything to make room for other requests; refuse any further `take`."""
        self._preempted = True
        self.release(self.held)

    def require_room(self) -> None:
        """Raise TooManyBytes if this request was preempted."""
        if self._preempted:
            raise TooManyBytes(
                "The server needed the room of this body, which had not arrived as a whole, for smaller ones: the limit"
                f" (bytes_in_flight_max) is {self.budget.bytes_max}."
            )

    @contextmanager
    def waiting(self, end_wait: Callable[[], object]) -> Iterator[None]:
        """Mark the request as waiting for its client; if it is preempted, `end_wait` is called."""
        waited_for = self.budget._waited_for  # noqa: SLF001 - the two are one mechanism
        waited_for[self] = end_wait
        try:
            yield
        finally:
            waited_for.pop(self, None)

    def at_end(self, act: Callable[[], None]) -> None:
        """Call `act` when the request ends, whether it succeeds or fails."""
        self._at_end.append(act)

    def room_for_watch(self, caller: str | None) -> WatchRoom:
        """Return the room for a watch's pages.

        `caller` is None if the caller's watches have no common limit.
        """
        return WatchRoom(self.budget.watches, caller)

    def close(self) -> None:
        """Release everything and call the functions registered with `at_end`."""
        self.release(self.held)
        acts, self._at_end = self._at_end, []
        for act in acts:
            act()


class Pace(msgspec.Struct, frozen=True):
    """The minimum speed at which a body must arrive."""

    timeout_seconds: float
    """The seconds that a client may pause, and that any body may take regardless of its length."""
    bytes_per_second_min: float
    monotonic: Callable[[], float]


class ArrivingBody:
    """The body of one request, counted against the budget as it arrives.

    Neither Litestar nor Granian times out a client that stops sending, so each wait is bounded
    here. The total time is bounded too, since a client could send single bytes forever.
    """

    def __init__(
        self,
        receive: Receive,
        reservation: ByteReservation,
        bytes_max: int,
        pace: Pace,
        unpacker: Unpacker | None = None,
    ) -> None:
        self._receive = receive
        self._bytes_max = bytes_max
        self._unpacker = unpacker
        self._pace = pace
        self._started = pace.monotonic()
        self._reservation = reservation
        self._received = 0
        self._unpacked = 0
        self._is_complete = False

    async def whole(self) -> bytes:
        """Return the whole body.

        Raises:
            BodyTooLarge: the body exceeds its limit.
            TooManyBytes: the process already holds too many bytes.
            BodyTimeout: the body arrived too slowly.
            MalformedRequest: the client disconnected, or the body cannot be decompressed.
        """
        pieces: list[bytes] = []
        while not self._is_complete:
            piece = self._take(await self._within(self._seconds_left()))
            if self._unpacker is None:
                pieces.append(piece)
            else:
                pieces += [part async for part in self._unpack(self._unpacker, piece)]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def pieces(self, waits: Callable[[], bool] | None = None) -> AsyncIterator[bytes]:
        """Yield the pieces as they arrive.

        While `waits` returns True, the client may be waiting for an answer to what it has sent so
        far, and its timeout restarts.

        Raises:
            BodyTooLarge, TooManyBytes, BodyTimeout, MalformedRequest: as in `whole`.
        """
        while not self._is_complete:
            left = self._seconds_left()
            message = await (self._within(left) if waits is None else self._patiently(left, waits))
            piece = self._take(message)
            if self._unpacker is not None:
                async for part in self._unpack(self._unpacker, piece):
                    yield part
            elif piece:
                yield piece

    def _seconds_left(self) -> float:
        """Return the number of seconds within which the next piece must arrive."""
        pace = self._pace
        granted = pace.timeout_seconds + self._received / pace.bytes_per_second_min
        return min(pace.timeout_seconds, self._started + granted - pace.monotonic())

    def _take(self, message: Any) -> bytes:
        """Return the next piece of the body from an ASGI message, and count its bytes."""
        if message["type"] != "http.request":
            raise MalformedRequest("The client left before the body was complete.")
        piece: bytes = message.get("body", b"")
        self._received += len(piece)
        if self._received > self._bytes_max:
            raise BodyTooLarge(f"The body is longer than {self._bytes_max} bytes.")
        self._reservation.take(len(piece))
        self._is_complete = not message.get("more_body", False)
        return piece

    async def _unpack(self, unpacker: Unpacker, piece: bytes) -> AsyncIterator[bytes]:
        """Yield slices of the decompressed piece and count them instead; let other tasks run."""
        for unpacked in unpacker.slices(piece):
            self._unpacked += len(unpacked)
            if self._unpacked > self._bytes_max:
                raise BodyTooLarge(
                    f"The body is longer than {self._bytes_max} bytes when unpacked."
                )
            self._reservation.take(len(unpacked))
            if unpacked:
                yield unpacked
            await asyncio.sleep(0)
        self._reservation.release(len(piece))
        if self._is_complete:
            unpacker.end()

    async def _within(self, seconds: float) -> Any:
        """Receive a message within `seconds`, like `asyncio.timeout` at a third of its CPU time.

        Raises:
            BodyTimeout: no message arrived in time.
            TooManyBytes: the request was preempted.
        """
        task = asyncio.current_task()
        assert task is not None
        cancelled_before, rang = task.cancelling(), list[bool]()

        def ring() -> None:
            if not rang:
                rang.append(task.cancel())

        alarm = asyncio.get_running_loop().call_later(max(0.0, seconds), ring)
        try:
            with self._reservation.waiting(ring):
                return await self._receive()
        except asyncio.CancelledError:
            if rang and task.uncancel() <= cancelled_before:
                raise self._too_late() from None
            raise
        finally:
            alarm.cancel()

    async def _patiently(self, seconds: float, waits: Callable[[], bool]) -> Any:
        receiving = asyncio.ensure_future(self._receive())
        try:
            with self._reservation.waiting(receiving.cancel):
                await asyncio.wait({receiving}, timeout=seconds)
                while not receiving.done() and waits():
                    await asyncio.wait({receiving}, timeout=self._pace.timeout_seconds)
            if receiving.cancelled() or not receiving.done():
                raise self._too_late()
            return receiving.result()
        finally:
            receiving.cancel()

    def _too_late(self) -> BodyTimeout:
        self._reservation.require_room()
        return BodyTimeout("The body did not arrive in time.")


UNCOUNTED = ByteReservation(Budget(0))
"""A placeholder with no capacity, for requests that are not counted yet."""
