"""A browser, and servers for it: one with the sample and the real cluster, and one that asks for a token.

All tests of this folder share them, as far as they are in one process (`tests/dealing.py`).
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from moorage.cli.input.sources import read_objects
from tests.api.live import live_server
from tests.databases import Databases
from tests.page.visiting import ADMIN, REAL, SAMPLE, WAIT_MILLISECONDS, Visit
from tests.paths import ROOT
from tests.processes import PLAIN_HTTP

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PAST_CHANGES_MAX = 20
"""So few that the beginning of the sample cluster can no longer be read."""
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-sync",
)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium of this machine; `make browser` installs it."""
    if CHROMIUM is None:
        pytest.skip("browsers: Chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(OPTIONS))
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def shared_server(databases: Databases, browser: Browser) -> Iterator[str]:
    """The URL of a server with the sample cluster and a cut of a real one, which tests do not change."""
    with (
        databases.fresh() as database,
        live_server(database, past_changes_max=str(PAST_CHANGES_MAX)) as url,
    ):
        with httpx.Client(base_url=url, **PLAIN_HTTP) as client:
            load_sample(client)
            load_real(client)
        yield url


@pytest.fixture(scope="package")
def guarded_server(databases: Databases, browser: Browser) -> Iterator[str]:
    """The URL of a server that asks for a token: `ADMIN`, or one that it has made."""
    with databases.fresh() as database, live_server(database, token=ADMIN) as url:
        yield url


@pytest.fixture
def server(shared_server: str) -> str:
    """The URL of the server that the tests of a module visit."""
    return shared_server


@pytest.fixture
def client(server: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server, **PLAIN_HTTP) as client:
        yield client


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser without cookies or tokens, of 1280 px."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(WAIT_MILLISECONDS)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


@pytest.fixture
def visit(page: Page, server: str) -> Iterator[Visit]:
    """A visit to the server; at its end, nothing may have gone wrong that the browser tells of."""
    visit = Visit(page, server)
    yield visit
    assert visit.complaints == []
    assert visit.foreign == []


def load_sample(client: httpx.Client) -> None:
    cluster = f"/v1/clusters/{SAMPLE}"
    objects = read_objects([str(ROOT / "examples/cluster")])
    _post(client, f"{cluster}/apply", {"kind": "List", "items": objects})
    for file in sorted((ROOT / "examples/workloads").glob("*.yaml")):
        request = {"pods": read_objects([str(file)]), "onUnschedulable": "Queue"}
        _post(client, f"{cluster}/placements", request)


def load_real(client: httpx.Client) -> None:
    """A cut of a production trace: 59 nodes of several kinds, and pods of which some fit nowhere."""
    cut = json.loads((Path(__file__).parent / "openb_cut.json").read_text())
    cluster = f"/v1/clusters/{REAL}"
    client.put(cluster, json={"config": {}}).raise_for_status()
    _post(client, f"{cluster}/apply", {"kind": "List", "items": cut["nodes"]})
    request = {"pods": cut["pods"], "onUnschedulable": "Queue"}
    _post(client, f"{cluster}/placements", request)


def _post(client: httpx.Client, path: str, body: object) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
