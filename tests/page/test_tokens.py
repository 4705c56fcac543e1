"""A server that asks for a token: the page asks for it, keeps it as long as the tab, and notices its end."""

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.page.visiting import ADMIN, SAMPLE, Visit
from tests.processes import PLAIN_HTTP


@pytest.fixture
def server(guarded_server: str) -> str:
    return guarded_server


@pytest.fixture
def client(server: str) -> Iterator[httpx.Client]:
    right = {"authorization": f"Bearer {ADMIN}"}
    with httpx.Client(base_url=server, headers=right, **PLAIN_HTTP) as client:
        yield client


def enter(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Continue").click()


def test_only_a_right_token_leads_in(visit: Visit, page: Page) -> None:
    page.goto(visit.server)
    expect(page.get_by_label("Token")).to_be_focused()
    enter(page, "wrong")
    expect(page.get_by_role("alert")).to_be_visible()
    enter(page, ADMIN)
    expect(page.locator(".state")).to_contain_text("Live")
    page.reload()
    expect(page.locator(".state")).to_contain_text("Live")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Token")).to_be_visible()


def test_a_token_that_ends_leads_back_to_the_login(
    visit: Visit, page: Page, client: httpx.Client
) -> None:
    grants = [{"role": "reader"}]
    client.put("/v1/principals/reader", json={"grants": grants}).raise_for_status()
    made = client.post("/v1/principals/reader/tokens", json={"description": "page"}).json()
    page.goto(f"{visit.server}/#/waiting/{SAMPLE}")
    enter(page, made["token"])
    expect(page.locator("h1")).to_have_text("Waiting pods")
    client.delete(f"/v1/tokens/{made['id']}").raise_for_status()
    expect(page.get_by_text("not, or no longer, valid")).to_be_visible()
    enter(page, ADMIN)
    expect(page.locator("h1")).to_have_text("Waiting pods")


def test_the_token_is_not_kept_beyond_the_tab(visit: Visit, page: Page) -> None:
    page.goto(visit.server)
    enter(page, ADMIN)
    expect(page.locator(".state")).to_contain_text("Live")
    assert page.evaluate("Object.values(localStorage)") == []
    assert page.context.cookies() == []
    assert ADMIN not in page.url
    other = page.context.new_page()
    other.goto(visit.server)
    expect(other.get_by_label("Token")).to_be_visible()
