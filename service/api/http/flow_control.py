"""ASGI middleware that counts the bytes of requests and their answers against a budget.

If an answer does not fit and the request changed nothing (its operation only reads, or it is a dry
run), a refusal is sent instead. An answer that reports a change is sent even over the budget, and
so is an answer of at most one piece, since a refusal is as large.
"""

import logging
from typing import Any

import msgspec
from litestar.enums import ScopeType
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send

from service.api.http.byte_budget import Budget, ByteReservation
from service.api.http.context import RequestContext, context_of
from service.api.http.exception_handler import send_problem
from service.api.http.problems import TooManyBytes
from service.api.http.streaming import PIECE_BYTES, TooSlow, send_piece

_log = logging.getLogger(__name__)


class FlowControl:
    """ASGI middleware that gives each request a reservation and counts the bytes of its answer."""

    def __init__(self, app: ASGIApp, budget: Budget) -> None:
        self._app = app
        self._budget = budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and release everything that it holds when it ends."""
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        context = context_of(scope)
        reservation = context.reservation = ByteReservation(self._budget)
        try:
            await self._app(scope, receive, _Counted(scope, context, send))
        finally:
            reservation.close()


def may_be_refused(context: RequestContext) -> bool:
    """Return whether a request changes nothing, so that the client can safely retry it."""
    if context.operation is None or context.operation.reads:
        return True
    return context.reservation.changes_nothing


class _Counted(msgspec.Struct, eq=False):
    """Wraps `send` to count an answer's bytes: at its start if its length is known, else per piece.

    The start of a streamed answer is delayed until its first piece, so that it can still be
    refused. If a later piece does not fit, TooManyBytes is raised to its sender.
    """

    scope: HTTPScope
    context: RequestContext
    send: Send
    start: Message | None = None
    """The message that starts the answer, until it is sent."""
    whole: bool = False
    ended: bool = False
    kept: int = 0

    async def __call__(self, message: Message) -> None:
        if self.ended:
            return
        if message["type"] == "http.response.start":
            length = _content_length(message["headers"])
            self.start, self.whole = message, length is not None
            if length is not None:
                await self._begin(length, more=False)
        elif message["type"] == "http.response.body":
            await self._go_on(message)

    async def _begin(self, count: int, *, more: bool) -> None:
        """Send the start if the first part of the body fits, or a refusal otherwise."""
        assert self.start is not None
        try:
            self._hold(count)
        except TooManyBytes as error:
            self.ended = True
            await send_problem(self.send, error, self.scope["path"], self.context)
            if more:
                raise
        else:
            start, self.start = self.start, None
            await self.send(start)

    async def _go_on(self, message: Any) -> None:
        body, more = message.get("body", b""), message.get("more_body", False)
        if self.start is not None:
            await self._begin(len(body), more=more)
        elif not self.whole:
            self._hold(len(body) - self.kept)
        if self.ended:
            return
        if self.whole and len(body) <= PIECE_BYTES:
            await self.send(message)
            self.context.reservation.release(len(body))
            return
        try:
            await self._send_in_pieces(body, more=more)
        except TooSlow:
            self.ended = True
            _log.info("A client that did not read its answer was dropped.")
            if more:
                raise

    def _hold(self, count: int) -> None:
        self.context.reservation.hold_answer(count, may_be_refused=may_be_refused(self.context))

    async def _send_in_pieces(self, body: bytes, *, more: bool) -> None:
        """Send a body in pieces, so that no server buffers all of it for a stalled client."""
        if self.context.reservation.keeps_room:
            self.kept = max(self.kept, len(body))
        for start in range(0, len(body) or 1, PIECE_BYTES):
            piece = body[start : start + PIECE_BYTES]
            await send_piece(self.send, piece, more=more or start + PIECE_BYTES < len(body))
            if not self.kept:
                self.context.reservation.release(len(piece))


def _content_length(headers: Any) -> int | None:
    for name, value in headers:
        if name.lower() == b"content-length":
            return int(value)
    return None
