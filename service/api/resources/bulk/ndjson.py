"""NDJSON bodies that are decided in commits of several lines and answered while they are read."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from io import BytesIO
from typing import Any

import msgspec

from service.api.http.context import ApiRequest
from service.api.http.dry_run import with_dry_run
from service.api.http.exception_handler import redact_error
from service.api.http.idempotency import Rendered
from service.api.http.operation import NDJSON
from service.api.http.prefer import APPLIED, PREFERENCE, minimal_results, prefers_minimal
from service.api.http.problems import PROBLEMS, BodyTooLarge, encode_problem
from service.api.http.responses import Streamed, revision_headers
from service.api.http.streaming import Pieces
from service.api.resources.dispatch import submit_once
from service.api.resources.services import Services
from service.model.core.errors import MoorageError
from service.scheduler.protocol.answers import LinesAnswer
from service.scheduler.protocol.clients import CLIENT
from service.scheduler.protocol.intents import Intent

CHUNK_BYTES_MAX = 16 * 1024 * 1024
"""The maximum size of the lines in one commit of a stream, unless it is a single line."""
CHUNKS_AHEAD = 2
"""The maximum number of commits of one stream that are pending at the same time."""

ReadLines = Callable[[int, Sequence[bytes]], Awaitable[Intent[LinesAnswer]]]
"""Returns the intent that decides these lines in one commit; the number is the first line's."""

_encoder = msgspec.json.Encoder()
_FORBIDDEN = b'"result":"Forbidden"'
"""Occurs once for each line that the caller may not write, since quotes in texts are escaped."""


async def answer_lines(
    request: ApiRequest, services: Services, read: ReadLines, parameters: Mapping[str, str]
) -> Streamed:
    """Answer NDJSON while reading it.

    The first chunk is decided before the answer begins, so that its errors still get a status. With
    `dryRun`, each chunk is decided on the stored state, without the effects of the chunks before
    it.
    """
    CLIENT.set(None)  # watching for a disconnect would consume the body, which is still being read
    head = await services.reads.head(request.path_params["cluster"])
    applied = {APPLIED: PREFERENCE} if prefers_minimal(request) else {}
    answers = _answers(request, services, partial(_asked, request, read, parameters))
    revision, first = await _first(answers) or (head.revision, b"")
    return Streamed(
        _streamed(request, first, answers),
        headers={**revision_headers(revision), **applied},
        media_type=NDJSON,
    )


async def _asked(
    request: ApiRequest,
    read: ReadLines,
    parameters: Mapping[str, str],
    start: int,
    lines: Sequence[bytes],
) -> Intent[LinesAnswer]:
    """Return the intent that decides some lines, wrapped in a dry run if the request is one."""
    return with_dry_run(request, parameters, await read(start, lines))


async def _first(answers: AsyncIterator[tuple[int, bytes]]) -> tuple[int, bytes] | None:
    async for answer in answers:
        return answer
    return None


async def _streamed(
    request: ApiRequest, first: bytes, rest: AsyncIterator[tuple[int, bytes]]
) -> Pieces:
    yield first
    try:
        async for _, lines in rest:
            yield lines
    except MoorageError as error:
        context = request.context
        status, problem, _ = encode_problem(
            redact_error(error, context), context.path, context.request_id
        )
        context.note_refused(status)
        yield problem + b"\n"


class _UnderWay:
    """The submitted chunks of one stream that are not answered yet, in stream order."""

    def __init__(self, count_max: int) -> None:
        self.tasks: asyncio.Queue[asyncio.Task[tuple[int, bytes]] | None] = asyncio.Queue()
        self.room = asyncio.Semaphore(count_max)
        self.count = 0

    def add(self, work: Coroutine[Any, Any, tuple[int, bytes]]) -> None:
        """Start the next chunk; the caller must have acquired `room`."""
        self.count += 1
        task = asyncio.create_task(work)
        task.add_done_callback(_take_note)
        self.tasks.put_nowait(task)

    def end(self) -> None:
        """Mark that no more chunks will be added."""
        self.tasks.put_nowait(None)

    async def answers(self) -> AsyncIterator[tuple[int, bytes]]:
        """Yield the chunks' answers in order, each as soon as it is available."""
        while (task := await self.tasks.get()) is not None:
            answer = await task
            self.count -= 1
            yield answer
            self.room.release()

    def cancel(self) -> None:
        """Cancel the chunks that are not decided yet."""
        while not self.tasks.empty():
            if (task := self.tasks.get_nowait()) is not None:
                task.cancel()


async def _answers(
    request: ApiRequest, services: Services, read: ReadLines
) -> AsyncIterator[tuple[int, bytes]]:
    """Yield the revision and the answer lines of each chunk, once it is committed.

    While a chunk is being committed, the next one is read, parsed, and decided. With an idempotency
    key, the next one is only decided after the commit: otherwise, if a chunk failed and the client
    sent the stream again, the chunk after it would be answered from its record instead of being
    decided on top of the new result.
    """
    under_way = _UnderWay(CHUNKS_AHEAD if request.context.idempotency_key is None else 1)
    feeding = asyncio.create_task(_feed(request, services, read, under_way))
    try:
        async for answer in under_way.answers():
            yield answer
        await feeding
    finally:
        feeding.cancel()
        under_way.cancel()


async def _feed(
    request: ApiRequest, services: Services, read: ReadLines, under_way: _UnderWay
) -> None:
    """Submit the chunks in order, each as soon as there is room for it."""
    chunk = 0
    try:
        async for start, lines in _chunks(request, services, lambda: under_way.count > 0):
            intent = await read(start, lines)
            await under_way.room.acquire()
            under_way.add(_submit(request, services, intent, lines, chunk))
            chunk += 1
    finally:
        under_way.end()


def _take_note(task: "asyncio.Task[tuple[int, bytes]]") -> None:
    """Retrieve the task's exception, since asyncio logs exceptions that no one has retrieved.

    A failed chunk has already been reported.
    """
    if not task.cancelled():
        task.exception()


async def _submit(
    request: ApiRequest,
    services: Services,
    intent: Intent[LinesAnswer],
    lines: Sequence[bytes],
    chunk: int,
) -> tuple[int, bytes]:
    body = b"\n".join(lines)
    rendered_chunk = rendered_minimally if prefers_minimal(request) else rendered_lines
    try:
        revision, rendered, _ = await submit_once(
            request, services, intent, body, rendered_chunk, chunk=chunk
        )
    finally:
        request.context.reservation.release(len(body) + 1)
    forbidden = rendered.body.count(_FORBIDDEN)
    request.context.note_refused(PROBLEMS["Forbidden"].status, forbidden)
    return revision, rendered.body


def rendered_lines(answer: LinesAnswer) -> Rendered:
    """Render the answer to some lines as NDJSON."""
    return Rendered(_encoder.encode_lines(answer.results))


def rendered_minimally(answer: LinesAnswer) -> Rendered:
    """Render the answer to some lines as NDJSON, without plain successes."""
    return Rendered(_encoder.encode_lines(minimal_results(answer.results)))


def rendered_lines_in_one(answer: LinesAnswer, *, minimal: bool) -> Rendered:
    """Render the answer to the items of a list, which are decided in one commit."""
    if minimal:
        answer = msgspec.structs.replace(answer, results=minimal_results(answer.results))
    return Rendered(_encoder.encode(answer), minimal=minimal)


async def _chunks(
    request: ApiRequest, services: Services, waits: Callable[[], bool]
) -> AsyncIterator[tuple[int, Sequence[bytes]]]:
    """Yield the body's lines in chunks of one commit each, with the number of the first line."""
    start, chunk = 1, _Chunk(services.settings.apply_lines_per_commit)
    async for line in _lines(request, services, waits):
        if not chunk.takes(line):
            yield start, chunk.lines
            start, chunk = start + len(chunk.lines), chunk.next()
        chunk.add(line)
        if chunk.is_full:
            yield start, chunk.lines
            start, chunk = start + len(chunk.lines), chunk.next()
    if any(map(bytes.strip, chunk.lines)):
        yield start, chunk.lines


class _Chunk:
    """The lines of one commit, independent of the pieces in which they arrive."""

    def __init__(self, lines_max: int) -> None:
        self.lines: list[bytes] = []
        self._lines_max = lines_max
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether the chunk has the maximum number of lines."""
        return len(self.lines) >= self._lines_max

    def takes(self, line: bytes) -> bool:
        """Return whether the line still fits into this commit."""
        return not self.lines or self._bytes + len(line) <= CHUNK_BYTES_MAX

    def add(self, line: bytes) -> None:
        self.lines.append(line)
        self._bytes += len(line)

    def next(self) -> "_Chunk":
        """Return an empty chunk with the same limit."""
        return _Chunk(self._lines_max)


async def _lines(
    request: ApiRequest, services: Services, waits: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Yield the body's lines without line ends; the last one may be empty.

    A line that arrives in many pieces is joined once, when it is complete.
    """
    longest = services.settings.apply_line_bytes_max
    begun, length = list[bytes](), 0
    async for piece in services.bodies.stream(request, waits):
        complete, rest = _lines_in(piece)
        for line in complete:
            _refuse_long(length + len(line), longest)
            yield b"".join((*begun, line)) if begun else line
            begun, length = [], 0
        begun += [rest] if rest else []
        length += len(rest)
        _refuse_long(length, longest)
    yield b"".join(begun)


def _refuse_long(length: int, longest: int) -> None:
    if length > longest:
        raise BodyTooLarge(f"A line is longer than {longest} bytes.")


def _lines_in(piece: bytes) -> tuple[list[bytes], bytes]:
    """Return a piece's complete lines and the rest; `bytes.split` takes twice as long."""
    lines = BytesIO(piece).readlines()
    rest = lines.pop() if lines and lines[-1][-1:] != b"\n" else b""
    return [line[:-1] for line in lines], rest
