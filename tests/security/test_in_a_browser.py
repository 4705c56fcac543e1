"""What web pages can do to a server without a token, in a real browser.

Pages of other origins try everything against one and the same application twice: as it is, and behind `AsAProgram`,
which hides from it what the browser says of the page. What succeeds there is what the checks prevent.
"""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Collection
from pathlib import Path
from typing import Any

import msgspec
import pytest
from granian.constants import HTTPModes, Interfaces
from granian.server.embed import Server

from service.server.tcp_ports import LOOPBACK, hold_port, port_of
from tests.api.harness import Harness, node, pod
from tests.waiting import WAIT_SECONDS

SCRIPT = (Path(__file__).parent / "foreign_page.js").read_text()
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP evil.test 127.0.0.1, MAP rebind.test 127.0.0.1",
)

CHANGE_SOMETHING = {
    "untyped",
    "no-cors",
    "plain",
    "bodiless",
    "redirected",
    "beacon",
    "form-plain",
    "form-urlencoded",
    "sandbox",
    "neighbour-writes",
    "rebound-writes",
}
"""What these ask for is done, if nobody looks at who asks."""
READ_SOMETHING = {"rebound-reads", "rebound-writes"}
FAIL_ANYWAY = {
    "preflighted",
    "form-multipart",
    "fetched",
    "opaque",
    "image",
    "script",
    "frame",
    "websocket",
    "neighbour-reads",
}
ATTACKS = CHANGE_SOMETHING | READ_SOMETHING | FAIL_ANYWAY
PAGES_THAT_TELL = 5


class News:
    """Tells that something has happened."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def tell(self) -> None:
        self._event.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while not condition():
                self._event.clear()
                await self._event.wait()


class Recorder:
    """How what was asked of each cluster, or of a page, was answered."""

    def __init__(self, app: Any, news: News) -> None:
        self._app = app
        self._news = news
        self.statuses: dict[str, int] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        _, _, *within = scope["path"].split("/", 4)
        name = within[1] if len(within) > 1 else scope["path"]

        async def noted(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.statuses[name] = message["status"]
            await send(message)

        await self._app(scope, receive, noted)
        self._news.tell()


class AsAProgram:
    """An application to which each request is one of a program that says it sends JSON."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        hidden = (b"host", b"origin", b"content-type")
        kept = [
            (name, value)
            for name, value in scope["headers"]
            if name not in hidden and not name.startswith(b"sec-fetch-")
        ]
        told = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        await self._app({**scope, "headers": kept + told}, receive, send)


class Pages:
    """The foreign pages, and what they tell."""

    def __init__(self, news: News) -> None:
        self._news = news
        self.pages: dict[str, str] = {}
        self.told: list[dict[str, str]] = []
        self.go_on = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        status, headers, text = 200, [(b"content-type", b"text/html")], ""
        match scope["path"]:
            case "/told":
                self.told.append(msgspec.json.decode(await _body(receive)))
                self._news.tell()
            case "/go-on":
                await self.go_on.wait()
            case "/elsewhere":
                status, headers = 307, [(b"location", scope["query_string"])]
            case path:
                text = f"<body><script>{SCRIPT}</script>{self.pages.get(path, '')}"
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text.encode(), "more_body": False})


class Rebinding:
    """An address to which a name leads that led to the foreign pages a moment ago."""

    def __init__(self, app: Any, pages: Pages) -> None:
        self._app, self._pages = app, pages

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        before = scope["path"].startswith(("/rebound-", "/told"))
        await (self._pages if before else self._app)(scope, receive, send)


async def _body(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


@contextlib.asynccontextmanager
async def served(app: Any) -> AsyncIterator[int]:
    """The port of a server of this process."""
    with hold_port() as held:
        server = Server(
            app,
            LOOPBACK,
            port_of(held),
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=False,
            log_enabled=False,
        )
        listening = asyncio.Event()
        server.on_startup(listening.set)
        serving = asyncio.create_task(server.serve())
        await listening.wait()
        try:
            yield port_of(held)
        finally:
            server.stop()
            await serving


@contextlib.asynccontextmanager
async def browsing(url: str, folder: Path) -> AsyncIterator[None]:
    assert CHROMIUM
    silent = asyncio.subprocess.DEVNULL
    command = [CHROMIUM, *OPTIONS, f"--user-data-dir={folder}", url]
    browser = await asyncio.create_subprocess_exec(
        *command, stdout=silent, stderr=silent, start_new_session=True
    )
    try:
        yield
    finally:
        os.killpg(browser.pid, signal.SIGKILL)
        await browser.wait()


async def prepare(harness: Harness, clusters: Collection[str]) -> None:
    for cluster in clusters:
        path = f"/v1/clusters/{cluster}"
        for asked, body in (
            (path, {"config": {}}),
            (f"{path}/nodes/n1", node("n1")),
            (f"{path}/namespaces/shop/pods/web-0", pod("web-0", nodeName="n1")),
        ):
            assert (await harness.client.put(asked, json=body)).status_code == 201


async def revisions(harness: Harness) -> dict[str, int]:
    answer = await harness.client.get("/v1/clusters")
    return {each["name"]: each["revision"] for each in answer.json()["items"]}


def write_pages(pages: Pages, own_port: int, ports: dict[str, int]) -> None:
    """Pages that attack each side. The first has all others in it, and leads to the server's own in the end."""
    frames, runs = [], []
    for side, port in ports.items():
        runs.append(f'attack(attacks, "http://{LOOPBACK}:{port}", "{side}")')
        for name, base, page_at in (
            ("neighbour", f"http://localhost:{port}", f"http://localhost:{own_port}"),
            ("rebound", "", f"http://rebind.test:{port}"),
        ):
            script = f'attack({name}, "{base}", "{side}").then(tell)'
            pages.pages[f"/{name}-{side}"] = f"<script>{script}</script>"
            frames.append(f'<iframe src="{page_at}/{name}-{side}"></iframe>')
    link = f'() => (location = "http://{LOOPBACK}:{ports["closed"]}/errors")'
    script = f'Promise.all([{",".join(runs)}]).then(tell).then(() => fetch("/go-on")).then({link})'
    pages.pages["/"] = f"{''.join(frames)}<script>{script}</script>"


@pytest.mark.skipif(CHROMIUM is None, reason="browsers: Chromium is not installed")
async def test_no_foreign_page_changes_or_reads_anything(harness: Harness, tmp_path: Path) -> None:
    names = {side: {f"{side}-{name}" for name in ATTACKS} for side in ("closed", "open")}
    await prepare(harness, names["closed"] | names["open"])
    before = await revisions(harness)
    news = News()
    pages = Pages(news)
    closed, opened = Recorder(harness.app, news), Recorder(AsAProgram(harness.app), news)
    async with (
        served(pages) as own_port,
        served(Rebinding(closed, pages)) as closed_port,
        served(Rebinding(opened, pages)) as open_port,
    ):
        write_pages(pages, own_port, {"closed": closed_port, "open": open_port})
        async with browsing(f"http://evil.test:{own_port}/", tmp_path):
            await news.until(lambda: len(pages.told) == PAGES_THAT_TELL)
            await news.until(lambda: closed.statuses.keys() >= names["closed"])
            await news.until(lambda: opened.statuses.keys() >= names["open"])
            pages.go_on.set()
            await news.until(lambda: "/errors" in closed.statuses)
    after = await revisions(harness)
    changed = {name for name, revision in after.items() if revision != before[name]}
    assert changed == {f"open-{name}" for name in CHANGE_SOMETHING}
    for name in ATTACKS:
        expected = 421 if name.startswith("rebound") else 403
        assert closed.statuses[f"closed-{name}"] == expected, name
    told = {name: text for page in pages.told for name, text in page.items()}
    read = {name for name, text in told.items() if '"n1"' in text}
    assert read == {f"open-{name}" for name in READ_SOMETHING}
    assert closed.statuses["/errors"] == 200  # a link may lead there
