"""What tests do on the page, and what they read there."""

import re
import secrets
from typing import Any
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Locator, Page, Request, expect

from tests.waiting import WAIT_SECONDS

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
"""The rules of axe: WCAG 2.2 up to AA, and what is good practice."""
SAMPLE, REAL = "default", "openb"
ADMIN = secrets.token_hex(20)
"""The token of the server that asks for one."""
WAIT_MILLISECONDS = 1000 * WAIT_SECONDS
expect.set_options(timeout=WAIT_MILLISECONDS)

_REFUSED = re.compile(r"Failed to load resource: the server responded with a status of 4\d\d")


class Visit:
    """One tab on a server: it notes what the browser complains of, and who else is asked for anything."""

    def __init__(self, page: Page, server: str) -> None:
        self.page = page
        self.server = server
        self.complaints: list[str] = []
        self.foreign: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self._see)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not _REFUSED.match(message.text):
            self.complaints.append(message.text)

    def _see(self, request: Request) -> None:
        own = urlsplit(self.server)
        asked = urlsplit(request.url)
        if (asked.scheme, asked.netloc) != (own.scheme, own.netloc):
            self.foreign.append(request.url)

    def open(self, view: str, cluster: str = SAMPLE, *rest: str, **parameters: str) -> Page:
        """Open a view and wait until it is live, or shows an earlier revision."""
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        path = "/".join((view, cluster, *rest))
        self.page.goto(f"{self.server}/#/{path}?{query}")
        expect(self.page.locator(".state")).to_contain_text(
            "Paused" if "revision" in parameters else "Live"
        )
        return self.page

    def open_map(self, cluster: str = SAMPLE, **parameters: str) -> Page:
        """Open the map, and wait until it is drawn."""
        page = self.open("map", cluster, **parameters)
        expect(page.locator(".scroller")).to_have_attribute("data-nodes", re.compile("[1-9]"))
        return page


def figure(page: Page, title: str) -> Locator:
    """The number of the map's summary with this title."""
    return page.locator(".figures div", has_text=title).locator("dd")


def table(page: Page, selector: str) -> list[list[str]]:
    """The cells of the rows of a table's body, as they are read."""
    rows = page.locator(f"{selector} tbody tr")
    return [row.locator("th, td").all_inner_texts() for row in rows.all()]


def pixel(page: Page, x: int, y: int) -> tuple[int, ...]:
    """The colour of the map's canvas at a place, in CSS pixels."""
    script = (
        "([x, y]) => { const c = document.querySelector('.scroller canvas');"
        "const ratio = c.width / c.clientWidth, one = document.createElement('canvas');"
        "one.width = one.height = 1; const read = one.getContext('2d', {willReadFrequently: true});"
        "read.drawImage(c, -x * ratio, -y * ratio); return [...read.getImageData(0, 0, 1, 1).data] }"
    )
    found: list[int] = page.evaluate(script, [x, y])
    return tuple(found)


def watched(path: str) -> bool:
    return "/watch" in path


def check(page: Page, view: str) -> None:
    """Check that the page follows the rules of axe, and fits its window."""
    found = Axe().run(page, options=RULES).response["violations"]
    told = [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in found]
    assert told == [], view
    assert overflow(page) <= 0, f"{view} is wider than the window"


def overflow(page: Page) -> Any:
    """By how many pixels the document is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")
