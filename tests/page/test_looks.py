"""The page looks as it did when somebody last looked at it: `make looks` keeps other pictures, to be looked at."""

import time

import httpx
import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import Browser, Page

from tests.page.looking import IN_GATE, LOOKS, PIXELS, difference, kept, load, picture, take, tell
from tests.processes import PLAIN_HTTP
from tests.waiting import PATIENCE_SECONDS


@pytest.fixture(scope="module")
def server(shared_server: str) -> str:
    """The URL of a server with a cluster that is always the same."""
    with httpx.Client(base_url=shared_server, **PLAIN_HTTP) as client:
        load(client)
    return shared_server


@pytest.mark.parametrize(
    "name",
    [
        *IN_GATE,
        *(
            pytest.param(each, marks=pytest.mark.exploration)
            for each in LOOKS
            if each not in IN_GATE
        ),
    ],
)
def test_a_view_looks_as_it_did(browser: Browser, server: str, name: str) -> None:
    before = kept(name)

    def compare(page: Page) -> None:
        """What is not there yet may come: it is looked at again until it is as it was, or for too long."""
        end = time.monotonic() + PATIENCE_SECONDS / 3
        while True:
            found = picture(page)
            count, where = difference(before, found)
            if count <= PIXELS:
                return
            if time.monotonic() > end:
                file = tell(name, before, found, where)
                pytest.fail(
                    f"{count} pixels of {name} differ, see {file}; if they are to: make looks"
                )

    take(browser, server, name, compare)


def test_one_letter_that_moved_is_a_difference() -> None:
    before = kept("map")
    after = before.copy()
    ImageDraw.Draw(after).rectangle((300, 300, 308, 308), fill="#ff00ff")
    assert difference(before, before)[0] == 0
    assert difference(before, after)[0] == 81 > PIXELS
    assert difference(before, Image.new("RGB", (10, 10)))[0] > PIXELS
