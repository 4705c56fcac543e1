"""The reference of the API as a browser shows it: its operations, and forms that ask the server."""

import re

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from service.api.resources.server.docs import FOLDER
from tests.page.visiting import ADMIN, Visit, check


@pytest.fixture
def server(guarded_server: str) -> str:
    return guarded_server


@pytest.fixture(autouse=True)
def built() -> None:
    if not (FOLDER / "api" / "index.html").exists():
        pytest.skip("documentation: `make docs` has not built it")


def form(page: Page, operation: str) -> Locator:
    """The form of an operation, opened."""
    place = page.locator(f"#{operation} ~ .try").first
    place.get_by_text("Try it").click()
    return place.locator("form")


def test_an_operation_is_found_and_tried_with_the_token_of_the_reader(visit: Visit) -> None:
    visit.page.goto(f"{visit.server}/docs/api/index.html")
    visit.page.get_by_role(
        "link", name="PUT /v1/clusters/{cluster}/nodes/{name}", exact=True
    ).click()
    expect(visit.page).to_have_url(re.compile("/docs/api/nodes.html#putNode"))
    creation = form(visit.page, "putNode")
    creation.get_by_label("name (path)").fill("tried")
    creation.get_by_role("button", name="Send").click()
    expect(creation.get_by_role("status")).to_have_text(re.compile("401"))
    creation.get_by_label("Token").fill(ADMIN)
    creation.get_by_label("Body").fill('{"metadata": {"name": "tried"}}')
    creation.get_by_role("button", name="Send").click()
    expect(creation.get_by_role("status")).to_have_text(re.compile("201"))
    expect(creation.get_by_role("region")).to_contain_text('"name": "tried"')


def test_a_parameter_goes_where_it_belongs(visit: Visit) -> None:
    visit.page.add_init_script(f"sessionStorage.setItem('moorage.token', '{ADMIN}')")
    visit.page.goto(f"{visit.server}/docs/api/nodes.html")
    listing = form(visit.page, "listNodes")
    listing.get_by_label("limit (query)").fill("none")
    listing.get_by_role("button", name="Send").click()
    expect(listing.get_by_role("status")).to_have_text(re.compile("4\\d\\d"))
    expect(listing.get_by_role("region")).to_contain_text("limit")


def test_an_answer_without_an_end_is_shown_and_stopped(visit: Visit) -> None:
    visit.page.add_init_script(f"sessionStorage.setItem('moorage.token', '{ADMIN}')")
    visit.page.goto(f"{visit.server}/docs/api/bulk.html")
    watching = form(visit.page, "watchChanges")
    watching.get_by_role("button", name="Send").click()
    expect(watching.get_by_role("status")).to_have_text(re.compile("200"))
    watching.get_by_role("button", name="Stop").click()
    expect(watching.get_by_role("button", name="Send")).to_be_enabled()


def test_the_reference_follows_the_rules_of_axe_and_fits(browser: Browser, server: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844}, bypass_csp=True)
    page.goto(f"{server}/docs/api/access.html")
    form(page, "createToken").get_by_role("button", name="Send").click()
    expect(page.locator(".try pre:visible")).to_contain_text("Unauthorized")
    check(page, "access.html")
    page.close()
