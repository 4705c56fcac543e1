"""A watch as its client sees it, who may stop reading or leave."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import msgspec

from tests.api.harness import CLUSTER, Harness
from tests.waiting import WAIT_SECONDS, once

WATCH = f"{CLUSTER}/watch"


class Event(msgspec.Struct, frozen=True):
    """One event as WHATWG's algorithm dispatches it."""

    type: str
    id: str
    data: Any

    @property
    def name(self) -> str:
        return self.data["object"]["metadata"]["name"]


def parse_events(text: str) -> list[Event]:
    """9.2.6 of the HTML standard, for complete events."""
    events, last_id = [], ""
    for block in text.split("\n\n")[:-1]:
        fields: dict[str, list[str]] = {}
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            fields.setdefault(name, []).append(value.removeprefix(" "))
        last_id = fields.get("id", [last_id])[-1]
        if "data" in fields:
            data = msgspec.json.decode("\n".join(fields["data"]))
            events.append(Event(fields.get("event", ["message"])[-1], last_id, data))
    return events


def changes(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.type, event.name) for event in events if event.type != "BOOKMARK"]


class Stream:
    """A watch as an ASGI server sees it: what was sent, and a client that may stop reading."""

    def __init__(
        self,
        app: Any,
        parameters: dict[str, Any],
        headers: dict[str, str] | None = None,
        path: str = WATCH,
    ) -> None:
        self._app = app
        self._path = path
        sent = {"host": "localhost", "accept": "text/event-stream", **(headers or {})}
        self._sent = [(k.lower().encode(), v.encode()) for k, v in sent.items()]
        self._query = urlencode(parameters).encode()
        self.left = asyncio.Event()
        self.reading = asyncio.Event()
        self.reading.set()
        self.blocked = asyncio.Event()
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.text = ""
        self.complete = False
        self._news = asyncio.Event()
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "path": self._path,
            "raw_path": self._path.encode(),
            "query_string": self._query,
            "headers": self._sent,
            "client": ("127.0.0.1", 1),
            "server": ("moorage", 80),
            "scheme": "http",
            "root_path": "",
        }
        await self._app(scope, self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        self.blocked.set()
        await self.reading.wait()
        self.blocked.clear()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = dict(message["headers"])
        else:
            self.text += message["body"].decode()
            self.complete = not message["more_body"]
        self._news.set()

    @property
    def events(self) -> list[Event]:
        return parse_events(self.text)

    @property
    def lines(self) -> list[Any]:
        """The complete lines of a stream of JSON."""
        return [msgspec.json.decode(line) for line in self.text.split("\n")[:-1]]

    async def until_lines(self, count: int) -> list[Any]:
        """At least so many lines."""
        await self._until(lambda: len(self.lines) >= count)
        return self.lines

    async def until(self, count: int) -> list[Event]:
        """So many events, bookmarks included."""
        await self._until(lambda: len(self.events) >= count)
        return self.events

    async def until_answered(self) -> int:
        """The status."""
        await self._until(lambda: bool(self.status))
        return self.status

    async def until_id(self, revision: str) -> None:
        await self._until(lambda: bool(self.events) and self.events[-1].id == revision)

    async def until_last(self, type_: str) -> None:
        """An event of this type, which is the last one but for bookmarks."""
        await self._until(
            lambda: [each.type for each in self.events if each.type != "BOOKMARK"][-1:] == [type_]
        )

    async def _until(self, reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while not reached():
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def stream(
    harness: Harness,
    headers: dict[str, str] | None = None,
    *,
    path: str = WATCH,
    **parameters: Any,
) -> AsyncIterator[Stream]:
    """A watch that has begun."""
    made = Stream(harness.app, parameters, headers, path)
    await made.until(0 if headers or "sinceRevision" in parameters else 1)
    try:
        yield made
    finally:
        made.reading.set()
        made.left.set()
        async with asyncio.timeout(WAIT_SECONDS):
            await made.task


async def watched(
    harness: Harness,
    since: int | None = 0,
    headers: dict[str, str] | None = None,
    *,
    path: str = WATCH,
    **parameters: Any,
) -> list[Event]:
    """What a watch gives of what is in the log already; then the server ends it."""
    watch = await ended(harness, since, headers, path=path, **parameters)
    assert watch.headers[b"content-type"].startswith(b"text/event-stream")
    return watch.events


async def ended(
    harness: Harness,
    since: int | None = 0,
    headers: dict[str, str] | None = None,
    *,
    path: str = WATCH,
    **parameters: Any,
) -> Stream:
    """A stream that has told what is in the log already, and that the server has ended then."""
    given = parameters if since is None else {"sinceRevision": since, **parameters}
    watching = harness.scheduler.watching

    async def has_begun() -> bool:
        return bool(watching.cluster_ids)

    async with stream(harness, headers, path=path, **given) as watch:
        await once(has_begun)
        for cluster_id in watching.cluster_ids:
            watching.feeds[cluster_id].end()
        await watch.task
    assert watch.status == 200, watch.text
    assert watch.complete
    return watch
