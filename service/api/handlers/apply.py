"""Writes many objects at once: a `List` in one commit, or NDJSON in commits of at most 1,000 lines."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from io import BytesIO
from typing import Any

import msgspec
from litestar import Response, post
from litestar.di import NamedDependency

from service.api.bodies.budget import holding_of
from service.api.bodies.manifests import Pause, items_in, parse_items, read_members
from service.api.bodies.requests import (
    AnyRequest,
    header,
    media_type,
    number,
    query,
    wrong_parameter,
)
from service.api.bodies.responses import revision_headers, warning_header
from service.api.bodies.streams import Pieces, Streamed
from service.api.idempotency import (
    IDEMPOTENCY_KEY,
    KEY_PROBLEMS,
    Rendered,
    submit_chunk,
    submit_once,
)
from service.api.openapi import wire
from service.api.openapi.access import Namespaced
from service.api.openapi.object_operations import CLUSTER_PATH
from service.api.openapi.operations import (
    JSON,
    NDJSON,
    Body,
    Operation,
    Parameter,
    WholeNumber,
    described,
)
from service.api.openapi.resources import NAMESPACES, NODES, POD_EXAMPLE, RESOURCES
from service.api.problems import PROBLEMS, BodyTooLarge, encode_problem
from service.api.security.refusals import note_refused
from service.api.security.rights import deciding_for, refusal, require_pruning, require_writing
from service.api.services import Services
from service.model.errors import FieldError, InvalidManifest, MalformedJSON, MoorageError
from service.model.json_pieces import Member, whole
from service.model.manifest import Applicable, parse_any
from service.model.strict_json import decode_strict
from service.scheduler.protocol.answers import ApplyAnswer, LinesAnswer
from service.scheduler.protocol.callers import Caller
from service.scheduler.protocol.intents import ApplyLine, ApplyLines, ApplyObjects

CHUNK_BYTES_MAX = 16 * 1024 * 1024
"""The bytes of the lines that one commit of a stream takes at most; it takes at least one line."""
CHUNKS_AHEAD = 2
"""How many commits of one stream are decided or under way at the same time."""

_READ = ("items",)

_encoder = msgspec.json.Encoder()
_FORBIDDEN = b'"result":"Forbidden"'
"""It stands in an answer only if the caller may not write that line, as quotes in texts are escaped."""


def _as_ndjson(*values: Mapping[str, Any]) -> str:
    """Values as NDJSON, as they are shown in the document."""
    return _encoder.encode_lines(values).decode()


_OPERATION = Operation(
    id="applyObjects",
    warns=True,
    access=Namespaced("edit", or_verb="observe"),
    decided=True,
    tag="bulk",
    summary="Create or change many objects",
    description="A `List` is one commit, whole or not at all. As NDJSON, one object a line, it is "
    "applied in commits of at most 1,000 lines and answered line by line; a bad line is reported "
    "and the rest goes on. Should the stream have to end early, its last line is a problem "
    "document; lines that were not answered are applied or not. `metadata.resourceVersion`, `managedFields` and `generation` are ignored. A "
    "PriorityClass sets its entry of the setting `priorityClasses`. Each object takes the verb that "
    "writing it by itself would take, a PriorityClass `configure`, and `prune` takes it in all namespaces: a `List` is "
    "refused as a whole, of NDJSON a line.",
    parameters=(
        Parameter(
            name="prune",
            description="Kinds, separated by commas, of which everything that the `List` lacks is "
            "removed.",
            example="Node,Pod",
        ),
        Parameter(
            name="pruneBefore",
            type=WholeNumber,
            description="Remove only what was last changed at or before this revision.",
            example=1042,
        ),
        IDEMPOTENCY_KEY,
    ),
    request=Body(
        types={JSON: wire.ObjectList, NDJSON: str},
        description="A Kubernetes `List`, or one object a line.",
        example={
            "apiVersion": "v1",
            "kind": "List",
            "items": [NODES.example, NAMESPACES.example, POD_EXAMPLE],
        },
        examples={NDJSON: _as_ndjson(NODES.example, NAMESPACES.example, POD_EXAMPLE)},
    ),
    limit="apply",
    answers={
        200: Body(
            types={JSON: ApplyAnswer, NDJSON: str},
            description="How much was changed; as NDJSON, what became of each line.",
            example={"revision": 1042, "created": 2, "changed": 1, "unchanged": 0, "deleted": 0},
            examples={
                NDJSON: _as_ndjson(
                    {
                        "line": 1,
                        "kind": "Node",
                        "namespace": None,
                        "name": "node-7",
                        "result": "Created",
                        "revision": 1042,
                        "errors": [],
                    }
                )
            },
        )
    },
    problems=("Conflict", "Denied", "InvalidManifest", *KEY_PROBLEMS),
)


@post(CLUSTER_PATH + "/apply", status_code=200, opt=described(_OPERATION))
async def apply_objects(
    request: AnyRequest, services: NamedDependency[Services]
) -> Response[bytes] | Streamed:
    """Put many objects."""
    if media_type(request) == NDJSON:
        return await _apply_lines(request, services)
    parameters = query(request)
    prune = _prune(parameters.get("prune"))
    prune_before = number(parameters, "pruneBefore")
    body = await services.bodies.read(request)
    caller, manifests = deciding_for(request), await parse_list(body, services)
    require_writing(caller, manifests)
    require_pruning(caller, prune)
    intent = ApplyObjects(
        manifests=manifests, prune=prune, prune_before=prune_before, caller=caller
    )
    return await submit_once(request, services, intent, body, _rendered)


def _rendered(answer: ApplyAnswer) -> Rendered:
    return Rendered(_encoder.encode(answer), warning=warning_header(answer.warnings))


async def parse_list(raw: bytes, services: Services) -> tuple[Applicable, ...]:
    """The objects of a `List`.

    Raises:
        InvalidManifest: some objects are wrong; errors are named as `items[3].spec…`.
    """
    most = services.settings.apply_objects_max
    members = await read_members(raw, read=_READ, lists=_READ, items_max=most)
    _refuse_other_kind(members.get("kind"))
    items = items_in(members.get("items", b"null"), "items", most)
    parse = partial(parse_any, templates=services.scheduler.templates)
    return tuple(await parse_items(items, "items", parse))


def _refuse_other_kind(member: Member | None) -> None:
    kind = None if member is None else whole(member)
    if kind is not None and not kind.strip(b'"').endswith(b"List"):
        raise InvalidManifest([FieldError("kind", "has to be List", decode_strict(kind))])


def _prune(text: str | None) -> frozenset[str]:
    kinds = frozenset(text.split(",")) if text else frozenset()
    known = {resource.kind for resource in RESOURCES}
    if unknown := sorted(kinds - known):
        message = f"knows only {', '.join(sorted(known))}"
        raise wrong_parameter("prune", message, unknown[0])
    return kinds


async def _apply_lines(request: AnyRequest, services: Services) -> Streamed:
    """Answer while reading; the first chunk is decided before the answer begins, so that errors get a status."""
    if query(request):
        raise wrong_parameter("prune", "goes with a List only, which is one commit", "")
    head = await services.reads.head(request.path_params["cluster"])
    answers = _answers(request, services)
    revision, first = await _first(answers) or (head.revision, b"")
    return Streamed(
        _streamed(request, first, answers),
        headers=revision_headers(revision),
        media_type=NDJSON,
    )


async def _first(answers: AsyncIterator[tuple[int, bytes]]) -> tuple[int, bytes] | None:
    async for answer in answers:
        return answer
    return None


async def _streamed(
    request: AnyRequest, first: bytes, rest: AsyncIterator[tuple[int, bytes]]
) -> Pieces:
    yield first
    try:
        async for _, lines in rest:
            yield lines
    except MoorageError as error:
        status, problem, _ = encode_problem(error, request.scope["path"])
        note_refused(request.scope, status)
        yield problem + b"\n"


class _UnderWay:
    """The chunks of one stream that are submitted and not yet answered, in their order in the stream."""

    def __init__(self, count_max: int) -> None:
        self.tasks: asyncio.Queue[asyncio.Task[tuple[int, bytes]] | None] = asyncio.Queue()
        self.room = asyncio.Semaphore(count_max)
        self.count = 0

    def add(self, work: Coroutine[Any, Any, tuple[int, bytes]]) -> None:
        """Start the next chunk, for which the caller has acquired `room`."""
        self.count += 1
        task = asyncio.create_task(work)
        task.add_done_callback(_take_note)
        self.tasks.put_nowait(task)

    def end(self) -> None:
        """Say that no more chunks will be added."""
        self.tasks.put_nowait(None)

    async def answers(self) -> AsyncIterator[tuple[int, bytes]]:
        """The answers of the chunks, in order and each as soon as it is there."""
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


async def _answers(request: AnyRequest, services: Services) -> AsyncIterator[tuple[int, bytes]]:
    """The revision and the answer lines of each chunk, once it is committed.

    The next chunk is read, parsed and decided while one is being committed. Under an idempotency
    key it is decided only afterwards. Otherwise, if a chunk failed and the stream were sent again,
    the chunk after it would be answered from its record instead of being decided anew on top.
    """
    under_way = _UnderWay(CHUNKS_AHEAD if header(request, "idempotency-key") is None else 1)
    feeding = asyncio.create_task(_feed(request, services, under_way))
    try:
        async for answer in under_way.answers():
            yield answer
        await feeding
    finally:
        feeding.cancel()
        under_way.cancel()


async def _feed(request: AnyRequest, services: Services, under_way: _UnderWay) -> None:
    """Submit chunk after chunk, each as soon as there is room for it among those under way."""
    chunk, caller = 0, deciding_for(request)
    try:
        async for start, lines in _chunks(request, services, lambda: under_way.count > 0):
            parsed = await _parse_lines(start, lines, services)
            intent = ApplyLines(lines=_refusing(caller, parsed), caller=caller)
            await under_way.room.acquire()
            under_way.add(_submit(request, services, intent, lines, chunk))
            chunk += 1
    finally:
        under_way.end()


def _take_note(task: "asyncio.Task[tuple[int, bytes]]") -> None:
    """Read the task's exception, as asyncio logs those that nobody reads; a failed chunk has told enough."""
    if not task.cancelled():
        task.exception()


async def _submit(
    request: AnyRequest, services: Services, intent: ApplyLines, lines: Sequence[bytes], chunk: int
) -> tuple[int, bytes]:
    body = b"\n".join(lines)
    try:
        revision, rendered = await submit_chunk(
            request, services, intent, body, _rendered_lines, chunk=chunk
        )
    finally:
        holding_of(request.scope).give_back(len(body) + 1)
    forbidden = rendered.body.count(_FORBIDDEN)
    note_refused(request.scope, PROBLEMS["Forbidden"].status, forbidden)
    return revision, rendered.body


def _rendered_lines(answer: LinesAnswer) -> Rendered:
    return Rendered(_encoder.encode_lines(answer.results))


async def _chunks(
    request: AnyRequest, services: Services, waits: Callable[[], bool]
) -> AsyncIterator[tuple[int, Sequence[bytes]]]:
    """The body's lines, as many at a time as one commit takes, each time with the first line's number."""
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
    """The lines of one commit; which lines these are does not depend on the pieces in which they arrive."""

    def __init__(self, lines_max: int) -> None:
        self.lines: list[bytes] = []
        self._lines_max = lines_max
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether this chunk has room for no other line, however short."""
        return len(self.lines) >= self._lines_max

    def takes(self, line: bytes) -> bool:
        """Whether this commit has room for the line."""
        return not self.lines or self._bytes + len(line) <= CHUNK_BYTES_MAX

    def add(self, line: bytes) -> None:
        """Add a line to this chunk."""
        self.lines.append(line)
        self._bytes += len(line)

    def next(self) -> "_Chunk":
        """An empty chunk, which follows this one."""
        return _Chunk(self._lines_max)


async def _lines(
    request: AnyRequest, services: Services, waits: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """The body's lines, without line ends; the last one may be empty.

    A line that arrives in many pieces is put together once, when it is complete.
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
    """The parts of a piece that a line end follows, and the rest; `bytes.split` takes twice as long."""
    lines = BytesIO(piece).readlines()
    rest = lines.pop() if lines and lines[-1][-1:] != b"\n" else b""
    return [line[:-1] for line in lines], rest


async def _parse_lines(
    start: int, lines: Sequence[bytes], services: Services
) -> tuple[ApplyLine, ...]:
    parsed, pause = list[ApplyLine](), Pause()
    for number_of_line, line in enumerate(lines, start):
        if line.strip():
            parsed.append(_parse_line(number_of_line, line, services))
            await pause.after_some()
    return tuple(parsed)


def _refusing(caller: Caller, lines: Iterable[ApplyLine]) -> tuple[ApplyLine, ...]:
    """The lines, of which those that the caller may not write are replaced by the reason for that."""
    return tuple(_refused_or_not(caller, each) for each in lines)


def _refused_or_not(caller: Caller, line: ApplyLine) -> ApplyLine:
    sent = line.object
    forbidden = None if isinstance(sent, MoorageError) else refusal(caller, sent)
    if forbidden is None or isinstance(sent, MoorageError):
        return line
    return ApplyLine(
        line=line.line,
        object=forbidden,
        kind=sent.kind,
        namespace=sent.namespace or None,
        name=sent.name,
    )


def _parse_line(number_of_line: int, line: bytes, services: Services) -> ApplyLine:
    try:
        return ApplyLine(line=number_of_line, object=parse_any(line, services.scheduler.templates))
    except MalformedJSON as error:
        invalid = InvalidManifest([FieldError("", error.detail)])
        return ApplyLine(line=number_of_line, object=invalid)
    except InvalidManifest as error:
        kind, namespace, name = _identity(line)
        return ApplyLine(
            line=number_of_line, object=error, kind=kind, namespace=namespace, name=name
        )


def _identity(line: bytes) -> tuple[str | None, str | None, str | None]:
    """Kind, namespace and name of a bad object, as far as they can be read."""
    try:
        decoded = decode_strict(line)
    except (MalformedJSON, InvalidManifest):
        return None, None, None
    fields = decoded if isinstance(decoded, dict) else {}
    metadata = fields.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    found = (fields.get("kind"), metadata.get("namespace"), metadata.get("name"))
    kind, namespace, name = (text if isinstance(text, str) else None for text in found)
    return kind, namespace, name


APPLY_HANDLERS = (apply_objects,)
