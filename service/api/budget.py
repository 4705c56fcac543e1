"""One budget for the bytes that a process holds for requests: bodies as they arrive, answers until they are sent.

Nothing is set aside for what a client only announces. Where the budget is spent, the largest body that the server
waits for gives way to smaller ones: whoever sends half of a large body and then nothing keeps no one else out. What
finds no room is refused at once and never waits, so that nobody can wait for each other.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from service.api.problems import PROBLEM_JSON, TooManyBytes, encode_problem
from service.api.streams import PIECE_BYTES, TooSlow, send_piece

_HOLDING = "moorage.holding"
_log = logging.getLogger(__name__)


class Budget:
    """How many bytes all requests together hold, and may hold."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.in_flight = 0
        self._waited_for: dict[Holding, Callable[[], object]] = {}
        """The requests of which a piece of the body is waited for, and what ends that wait."""

    def _take(self, holding: "Holding", count: int) -> None:
        while self.in_flight + count > self.bytes_max:
            self._make_room(holding, count)
        self.in_flight += count

    def _make_room(self, holding: "Holding", count: int) -> None:
        others = (each for each in self._waited_for if each is not holding)
        largest = max(others, key=lambda each: each.held, default=holding)
        if largest.held <= holding.held + count:
            raise TooManyBytes(
                f"The server holds {self.in_flight} bytes of requests and answers, and has no room for {count} more: the"
                f" limit (bytes_in_flight_max) is {self.bytes_max}."
            )
        end_wait = self._waited_for.pop(largest)
        largest.give_way()
        end_wait()


class Holding:
    """What one request holds of the budget, until it is closed."""

    def __init__(self, budget: Budget) -> None:
        self.held = 0
        self._budget = budget
        self._gave_way = False
        self._at_end: list[Callable[[], None]] = []

    def take(self, count: int) -> None:
        """Hold so many bytes more.

        Raises:
            TooManyBytes: there is no room for them, or this request has given way to others.
        """
        self.require_room()
        self._budget._take(self, count)  # noqa: SLF001 - the two are one mechanism
        self.held += count

    def overdraw(self, count: int) -> None:
        """Hold so many bytes more, whether there is room or not: what was decided has to be told."""
        self._budget.in_flight += count
        self.held += count

    def give_back(self, count: int) -> None:
        """Hold so many bytes less."""
        count = min(count, self.held)
        self.held -= count
        self._budget.in_flight -= count

    def give_way(self) -> None:
        """Give everything back: the request is not to go on."""
        self._gave_way = True
        self.give_back(self.held)

    def require_room(self) -> None:
        """Raises TooManyBytes if this request has given way to others."""
        if self._gave_way:
            raise TooManyBytes(
                "The server needed the room of this body, which had not arrived as a whole, for smaller ones: the limit"
                f" (bytes_in_flight_max) is {self._budget.bytes_max}."
            )

    @contextmanager
    def waiting(self, end_wait: Callable[[], object]) -> Iterator[None]:
        """While the client is waited for, the request may have to give way: then `end_wait` is called."""
        waited_for = self._budget._waited_for  # noqa: SLF001 - the two are one mechanism
        waited_for[self] = end_wait
        try:
            yield
        finally:
            waited_for.pop(self, None)

    def at_end(self, act: Callable[[], None]) -> None:
        """Have something done when the request is over, in whatever way it ends."""
        self._at_end.append(act)

    def close(self) -> None:
        """The request is over."""
        self.give_back(self.held)
        for act in self._at_end:
            act()


def holding_of(scope: Scope) -> Holding:
    """What the request holds."""
    holding = cast("Mapping[str, Any]", scope)[_HOLDING]
    assert isinstance(holding, Holding)
    return holding


class CountBytes:
    """ASGI middleware that gives each request its holding, and counts what it is answered."""

    def __init__(self, app: ASGIApp, budget: Budget) -> None:
        self._app = app
        self._budget = budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on; all that it holds is given back at its end."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        holding = cast("dict[str, Any]", scope)[_HOLDING] = Holding(self._budget)
        try:
            await self._app(scope, receive, _Counted(scope, holding, send))
        finally:
            holding.close()


class _Counted:
    """Wraps `send`: what is sent whole is held from its start, what is sent in pieces piece by piece.

    A read of which a large answer finds no room is refused; a write is told what became of it all the same.
    """

    def __init__(self, scope: HTTPScope, holding: Holding, send: Send) -> None:
        self._scope = scope
        self._holding = holding
        self._send = send
        self._whole = self._ended = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._start(message)
        elif message["type"] == "http.response.body" and not self._ended:
            await self._go_on(message)

    async def _start(self, message: Any) -> None:
        length = _content_length(message["headers"])
        self._whole = length is not None
        try:
            self._hold(length or 0)
        except TooManyBytes as error:
            self._ended = True
            await self._refuse(error)
        else:
            await self._send(message)

    def _hold(self, count: int) -> None:
        if self._scope["method"] == "GET" and count > PIECE_BYTES:
            self._holding.take(count)
        else:
            self._holding.overdraw(count)

    async def _go_on(self, message: Any) -> None:
        body, more = message.get("body", b""), message.get("more_body", False)
        if not self._whole:
            self._holding.overdraw(len(body))
        if len(body) <= PIECE_BYTES:
            await self._send(message)
            self._holding.give_back(len(body))
            return
        try:
            await self._send_in_pieces(body, more=more)
        except TooSlow:
            self._ended = True
            _log.info("A client that did not read its answer was dropped.")

    async def _send_in_pieces(self, body: bytes, *, more: bool) -> None:
        """A server takes what is whole at once, and keeps it for a reader that may never come."""
        for start in range(0, len(body), PIECE_BYTES):
            piece = body[start : start + PIECE_BYTES]
            await send_piece(self._send, piece, more=more or start + PIECE_BYTES < len(body))
            self._holding.give_back(len(piece))

    async def _refuse(self, error: TooManyBytes) -> None:
        status, body, headers = encode_problem(error, self._scope["path"])
        fields = {"content-type": PROBLEM_JSON, "content-length": str(len(body)), **headers}
        encoded = [(name.encode(), value.encode()) for name, value in fields.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": encoded})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})


def _content_length(headers: Any) -> int | None:
    for name, value in headers:
        if name.lower() == b"content-length":
            return int(value)
    return None
